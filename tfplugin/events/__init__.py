# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Events of the tasks of a run, in files of its model_dir."""

from tfplugin.events.event_files import read_file
from tfplugin.events.event_files import read_run
from tfplugin.events.event_files import Reading
from tfplugin.events.event_log import EventLog
from tfplugin.events.record import Event

__all__ = (
    'Event',
    'EventLog',
    'Reading',
    'read_file',
    'read_run',
)
