# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the guard that ends a cluster after its launcher has died."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from tfplugin.bin.processes import guard

_SLEEP = [sys.executable, '-c', 'import time; time.sleep(120)']


def test_what_is_forgotten_is_not_watched():
  lines = ['watch 4\n', 'watch 5\n', 'forget 4\n', 'watch 6\n', 'forget 9\n']
  assert guard.watched_groups(lines) == {5, 6}


def test_only_processes_that_carry_the_mark_are_found_and_ended():
  def start(marks):
    return subprocess.Popen(
        _SLEEP, env={**os.environ, guard.MARK_VARIABLE: marks})

  marked, other = start('outer,mine'), start('mine2')
  try:
    # A process that is just being started has no environment yet.
    deadline = time.monotonic() + 20
    while not guard.marked_processes('mine') and time.monotonic() < deadline:
      time.sleep(0.01)
    assert guard.marked_processes('mine') == [marked.pid]
    guard.kill_marked('mine')
    assert marked.wait(20) == -signal.SIGKILL
    assert other.poll() is None
  finally:
    for process in (marked, other):
      process.kill()
      process.wait()


def test_the_program_ends_watched_groups_at_the_end_of_its_input():
  watched, forgotten = (
      subprocess.Popen(_SLEEP, start_new_session=True) for _ in range(2))
  program = pathlib.Path(guard.__file__)
  try:
    subprocess.run(
        [sys.executable, '-I', '-S', str(program), 'a-mark'], check=True,
        text=True, timeout=60, input=(
            f'watch {watched.pid}\nwatch {forgotten.pid}\n'
            f'forget {forgotten.pid}\n'))
    assert watched.wait(20) == -signal.SIGKILL
    assert forgotten.poll() is None
  finally:
    for process in (watched, forgotten):
      process.kill()
      process.wait()
