# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a local cluster's supervision; small programs play the roles."""

import os
import signal
import sys
import textwrap
import time

import psutil
import pytest
import tensorflow as tf

from tests.compat import fresh_processes
from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

_LIMIT = 60
_SLEEP = 'import time; time.sleep(120)'
# Starts a child in a session of its own, which no signal to a group reaches.
_WITH_CHILD = ('import subprocess, sys, time; subprocess.Popen([sys.executable,'
               f' "-c", {_SLEEP!r}], start_new_session=True); '
               'print("started", flush=True); time.sleep(120)')

_HAS_ESTIMATOR = tf.__version__.startswith('2.15.')
# What programs without `import tfplugin` do.
_USES_OF_ESTIMATOR = (
    'import tensorflow as tf; tf.estimator.Estimator',
    'import tensorflow.compat.v1 as tf; tf.estimator.Estimator',
    'import tensorflow as tf; tf.compat.v1.estimator.Estimator',
    'from tensorflow import estimator',
    'from tensorflow.compat.v1 import estimator',
    'import tensorflow.estimator',
    'from tensorflow.estimator import Estimator',
    'from tensorflow.python.estimator import run_config',
)

CHIEF = cluster_config.Task('chief', 0)
WORKER = cluster_config.Task('worker', 0)
PS = cluster_config.Task('ps', 0)


def _start(cluster, task, code):
  return cluster.start(task, [sys.executable, '-c', code], {})


def _wait_until(condition, secs=_LIMIT):
  deadline = time.monotonic() + secs
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.02)


def _wait(cluster):
  """Waits until no role but parameter servers runs."""
  deadline = time.monotonic() + _LIMIT
  for running in cluster.rounds():
    assert time.monotonic() < deadline, running
    if running <= {'ps'}:
      break


def _is_alive(pid):
  try:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False


def test_a_program_that_finds_no_estimator_is_told_the_remedy(tmp_path):
  results = fresh_processes.run('import tensorflow', _USES_OF_ESTIMATOR)
  with local_cluster.LocalCluster(tmp_path) as cluster:
    roles = [_start(cluster, cluster_config.Task('chief', index),
                    f'import sys; sys.exit({result.errors!r})')
             for index, result in enumerate(results)]
    assert all(role.wait(_LIMIT) for role in roles)
  for program, result, role in zip(_USES_OF_ESTIMATOR, results, roles):
    assert bool(result.errors) is not _HAS_ESTIMATOR, program
    told = 'add `import tfplugin` below' in role.describe_failure()
    assert told is not _HAS_ESTIMATOR, program


def test_another_error_has_no_remedy_of_estimators(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    role = _start(cluster, CHIEF, 'import sys; sys.exit("my estimator is bad")')
    assert role.wait(_LIMIT)
  assert 'import tfplugin' not in role.describe_failure()


def test_a_ps_is_not_waited_for_and_ends_with_the_context(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    ps = _start(cluster, PS, _SLEEP)
    _start(cluster, CHIEF, 'pass')
    _wait(cluster)
    assert ps.status is None
  assert ps.status == -signal.SIGTERM


@pytest.mark.parametrize('task', [CHIEF, PS])
def test_a_dead_role_ends_the_run_with_its_last_lines(tmp_path, task):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    other = _start(cluster, cluster_config.Task('chief', 1), _SLEEP)
    _start(cluster, task, 'raise SystemExit("the disk is full")')
    with pytest.raises(local_cluster.RoleError,
                       match=f'{task.name} ended with status 1(.|\n)*full'):
      _wait(cluster)
  assert not _is_alive(other.pid)


def test_the_last_lines_are_not_those_of_an_earlier_run(tmp_path):
  (tmp_path / 'chief-0.log').write_text('the disk was full once\n')
  with local_cluster.LocalCluster(tmp_path) as cluster:
    _start(cluster, CHIEF, 'raise SystemExit(3)')
    with pytest.raises(local_cluster.RoleError,
                       match=r'status 3.*chief-0.log:\n\(The log is empty'):
      _wait(cluster)


def test_the_run_goes_on_without_a_worker(tmp_path):
  lost = []
  with local_cluster.LocalCluster(tmp_path, on_lost=lost.append) as cluster:
    worker = _start(cluster, WORKER, _SLEEP)
    _start(cluster, CHIEF, 'import time; time.sleep(.5)')
    os.kill(worker.pid, signal.SIGKILL)
    _wait(cluster)
  assert lost == cluster.lost == [worker]
  assert worker.describe_end() == 'was ended by SIGKILL'


def test_the_end_of_an_evaluator_ends_no_run(tmp_path):
  lost = []
  with local_cluster.LocalCluster(tmp_path, on_lost=lost.append) as cluster:
    evaluator = _start(cluster, cluster_config.Task('evaluator', 0),
                       'raise SystemExit(1)')
    _start(cluster, CHIEF, 'import time; time.sleep(.5)')
    _wait(cluster)
  assert lost == cluster.lost == [evaluator]
  assert cluster.failed is None


def _policy(**kwargs):
  return restarts.RestartPolicy(restarts.parse('on_failure'), delay_secs=0.0,
                                **kwargs)


def test_a_killed_role_starts_again_until_it_may_no_more(tmp_path):
  code = 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)'
  told = []
  with local_cluster.LocalCluster(
      tmp_path, policy=_policy(max_restarts=2),
      on_restart=lambda *args: told.append(args)) as cluster:
    chief = _start(cluster, CHIEF, code)
    with pytest.raises(local_cluster.RoleError, match='ended by SIGKILL'):
      _wait(cluster)
  assert told == [(chief, 0.0)] * 2
  assert chief.num_restarts == 2
  assert chief.reasons == ['was ended by SIGKILL'] * 3
  assert cluster.failed is chief


def test_those_without_a_ps_start_again_together(tmp_path):
  came = tmp_path / 'came'
  worker_code = textwrap.dedent(f'''
      import os, pathlib, signal
      came = pathlib.Path({str(came)!r})
      if not came.exists():
        came.touch()
        os.kill(os.getpid(), signal.SIGKILL)
      ''')
  # The first waits for the worker, who never comes.
  chief_code = textwrap.dedent(f'''
      import pathlib, time
      time.sleep(0 if pathlib.Path({str(came)!r}).exists() else 120)
      ''')
  with local_cluster.LocalCluster(
      tmp_path, policy=_policy(is_together=True)) as cluster:
    chief = _start(cluster, CHIEF, 'import time; time.sleep(120)')
    chief.command[-1] = chief_code
    worker = _start(cluster, WORKER, worker_code)
    _wait(cluster)
  assert (chief.status, chief.num_restarts) == (0, 1)
  assert (worker.status, worker.num_restarts) == (0, 1)
  assert chief.reasons == ['was restarted with worker:0']


def test_one_that_has_ended_starts_again_with_the_others(tmp_path):
  came = tmp_path / 'came'
  with local_cluster.LocalCluster(
      tmp_path, policy=_policy(is_together=True)) as cluster:
    worker = _start(cluster, WORKER, 'pass')
    _wait_until(lambda: worker.poll() == 0)
    chief = _start(cluster, CHIEF, textwrap.dedent(f'''
        import os, pathlib, signal
        came = pathlib.Path({str(came)!r})
        if not came.exists():
          came.touch()
          os.kill(os.getpid(), signal.SIGKILL)
        '''))
    _wait(cluster)
  assert (chief.status, chief.num_restarts) == (0, 1)
  assert (worker.status, worker.num_restarts) == (0, 1)
  assert worker.reasons == ['was restarted with chief:0']


def test_the_first_failure_comes_first(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    _start(cluster, CHIEF, 'import time; time.sleep(1); '
                           'raise SystemExit("nobody answers")')
    _start(cluster, WORKER, 'raise SystemExit("no space left")')
    with pytest.raises(local_cluster.RoleError,
                       match='^worker:0 ended(.|\n)*no space left\n\nLater '
                             'chief:0 ended(.|\n)*nobody answers$'):
      _wait(cluster)


def test_the_same_end_of_several_is_told_once(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    for task in (WORKER, CHIEF):
      role = _start(cluster, task,
                    'import os\nprint(os.getpid(), flush=True)\nnope')
      os.waitid(os.P_PID, role.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(local_cluster.RoleError) as raised:
      _wait(cluster)
  told = str(raised.value)
  assert told.startswith('worker:0 ended with status 1. The last lines of ')
  assert told.count('Traceback') == 1
  assert told.endswith('\nworker:0, chief:0 ended alike.')


def test_of_two_that_end_at_once_the_one_that_wrote_first_comes_first(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    roles = [_start(cluster, cluster_config.Task('chief', index), 'exit(1)')
             for index in range(2)]
    for role, time_ in zip(roles, (2000, 1000)):
      os.waitid(os.P_PID, role.pid, os.WEXITED | os.WNOWAIT)
      os.utime(role.log_path, (time_, time_))
    with pytest.raises(local_cluster.RoleError, match='^chief:1 ended'):
      cluster.check()


def test_a_ps_lives_until_the_others_have_ended(tmp_path):
  # As a chief that saves what the ps holds when it is told to end.
  code = textwrap.dedent('''
      import os, signal, sys, time
      def end(*args):
        time.sleep(.5)
        os.kill(int(sys.argv[1]), 0)
        print('the ps is there', flush=True)
        sys.exit(0)
      signal.signal(signal.SIGTERM, end)
      print('ready', flush=True)
      time.sleep(120)
      ''')
  with local_cluster.LocalCluster(tmp_path) as cluster:
    ps = _start(cluster, PS, _SLEEP)
    chief = cluster.start(CHIEF, [sys.executable, '-c', code, str(ps.pid)], {})
    _wait_until(lambda: 'ready' in chief.log_path.read_text())
  assert chief.status == 0
  assert 'the ps is there' in chief.log_path.read_text()
  assert ps.status == -signal.SIGTERM


def test_a_role_that_ignores_sigterm_is_killed(tmp_path):
  code = ('import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); '
          f'print("deaf", flush=True); {_SLEEP}')
  with local_cluster.LocalCluster(tmp_path, grace_secs=0.3) as cluster:
    role = _start(cluster, CHIEF, code)
    _wait_until(lambda: 'deaf' in role.log_path.read_text())
    cluster.end()
  assert role.status == -signal.SIGKILL


def test_what_a_role_started_in_another_session_ends_too(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    role = _start(cluster, CHIEF, _WITH_CHILD)
    _wait_until(lambda: 'started' in role.log_path.read_text())
    child, = psutil.Process(role.pid).children()
  _wait_until(lambda: not _is_alive(child.pid))


def _guard():
  """Returns the guard's process, which has no arguments while it begins."""
  found = []

  def is_found():
    found[:] = [p for p in psutil.Process().children()
                if 'guard.py' in ' '.join(p.cmdline())]
    return len(found) == 1

  _wait_until(is_found)
  return found[0]


def test_a_dead_guard_is_replaced_and_knows_the_roles(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    _start(cluster, CHIEF, _SLEEP)
    first = _guard()
    first.kill()
    first.wait(_LIMIT)
    cluster.check()
    assert _guard().pid != first.pid


@pytest.fixture
def started(tmp_path):
  """A launcher of two roles; it imports TensorFlow, maybe from a busy disk."""
  code = textwrap.dedent(f'''
      import sys
      from tfplugin.bin.processes import local_cluster
      from tfplugin.distribute import cluster_config
      with local_cluster.LocalCluster({str(tmp_path)!r}) as cluster:
        for task, code in ((cluster_config.Task('chief', 0), {_WITH_CHILD!r}),
                           (cluster_config.Task('worker', 0), {_SLEEP!r})):
          cluster.start(task, [sys.executable, '-c', code], {{}})
        list(cluster.rounds())
      ''')
  log = tmp_path / 'chief-0.log'
  with psutil.Popen([sys.executable, '-c', code]) as launcher:
    try:
      _wait_until(lambda: log.exists() and 'started' in log.read_text(), 120)
      _wait_until(lambda: len(launcher.children(recursive=True)) >= 4)
      yield launcher
    finally:
      if launcher.is_running():  # The guard ends the roles.
        launcher.kill()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    'number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_process_is_left_at_its_end(signal_handlers, started, number):
  processes = started.children(recursive=True)
  started.send_signal(number)
  assert started.wait(_LIMIT) != 0
  assert not psutil.wait_procs(processes, timeout=_LIMIT)[1]
