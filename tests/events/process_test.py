# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process says on what it runs, and where its threads are."""

import platform
import signal
import subprocess
import sys

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


def test_stacks_are_written_unless_the_program_handles_the_signal():
  program = '''if 1:
      import os, signal
      from tfplugin.events import process
      def inner():
        os.kill(os.getpid(), process.STACKS_SIGNAL)
      process.write_stacks_on_signal()
      inner()
      print('goes on')
      signal.signal(process.STACKS_SIGNAL, lambda *args: print('my own'))
      process.write_stacks_on_signal()
      inner()
      '''
  ended = subprocess.run([sys.executable, '-c', program], capture_output=True,
                         text=True, timeout=120, check=True)
  assert ended.stdout.splitlines() == ['goes on', 'my own']
  assert ended.stderr.count('in inner') == 1
  assert process.STACKS_SIGNAL == signal.SIGUSR1
