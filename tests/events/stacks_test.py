# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of stacks that are asked for."""

import signal
import subprocess
import sys

from tfplugin.events import stacks


def test_stacks_are_written_unless_the_program_handles_the_signal():
  program = '''if 1:
      import os, signal
      from tfplugin.events import stacks
      def inner():
        os.kill(os.getpid(), stacks.SIGNAL)
      stacks.write_on_signal()
      inner()
      print('goes on')
      signal.signal(stacks.SIGNAL, lambda *args: print('my own'))
      stacks.write_on_signal()
      inner()
      '''
  ended = subprocess.run([sys.executable, '-c', program], capture_output=True,
                         text=True, timeout=120, check=True)
  assert ended.stdout.splitlines() == ['goes on', 'my own']
  assert ended.stderr.count('in inner') == 1
  assert stacks.SIGNAL == signal.SIGUSR1
