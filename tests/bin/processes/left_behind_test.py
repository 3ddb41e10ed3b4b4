# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of workers that hang after the others have ended."""

import sys
import time

import pytest

from tfplugin.bin.processes import left_behind
from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import task_states
from tfplugin.distribute import cluster_config
from tfplugin.events import event_log

_LIMIT = 60
_ENDS = 'pass'
_HANGS = 'import time; time.sleep(120)'
# As a shell reports SIGKILL: worth another attempt.
_FAILS = 'raise SystemExit(137)'


def _run(tmp_path, codes, last='training', secs=1.0, limit_secs=0.3,
         delay_secs=0.0):
  """Watches a program for each task; returns the cluster and the lines said.

  `last` is the worker's last event; None: it writes none.
  """
  said = []
  states = task_states.TaskStates(tmp_path, [f'{job}:0' for job in codes])
  watch = left_behind.LeftBehindWatch(states, limit_secs, said.append)
  policy = restarts.RestartPolicy(restarts.parse('worker=on_failure'),
                                  delay_secs=delay_secs)
  with local_cluster.LocalCluster(tmp_path / 'logs', policy=policy) as cluster:
    for job, code in codes.items():
      role = cluster.start(
          cluster_config.Task(job, 0), [sys.executable, '-c', code], {})
      if job == 'worker' and last is not None:
        event_log.EventLog(tmp_path, role.task.name, role.pid).write(last)
    states.update()
    deadline = time.monotonic() + _LIMIT
    while (any(r.is_running for r in cluster.roles if r.task.type != 'worker'
               and codes[r.task.type] == _ENDS)):
      assert time.monotonic() < deadline
      cluster.check()
      time.sleep(0.02)
    deadline = time.monotonic() + secs
    while time.monotonic() < deadline and not cluster.lost:
      cluster.check()
      ended = watch.look(cluster)
      assert ended == cluster.lost
      time.sleep(0.02)
    assert not any(role.restart_at for role in cluster.lost)
  return cluster, said


_OTHERS = {'ps': _ENDS, 'chief': _ENDS}


@pytest.mark.parametrize('last, limit_secs', [('training', 0.3), (None, 0.03)])
def test_a_worker_that_hangs_is_ended_without_a_restart(
    tmp_path, last, limit_secs):
  cluster, said = _run(tmp_path, {**_OTHERS, 'worker': _HANGS}, last, _LIMIT,
                       limit_secs)
  worker = cluster.roles[-1]
  assert (worker.status, worker.num_restarts) == (-9, 0)
  assert worker.reasons == [
      'still ran after the chief and the parameter servers']
  line, = said
  assert line.startswith('worker:0 still runs 0.3 s after the chief and the ')
  assert 'the run is complete without it.' in line


def test_a_worker_that_would_start_again_is_given_up(tmp_path):
  cluster, _ = _run(tmp_path, {**_OTHERS, 'worker': _FAILS}, secs=_LIMIT,
                    delay_secs=100.0)
  worker = cluster.roles[-1]
  assert worker.status == 137 and cluster.lost == [worker]
  assert worker.reasons[0] == 'ended with status 137'


@pytest.mark.parametrize('codes, last', [
    ({**_OTHERS, 'worker': _HANGS}, 'ended'),
    ({**_OTHERS, 'worker': _HANGS}, None),  # It has ten times as long.
    ({**_OTHERS, 'ps': _HANGS, 'worker': _HANGS}, 'training'),
    ({**_OTHERS, 'chief': _HANGS, 'worker': _HANGS}, 'training'),
    ({'chief': _ENDS, 'worker': _HANGS}, 'training')],
                         ids=['trained', 'unknown', 'ps', 'chief', 'no ps'])
def test_a_worker_that_may_have_work_to_do_is_left(tmp_path, codes, last):
  cluster, said = _run(tmp_path, codes, last)
  assert not said and not cluster.lost
