# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Session hooks."""

from tfplugin.hooks.parameter_server import run_parameter_server
from tfplugin.hooks.report_finished_hook import ReportFinishedHook
from tfplugin.hooks.wait_for_chief_hook import WaitForChiefHook
from tfplugin.hooks.wait_for_workers_hook import WaitForWorkersHook

__all__ = (
    'ReportFinishedHook',
    'WaitForChiefHook',
    'WaitForWorkersHook',
    'run_parameter_server',
)
