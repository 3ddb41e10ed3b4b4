# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the spare process, which becomes a task that restarts."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import spare as spare_lib
from tfplugin.distribute import cluster_config

_LIMIT = 120
# Says what it is; the first process then waits to be killed.
_PROGRAM = '''
import json, os, sys, time
is_ready = 'tensorflow' in sys.modules
first = not os.path.exists(sys.argv[1])
import of_program
print(json.dumps([__name__, os.getpid(), is_ready, sys.argv[1:], of_program.x,
                  json.loads(os.environ['TF_CONFIG'])['task']]), flush=True)
print('an error', file=sys.stderr, flush=True)
open(sys.argv[1], 'w').close()
time.sleep(300 if first else 0)
'''


@pytest.fixture(name='command')
def _command(tmp_path):
  (tmp_path / 'program.py').write_text(_PROGRAM)
  (tmp_path / 'of_program.py').write_text('x = 3')
  return [sys.executable, '-B', str(tmp_path / 'program.py'),
          str(tmp_path / 'came')]


def _wait_until(cluster, condition):
  deadline = time.monotonic() + _LIMIT
  while not condition():
    assert time.monotonic() < deadline
    cluster.check()
    time.sleep(0.05)


@pytest.mark.parametrize('has_spare, is_killed', [
    (True, False), (True, True), (False, False)])
def test_it_becomes_the_next_task_that_restarts(
    tmp_path, monkeypatch, command, has_spare, is_killed):
  monkeypatch.setattr(local_cluster, '_SPARE_AFTER_SECS', 0.0)
  policy = restarts.RestartPolicy(
      restarts.parse('on_failure'), has_spare=has_spare)
  with local_cluster.LocalCluster(tmp_path / 'logs', policy=policy) as cluster:
    ps = cluster.start(cluster_config.Task('ps', 0), command,
                       {'ps': ['h:1'], 'chief': ['h:2']})
    _wait_until(cluster, lambda: 'an error' in ps.written())
    cluster.check()
    spare = cluster._spare
    assert (spare is not None) is has_spare
    if is_killed:
      os.kill(spare.pid, signal.SIGKILL)
      # Until it has ended it takes a task, which then restarts once more.
      os.waitid(os.P_PID, spare.pid, os.WEXITED | os.WNOWAIT)
    os.kill(ps.pid, signal.SIGKILL)
    monkeypatch.setattr(local_cluster, '_SPARE_AFTER_SECS', 300.0)
    _wait_until(cluster, lambda: ps.status == 0)
  said, error = ps.written().splitlines()[-2:]
  is_spare = has_spare and not is_killed
  assert json.loads(said) == ['__main__', ps.pid, is_spare,
                              [str(tmp_path / 'came')], 3,
                              {'type': 'ps', 'index': 0}]
  assert error == 'an error'
  assert ps.num_restarts == 1
  assert spare is None or is_killed or spare.pid == ps.pid


def test_a_module(tmp_path, command, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'came').touch()
  command = [sys.executable, '-m', 'program', 'came']
  environment = {**os.environ, 'TF_CONFIG': '{"task": 1}'}
  spare = spare_lib.Spare(command, environment)
  process = spare.become(command, {**environment, 'TF_CONFIG': '{"task": 2}'},
                         tmp_path / 'log')
  assert process.wait(_LIMIT) == 0
  assert json.loads((tmp_path / 'log').read_text().splitlines()[0]) == [
      '__main__', process.pid, True, ['came'], 3, 2]


def test_it_ends_with_the_cluster_and_without_a_launcher(tmp_path, command):
  spare = spare_lib.Spare(command, dict(os.environ))
  spare.end()
  with pytest.raises(ProcessLookupError):
    os.kill(spare.pid, 0)
  process = subprocess.run([sys.executable, spare_lib.__file__],
                           stdin=subprocess.DEVNULL, timeout=_LIMIT)
  assert process.returncode == 0


def test_other_tasks_start_as_usual(tmp_path, command):
  environment = {**os.environ, 'TF_CONFIG': '{}'}
  spare = spare_lib.Spare(command, environment)
  for other, variables in (
      (['sh', '-c', 'true'], {}), ([sys.executable, '-c', 'pass'], {}),
      ([sys.executable, '-O', 'program.py'], {}), ([sys.executable], {}),
      (command, {'OMP_NUM_THREADS': '7'})):
    assert spare.become(other, {**environment, **variables},
                        tmp_path / 'log') is None
  spare.end()
  assert not spare.is_used
  assert not spare_lib.can_run(['python3', '-c', 'pass'])
  assert spare_lib.can_run(['/usr/bin/python3.11', '-u', 'program.py'])
