# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of stacks that are asked for."""

import signal
import subprocess
import sys

import pytest

from tfplugin.events import stacks


@pytest.mark.parametrize('own', [False, True])
def test_stacks_are_written_unless_the_program_handles_the_signal(own):
  program = f'''if 1:
      import os, signal
      from tfplugin.events import stacks
      if {own}:
        signal.signal(stacks.SIGNAL, lambda *args: print('my own'))
      stacks.write_on_signal()
      def inner():
        os.kill(os.getpid(), stacks.SIGNAL)
      inner()
      print('goes on')
      '''
  ended = subprocess.run([sys.executable, '-c', program], capture_output=True,
                         text=True, timeout=120, check=True)
  assert ended.stdout.splitlines() == ['my own'] * own + ['goes on']
  assert ('in inner' in ended.stderr) is not own
  assert stacks.SIGNAL == signal.SIGUSR1
