# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the end of a session that takes its time."""

import subprocess
import sys
import threading

import pytest

from tfplugin.checkpoints import session_closing


def test_a_closing_that_lasts_is_not_waited_for(caplog):
  is_closed = threading.Event()
  with caplog.at_level('INFO', 'tensorflow'):
    session_closing.close_in_time(is_closed.wait, 0.1)
  is_closed.set()
  assert 'takes more than 0.1 s' in caplog.text


def test_an_error_is_that_of_the_caller():
  with pytest.raises(ZeroDivisionError):
    session_closing.close_in_time(lambda: 1 / 0)


def test_a_session_that_is_left_is_closed_when_the_interpreter_ends():
  # A thread that begins there waits for ever, or is refused. What a module has
  # may be gone by then.
  program = """
import os
from tfplugin.checkpoints import session_closing

class Session:

  def __del__(self, close=session_closing.close_in_time, write=os.write):
    close(lambda: write(1, b'closed'))

session = Session()
"""
  assert subprocess.run(
      [sys.executable, '-c', program], check=True, timeout=120.0,
      stdout=subprocess.PIPE, text=True).stdout == 'closed'


def test_the_interpreter_does_not_end_while_a_session_is_closed():
  program = """
import os
import threading
import time
from tfplugin.checkpoints import session_closing

def close():
  time.sleep(1.0)
  os.write(1, b'closed')

session_closing.close_in_time(close, 0.01)
"""
  assert subprocess.run(
      [sys.executable, '-c', program], check=True, timeout=120.0,
      stdout=subprocess.PIPE, text=True).stdout == 'closed'
