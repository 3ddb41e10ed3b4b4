# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the watches: for stalled tasks, and for workers left behind."""

import os
import signal
import sys
import textwrap
import time

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import task_states
from tfplugin.bin.processes import watches
from tfplugin.distribute import cluster_config
from tfplugin.events import event_log
from tfplugin.events import process

_CHIEF = cluster_config.Task('chief', 0)
_WORKER = cluster_config.Task('worker', 0)
# Waits, and writes its stacks if it is asked; once more it is done. It imports
# nothing heavy: what it would tell is in its events already.
_WAITS = textwrap.dedent('''
    import faulthandler, pathlib, signal, sys, time
    faulthandler.register(signal.SIGUSR1)
    came = pathlib.Path(sys.argv[1])
    if not came.exists():
      came.touch()
      time.sleep(120)
    ''')
_LIMIT = 60
_ENDS = 'pass'
_HANGS = 'import time; time.sleep(120)'
# As a shell reports SIGKILL: worth another attempt.
_FAILS = 'raise SystemExit(137)'


def _wait_until(is_so):
  deadline = time.monotonic() + _LIMIT
  while not is_so():
    assert time.monotonic() < deadline
    time.sleep(0.02)


def _run(tmp_path, policy, stop=None):
  """Runs chief and worker, who wait; returns the roles, and what was said."""
  said = []
  states = task_states.TaskStates(tmp_path, ['chief:0', 'worker:0'])
  policy = restarts.RestartPolicy(restarts.parse(policy), delay_secs=0.0)
  with local_cluster.LocalCluster(tmp_path / 'logs', policy=policy) as cluster:
    came = [tmp_path / task.type for task in (_CHIEF, _WORKER)]
    for task, file in zip((_CHIEF, _WORKER), came):
      event_log.EventLog(tmp_path, task.name).write(
          'waiting', 'begin', on=['ps:0'])
      cluster.start(task, [sys.executable, '-c', _WAITS, str(file)], {})
    _wait_until(lambda: all(file.exists() for file in came))
    if stop is not None:
      stopped = cluster.roles[stop].pid
      os.kill(stopped, signal.SIGSTOP)
      # A signal acts when its process next has a processor.
      _wait_until(lambda: watches.is_stopped(stopped))
    watch = watches.StallWatch(states, 0.3, policy, said.append)

    deadline = time.monotonic() + _LIMIT
    try:
      for running in cluster.rounds():
        assert time.monotonic() < deadline, running
        states.update()
        watch.look(cluster)
        # A start takes longer than the limit: one stall is enough.
        if any(role.num_restarts for role in cluster.roles):
          watch.look = lambda cluster: None
          if stop is not None:
            for role in cluster.roles:
              role.signal(signal.SIGTERM)
    except (watches.StallError, local_cluster.RoleError) as e:
      return cluster.roles, said, e
  return cluster.roles, said, None


def test_a_run_that_stalls_says_who_waits_for_whom_and_where(tmp_path):
  roles, said, error = _run(tmp_path, 'never')
  assert said[0] == 'No task has made a step for 0.3 s:'
  assert said[1].startswith('  chief:0 waits for ps:0 (')
  assert said[2].startswith('  worker:0 waits for ps:0 (')
  assert isinstance(error, watches.StallError)
  assert 'worker:0 waits for ps:0' in str(error)
  assert error.exit_status == 138
  for role in roles:
    log = role.log_path.read_text()
    assert 'most recent call first' in log and 'File "<string>"' in log


def test_a_run_that_stalls_begins_again_if_the_policy_says_so(tmp_path):
  roles, _, error = _run(tmp_path, 'on_failure')
  assert error is None
  assert [(r.status, r.num_restarts) for r in roles] == [(0, 1), (0, 1)]
  assert roles[0].reasons == ['made no step', 'was ended by SIGKILL']


def test_the_one_that_is_stopped_is_to_blame(tmp_path):
  roles, said, _ = _run(tmp_path, 'on_failure', stop=1)
  assert 'worker:0 is stopped by a signal' in said[2]
  assert roles[1].reasons[0] == 'made no step'
  assert 'made no step' not in roles[0].reasons


def test_nothing_is_looked_for_without_a_limit_or_before_it():
  states = task_states.TaskStates(None, [])
  for limit in (0.0, 3600.0):
    # A look at the processes would fail.
    watch = watches.StallWatch(states, limit, restarts.RestartPolicy(), print)
    watch.look(local_cluster.LocalCluster('unused'))


def test_the_signals_that_a_process_handles():
  assert signal.SIGKILL not in watches.caught_signals(os.getpid())
  previous = signal.signal(process.STACKS_SIGNAL, lambda *args: None)
  try:
    assert process.STACKS_SIGNAL in watches.caught_signals(os.getpid())
  finally:
    signal.signal(process.STACKS_SIGNAL, previous)
  assert watches.caught_signals(2**22 + 1) == set()


def test_who_runs_or_is_gone_is_not_stopped():
  assert not watches.is_stopped(os.getpid())
  assert not watches.is_stopped(2**22 + 1)


def _run_to_end(tmp_path, codes, last='training', secs=1.0, limit_secs=0.3,
         delay_secs=0.0):
  """Watches a program for each task; returns the cluster and the lines said.

  `last` is the worker's last event; None: it writes none.
  """
  said = []
  states = task_states.TaskStates(tmp_path, [f'{job}:0' for job in codes])
  watch = watches.LeftBehindWatch(states, limit_secs, said.append)
  policy = restarts.RestartPolicy(restarts.parse('worker=on_failure'),
                                  delay_secs=delay_secs)
  with local_cluster.LocalCluster(tmp_path / 'logs', policy=policy) as cluster:
    for job, code in codes.items():
      role = cluster.start(
          cluster_config.Task(job, 0), [sys.executable, '-c', code], {})
      if job == 'worker' and last is not None:
        name, *details = last.split()
        event_log.EventLog(tmp_path, role.task.name, role.pid).write(
            name, **dict.fromkeys(details, True))
    states.update()
    deadline = time.monotonic() + _LIMIT
    # Else the watch may end a worker that has not had the time to fail.
    while any(r.status is None for r in cluster.roles
              if codes[r.task.type] != _HANGS):
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
  cluster, said = _run_to_end(
      tmp_path, {**_OTHERS, 'worker': _HANGS}, last, _LIMIT, limit_secs)
  worker = cluster.roles[-1]
  assert (worker.status, worker.num_restarts) == (-9, 0)
  assert worker.reasons == [
      'still ran after the chief and the parameter servers']
  line, = said
  assert line.startswith('worker:0 still runs 0.3 s after the chief and the ')
  assert 'the run is complete without it.' in line


def test_a_worker_that_would_start_again_is_given_up(tmp_path):
  cluster, _ = _run_to_end(tmp_path, {**_OTHERS, 'worker': _FAILS}, secs=_LIMIT,
                    delay_secs=100.0)
  worker = cluster.roles[-1]
  assert worker.status == 137 and cluster.lost == [worker]
  assert worker.reasons[0] == 'ended with status 137'


@pytest.mark.parametrize('codes, last', [
    ({**_OTHERS, 'worker': _HANGS}, 'ended'),
    ({**_OTHERS, 'worker': _HANGS}, 'training ends_task'),
    ({**_OTHERS, 'worker': _HANGS}, None),  # It has ten times as long.
    ({**_OTHERS, 'ps': _HANGS, 'worker': _HANGS}, 'training'),
    ({**_OTHERS, 'chief': _HANGS, 'worker': _HANGS}, 'training'),
    ({'chief': _ENDS, 'worker': _HANGS}, 'training')],
                         ids=['trained', 'hook alone', 'unknown', 'ps', 'chief',
                              'no ps'])
def test_a_worker_that_may_have_work_to_do_is_left(tmp_path, codes, last):
  cluster, said = _run_to_end(tmp_path, codes, last)
  assert not said and not cluster.lost
