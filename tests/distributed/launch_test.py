# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-launch with a user's program in real processes."""

import os
import pathlib
import sys
import textwrap
import threading

import pytest
import tensorflow as tf

from tests.forks import forked_programs
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import ports
from tfplugin.report import outcome
from tfplugin.report.reading import run_data

# Not forked: who may reach a task goes by the environment that it began with.
pytestmark = pytest.mark.distributed

_ROOT = pathlib.Path(__file__).absolute().parents[2]
# As a user has it: only the import, which gives Estimator to TensorFlow since
# 2.16, knows of tfplugin. Its ps never ends.
_PROGRAM = textwrap.dedent('''
    import sys
    import tensorflow as tf
    import tfplugin
    tf1 = tf.compat.v1

    def model_fn(features, labels, mode):
      weight = tf1.get_variable('weight', [])
      loss = tf.square(weight - 3.0)
      train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
          loss, global_step=tf1.train.get_global_step())
      return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
      return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()

    config = tf.estimator.RunConfig(
        model_dir=sys.argv[1], experimental_max_worker_delay_secs=0)
    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn, config=config),
        tf.estimator.TrainSpec(input_fn, max_steps=60),
        tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                              throttle_secs=1))
    print('done as', config.task_type)
    ''')


def _options(tmp_path, program, *arguments, **kwargs):
  path = tmp_path / 'program.py'
  path.write_text(program)
  return launch_options.LaunchOptions(
      command=(sys.executable, str(path), *arguments),
      logs_dir=str(tmp_path / 'logs'), **kwargs)


def test_a_users_program_runs_as_a_cluster(tmp_path, monkeypatch):
  # Python finds what lies beside a program, not in the working directory.
  monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
      [str(_ROOT), *filter(None, sys.path)]))
  lines = []
  model_dir = str(tmp_path / 'model')
  launch_lib.launch(
      _options(tmp_path, _PROGRAM, model_dir, workers=0, evaluator=True),
      lines.append)
  # 60 or a few more steps of w -= .2 * (w - 3): |w - 3| < 10 * .8 ** 60.
  weight = tf.train.load_checkpoint(model_dir).get_tensor('weight')
  assert weight == pytest.approx(3.0, abs=1e-4)
  assert 'chief:0| done as chief' in lines
  for task in ('chief', 'evaluator'):
    log = (tmp_path / 'logs' / f'{task}-0.log').read_text()
    assert f'done as {task}' in log
  assert (tmp_path / 'logs' / 'ps-0.log').exists()
  assert not forked_programs.left()


_BY_TASK = textwrap.dedent('''
    import json, os, sys, time
    task = json.loads(os.environ['TF_CONFIG'])['task']
    if task['type'] == 'ps':
      time.sleep(120)
    if f"{task['type']}:{task['index']}" in sys.argv[1:]:
      raise SystemExit('no space left')
    time.sleep(1)
    ''')


def test_a_dead_chief_ends_the_run(tmp_path):
  with pytest.raises(local_cluster.RoleError,
                     match='chief:0 ended with status 1(.|\n)*no space left'):
    launch_lib.launch(_options(tmp_path, _BY_TASK, 'chief:0', workers=1))
  assert not forked_programs.left()


def test_a_dead_worker_ends_the_run_if_asked(tmp_path):
  with pytest.raises(local_cluster.RoleError, match='worker:1 ended'):
    launch_lib.launch(_options(tmp_path, _BY_TASK, 'worker:1', workers=2, ps=0,
                               keep_going=False))
  assert not forked_programs.left()


# A chief that trains, as its events say, until a signal ends it.
_TRAINS = textwrap.dedent("""
    import json, os, pathlib, sys, time
    task = json.loads(os.environ['TF_CONFIG'])['task']['type']
    events = pathlib.Path(sys.argv[2], 'events', 'chief-0.jsonl')
    if task == 'chief':
      events.parent.mkdir()
      events.write_text(json.dumps({
          'version': 1, 'time': time.time(), 'pid': os.getpid(),
          'task': 'chief:0', 'name': 'training', 'kind': 'begin', 'step': 7,
          'session': int(os.environ['TFPLUGIN_SESSION'])}) + '\\n')
    while task != sys.argv[1] or not events.exists():
      time.sleep(.01)
    raise SystemExit('no space left')
    """)


@pytest.mark.parametrize('job', ['ps', 'worker'])
def test_the_report_says_that_the_run_failed(tmp_path, job):
  model_dir = str(tmp_path / 'model')
  with pytest.raises(local_cluster.RoleError, match=f'{job}:0 ended with st'):
    launch_lib.launch(_options(
        tmp_path, _TRAINS, job, model_dir, model_dir=model_dir,
        keep_going=False))
  section = outcome.measure(run_data.read(model_dir), {'goodput': None})
  assert [(s['number'], s['outcome']) for s in section['sessions']] == [
      (1, 'failed at step 7')]


def test_the_run_goes_on_without_a_worker(tmp_path):
  lines = []
  launch_lib.launch(
      _options(tmp_path, _BY_TASK, 'worker:1', workers=2, ps=0), lines.append)
  assert any('worker:1 ended with status 1; the run continues' in line
             for line in lines)
  assert not forked_programs.left()


def test_an_evaluator_that_does_not_end_is_ended(tmp_path):
  lines = []
  program = textwrap.dedent('''
      import os, time
      time.sleep(120 if 'evaluator' in os.environ['TF_CONFIG'] else 0)
      ''')
  launch_lib.launch(
      _options(tmp_path, program, workers=0, ps=0, evaluator=True,
               evaluator_limit_secs=0.5), lines.append)
  assert any('evaluator was still running 0.5 s' in line for line in lines)
  assert not forked_programs.left()


@pytest.mark.sampled(3)
def test_a_task_is_reached_at_its_own_address_alone(tmp_path, filters_allowed):
  program = textwrap.dedent('''
      import socket, sys, time
      import tensorflow as tf
      resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
      address = resolver.cluster_spec().task_address('chief', 0)
      server = tf.distribute.Server(resolver.cluster_spec(), 'chief', 0)
      port = int(address.rpartition(':')[2])

      def is_reached(host):
        try:
          socket.create_connection((host, port), timeout=0.5).close()
        except OSError:
          return False
        return True

      deadline = time.monotonic() + 60
      while is_reached('127.0.0.1') and time.monotonic() < deadline:
        time.sleep(0.05)
      print('at', address, [is_reached(f'127.0.0.{i}') for i in (1, 2, 3)])
      ''')
  lines = []
  launch_lib.launch(
      _options(tmp_path, program, workers=0, ps=0, bind='127.0.0.2'),
      lines.append)
  assert any(line.startswith('chief:0| at 127.0.0.2:') and
             line.endswith('[False, True, False]') for line in lines)


@pytest.mark.sampled(4)
def test_a_run_on_two_machines(tmp_path, monkeypatch):
  # Two addresses of this machine play them, and nobody's restart is waited for.
  monkeypatch.setattr(launch_lib, 'AWAY_SECS', 1.0)
  monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
      [str(_ROOT), *filter(None, sys.path)]))
  hosts = ('127.0.0.1', '127.0.0.2')
  model_dir = str(tmp_path / 'model')
  port = next(first for first in ports.pick_free(20)
              if all(ports.is_free(first + i) for i in range(3)))
  lines = {host: [] for host in hosts}
  launches = [
      threading.Thread(target=launch_lib.launch, daemon=True, args=(_options(
          tmp_path, _PROGRAM, model_dir, hosts=hosts, host=host, port=port,
          model_dir=model_dir), lines[host].append)) for host in hosts]
  for launch in launches:
    launch.start()
  for launch in launches:
    launch.join(250)
    assert not launch.is_alive()
  # Each had its task that trains; the first the ps, too, which never ends.
  for host, task in zip(hosts, ('chief', 'worker')):
    assert any(line == f'{task}:0| done as {task}' for line in lines[host])
    assert (tmp_path / 'logs' / f'summary-{host}.json').exists()
  assert any(line.startswith('ps:0     ended') for line in lines[hosts[0]])
  weight = tf.train.load_checkpoint(model_dir).get_tensor('weight')
  assert weight == pytest.approx(3.0, abs=1e-4)
  assert not forked_programs.left()
