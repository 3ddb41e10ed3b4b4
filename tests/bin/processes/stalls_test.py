# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs in which nobody makes a step."""

import os
import signal
import sys
import textwrap
import time

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import stalls
from tfplugin.bin.processes import task_states
from tfplugin.distribute import cluster_config
from tfplugin.events import event_log
from tfplugin.events import process

_LIMIT = 60
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


def _wait_for(files):
  deadline = time.monotonic() + _LIMIT
  while not all(file.exists() for file in files):
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
    _wait_for(came)
    if stop is not None:
      os.kill(cluster.roles[stop].pid, signal.SIGSTOP)
    watch = stalls.StallWatch(states, 0.3, policy, said.append)

    def look():
      states.update()
      watch.look(cluster)
      # A start takes longer than the limit: one stall is enough.
      if any(role.num_restarts for role in cluster.roles):
        watch.look = lambda cluster: None
        if stop is not None:
          for role in cluster.roles:
            role.signal(signal.SIGTERM)

    try:
      cluster.wait(while_waiting=look, timeout=_LIMIT)
    except (stalls.StallError, local_cluster.RoleError) as e:
      return cluster.roles, said, e
  return cluster.roles, said, None


def test_a_run_that_stalls_says_who_waits_for_whom_and_where(tmp_path):
  roles, said, error = _run(tmp_path, 'never')
  assert said[0] == 'No task has made a step for 0.3 s:'
  assert said[1].startswith('  chief:0 waits for ps:0 (')
  assert said[2].startswith('  worker:0 waits for ps:0 (')
  assert isinstance(error, stalls.StallError)
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
    watch = stalls.StallWatch(states, limit, restarts.RestartPolicy(), print)
    watch.look(local_cluster.LocalCluster('unused'))


def test_the_signals_that_a_process_handles():
  assert signal.SIGKILL not in stalls.caught_signals(os.getpid())
  previous = signal.signal(process.STACKS_SIGNAL, lambda *args: None)
  try:
    assert process.STACKS_SIGNAL in stalls.caught_signals(os.getpid())
  finally:
    signal.signal(process.STACKS_SIGNAL, previous)
  assert stalls.caught_signals(2**22 + 1) == set()


def test_who_runs_or_is_gone_is_not_stopped():
  assert not stalls.is_stopped(os.getpid())
  assert not stalls.is_stopped(2**22 + 1)
