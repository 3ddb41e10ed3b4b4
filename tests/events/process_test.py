# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process says on what it runs."""

import platform

import numpy as np
import tensorflow as tf

from tfplugin import version
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import process


def test_versions_of_what_was_imported():
  told = process.describe()
  assert told['host'] == platform.node()
  assert told['versions']['python'] == platform.python_version()
  assert told['versions']['tensorflow'] == tf.__version__
  assert told['versions']['numpy'] == np.__version__
  assert told['versions']['tfplugin'] == version.__version__


def test_the_start_of_a_task_tells_them(tmp_path):
  with event_log.recording(tmp_path, 'worker:0'):
    pass
  first, _ = event_files.read_run(tmp_path).events
  assert first.details == process.describe()
