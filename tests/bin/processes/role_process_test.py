# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of one process that starts, ends and starts again."""

import os
import shlex
import signal
import sys
import time

from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import role_process
from tfplugin.distribute import cluster_config

_LIMIT = 60
_TASK = cluster_config.Task('worker', 1)


def _role(tmp_path, code):
  return role_process.Role(_TASK, [sys.executable, '-c', code], os.environ,
                           tmp_path / 'log')


def test_it_starts_again_and_tells_of_its_last_process(tmp_path):
  code = ('import os, sys; first = not os.path.exists("came"); '
          'open("came", "w"); print("first" if first else "second"); '
          'sys.exit(2 * first)')
  in_its_folder = (f'cd {shlex.quote(str(tmp_path))}; '
                   f"exec {shlex.quote(sys.executable)} -c '{code}'")
  role = role_process.Role(_TASK, ['sh', '-c', in_its_folder], os.environ,
                           tmp_path / 'log')
  assert role.wait(_LIMIT) and not role.is_running
  assert role.describe_end() == 'ended with status 2'
  assert role.describe_failure().endswith('log:\nfirst')
  assert role.describe_absence() == 'ended with status 2'
  role.reasons.append('was stopped')
  pid, role.restart_at = role.pid, 0.0
  assert role.is_running
  assert role.describe_absence() == 'restarts in 0 s: was stopped'
  role.restart()
  assert role.is_running and role.pid != pid
  assert role.wait(_LIMIT) and role.status == 0
  assert role.describe_absence() == 'done'
  assert role.num_restarts == 1 and role.restart_at is None
  assert role.describe_failure().endswith('log:\nsecond')
  assert role.log_path.read_text() == 'first\nsecond\n'
  assert role.last_write() == role.log_path.stat().st_mtime


def test_a_restart_waits_until_its_log_can_be_opened(tmp_path):
  logs = tmp_path / 'logs'
  logs.mkdir()
  role = role_process.Role(_TASK, [sys.executable, '-c', 'print(1)'],
                           os.environ, logs / 'log')
  assert role.wait(_LIMIT)
  logs.rename(tmp_path / 'away')
  assert not role.restart() and not role.restart()
  assert role.is_running and role.restart_at > time.monotonic()
  assert 'log cannot be written: No such file' in role.describe_absence()
  assert len(role.reasons) == 1 and not role.num_restarts
  (tmp_path / 'away').rename(logs)
  assert role.restart() and role.wait(_LIMIT)
  assert role.log_path.read_text() == '1\n1\n'


def test_any_signal_has_a_text(tmp_path):
  number = signal.SIGRTMIN + 1
  role = _role(tmp_path, f'import os; os.kill(os.getpid(), {int(number)})')
  assert role.wait(_LIMIT)
  assert role.describe_end() == f'was ended by signal {int(number)}'


def test_the_end_of_a_long_log_is_enough(tmp_path, monkeypatch):
  monkeypatch.setattr(role_process, '_TAIL_BYTES', 12)
  role = _role(tmp_path, 'print("first"); print("second"); print("third")')
  assert role.wait(_LIMIT)
  assert role.written() == 'econd\nthird\n'


def test_a_log_that_is_gone_is_no_error(tmp_path):
  role = _role(tmp_path, 'import time; time.sleep(120)')
  role.log_path.unlink()
  role.signal(signal.SIGKILL)
  assert role.wait(_LIMIT)
  assert role.last_write() == 0.0
  assert role.describe_failure() == (
      f'worker:1 was ended by SIGKILL. The last lines of {role.log_path}:\n'
      '(The log is empty.)')


def test_a_process_that_lived_long_begins_the_count_of_restarts_anew(
    tmp_path, monkeypatch):
  role = _role(tmp_path, '')
  for count in range(3):
    assert role.wait(_LIMIT) and role.num_in_a_row == count
    role.restart()
  monkeypatch.setattr(restarts, 'WELL_SECS', 0.0)
  assert role.wait(_LIMIT)
  assert (role.num_restarts, role.num_in_a_row) == (3, 0)
