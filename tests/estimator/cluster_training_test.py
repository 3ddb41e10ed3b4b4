# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the cluster's start and end, with servers in this process."""

import json
import os
import signal
import threading
import time
from concurrent import futures

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.bin.processes import ports
from tfplugin.checkpoints import model_dir_lock
from tfplugin.estimator import cluster_training
from tfplugin.events import event_files
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import waits

tf1 = tf.compat.v1


def _model_fn(features, labels, mode):
  del features, labels
  weight = tf1.get_variable('weight', initializer=4.0)
  loss = tf.square(weight)
  train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
      loss, global_step=tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _run(model_dir, strategy=None, listeners=(), max_steps=3, hooks=(),
         **kwargs):
  def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()

  config = tf.estimator.RunConfig(str(model_dir), train_distribute=strategy,
                                  experimental_max_worker_delay_secs=0)
  return cluster_training.train_and_evaluate(
      tf.estimator.Estimator(_model_fn, config=config),
      tf.estimator.TrainSpec(input_fn, max_steps, hooks, listeners),
      tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                            throttle_secs=0), **kwargs)


def _set_task(monkeypatch, cluster, task_type):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': 0}}))


def test_a_process_alone_trains_as_with_tensorflow(tmp_path):
  metrics, _ = _run(tmp_path)
  # w = 4, 2, 1, 1/2: each step takes .25 * 2 * w away.
  assert metrics['loss'] == pytest.approx(0.25)
  assert metrics['global_step'] == 3


def test_a_ps_ends_when_all_have_reported(monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  spec = tf.train.ClusterSpec(cluster)
  _set_task(monkeypatch, cluster, 'ps')
  reporter = threading.Thread(target=lambda: [
      task_records.report_finished(spec, name)
      for name in ('worker:0', 'chief:0')])
  reporter.start()
  assert _run(tmp_path) is None
  reporter.join()
  # TensorFlow would say that another process listens on the port.
  with pytest.raises(RuntimeError, match=(
      'must call `train_and_evaluate` once. Received: .* ps:0, at .* Start')):
    _run(tmp_path, max_steps=6)


def test_what_is_made_of_tf_config_is_said_at_the_start(
    monkeypatch, tmp_path, caplog):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['algo-1']},
      'task': {'type': 'chief', 'index': '0'}}))
  caplog.set_level('INFO', 'tensorflow')
  _run(tmp_path, distribute.ElasticAverageStrategy(communication_period=1))
  line, = (r.getMessage() for r in caplog.records
           if r.getMessage().startswith('tfplugin on TF_CONFIG: '))
  event = event_files.read_file(
      event_files.path_of(tmp_path, 'chief:0')).events[0]
  assert (event.name, event.kind) == ('starting', 'begin')
  # The strategy has set TF_CONFIG anew.
  assert event.details['cluster'] == (
      'chief:0 is the only task: one process trains alone.')
  assert line == f'tfplugin on TF_CONFIG: {event.details["cluster"]}'


def test_a_worker_that_has_gone_makes_no_complete_training_an_error(
    monkeypatch, tmp_path, caplog):
  cluster = ports.make_cluster(1, 2)
  servers = [tf.distribute.Server(cluster, 'ps', index) for index in (0, 1)]
  spec = tf.train.ClusterSpec(cluster)
  _set_task(monkeypatch, cluster, 'chief')
  _run(tmp_path, finish_limit_secs=0.2)
  assert 'chief:0 waited 0.2 s for the last step of worker:0' in caplog.text
  reader = tf.train.load_checkpoint(str(tmp_path))
  assert reader.get_tensor('weight') == pytest.approx(0.5)
  for index in (0, 1):  # Where each ps reads its end.
    waits.wait_for_tasks(spec, ['chief:0', 'worker:0'], 'ps', 1.0, index)
  assert (tmp_path / 'chief.finished').exists()
  del servers


def test_a_synchronous_start_has_the_limit_of_starts(monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, 'ps', 0)
  _set_task(monkeypatch, cluster, 'chief')
  with futures.ThreadPoolExecutor(1) as pool, pytest.raises(
      tf.errors.InvalidArgumentError,
      match='task_index 0 waited 0.5 s for the start of'):
    pool.submit(_run, tmp_path, distribute.ElasticAverageStrategy(
        synchronous=True), start_limit_secs=0.5).result(60.0)
  del server


def test_an_evaluator_ends_when_the_chief_has_gone(
    monkeypatch, tmp_path, caplog):
  _run(tmp_path)  # Leaves a checkpoint of step 3.
  _set_task(monkeypatch, ports.make_cluster(0, 1), 'evaluator')
  assert _run(tmp_path, max_steps=4, contact_limit_secs=0.2) is None
  assert 'evaluator:0 waited 0.2 s for a sign of chief:0' in caplog.text
  assert list((tmp_path / 'eval').glob('events*'))


class _Listener(tf1.train.CheckpointSaverListener):
  """Notes what it is told."""

  def __init__(self):
    self.told = []

  def begin(self):
    self.told.append('begin')

  def before_save(self, session, global_step_value):
    self.told.append(f'before {global_step_value}')

  def after_save(self, session, global_step_value):
    self.told.append(f'after {global_step_value}')

  def end(self, session, global_step_value):
    self.told.append(f'end {global_step_value}')


@pytest.mark.parametrize('make_strategy', [
    lambda: None,
    tf1.distribute.experimental.ParameterServerStrategy,
    lambda: distribute.ElasticAverageStrategy(communication_period=1),
], ids=['none', 'ParameterServerStrategy', 'ElasticAverageStrategy'])
def test_the_last_checkpoint_waits_for_the_workers(
    make_strategy, monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'chief')

  def update_late():
    # The chief has trained to its last step when it asks for the worker.
    with tf.Graph().as_default(), tf1.device('/job:ps'):
      weight = tf1.get_variable('weight', [])
      step = tf1.train.create_global_step()
      alone = tf1.ConfigProto(device_filters=['/job:ps'])
      with tf1.Session(server.target, config=alone) as session:
        while (session.run(tf1.report_uninitialized_variables()).size or
               session.run(step) < 3):
          time.sleep(0.05)
        session.run(weight.assign(7.0))
    task_records.report_finished(tf.train.ClusterSpec(cluster), 'worker:0')

  worker = threading.Thread(target=update_late, daemon=True)
  worker.start()
  listener = _Listener()
  # In a thread of its own: TensorFlow keeps a strategy's server for that.
  with futures.ThreadPoolExecutor(1) as pool:
    pool.submit(_run, tmp_path, make_strategy(), [listener],
                finish_limit_secs=60.0).result(120.0)
  worker.join(60.0)
  assert listener.told == ['begin', 'before 0', 'after 0', 'before 3',
                           'after 3', 'end 3']
  reader = tf.train.load_checkpoint(str(tmp_path))
  assert reader.get_tensor('weight') == 7.0


def test_a_worker_that_waits_for_the_last_checkpoint_gets_it(
    monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'chief')

  def report_late():
    while not (tmp_path / 'model.ckpt-3.index').exists():
      time.sleep(0.05)
    task_records.report_finished(tf.train.ClusterSpec(cluster), 'worker:0')

  worker = threading.Thread(target=report_late, daemon=True)
  worker.start()
  # Either waits for the other, for half of this.
  _run(tmp_path, finish_limit_secs=16.0)
  worker.join(20.0)
  assert not worker.is_alive()
  del server


def test_a_damaged_checkpoint_is_not_taken_for_the_end(tmp_path, caplog):
  _run(tmp_path)
  (tmp_path / 'model.ckpt-3.data-00000-of-00001').write_bytes(b'')
  with caplog.at_level('WARNING', 'tensorflow'):
    metrics, _ = _run(tmp_path)
  assert metrics['loss'] == pytest.approx(0.25)
  assert 'Training continues from' in caplog.text


def test_a_second_run_is_kept_out(tmp_path):
  with model_dir_lock.locked(str(tmp_path), 'worker:0'):
    with pytest.raises(RuntimeError, match=(
        'is in use by worker:0 .process .* on .*choose another dir')):
      _run(tmp_path)
  _run(tmp_path)


def test_a_worker_names_the_chief_that_does_not_start(monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'worker')
  with pytest.raises(TimeoutError, match='worker:0 waited 0.2 s for chief:0'):
    _run(tmp_path, start_limit_secs=0.2)
  del server


def test_a_worker_that_finds_the_work_done_reports(monkeypatch, tmp_path):
  _run(tmp_path)
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'worker')
  _run(tmp_path)
  waits.wait_for_tasks(tf.train.ClusterSpec(cluster), ['worker:0'],
                              'chief:0', 5.0)
  del server


def test_a_canned_linear_model_that_cannot_be_placed_is_explained(
    monkeypatch, tmp_path):
  cluster = ports.make_cluster(0, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'chief')

  def input_fn():
    return tf.data.Dataset.from_tensors(({'x': [[1.0]]}, [[1.0]])).repeat()

  def make(session_config):
    return tf1.estimator.LinearRegressor(
        [tf.feature_column.numeric_column('x')],
        config=tf.estimator.RunConfig(str(tmp_path),
                                      session_config=session_config))

  with pytest.raises(RuntimeError, match=(
      '(?s)must be placed with the variable.*Received: .*zero_fraction.*'
      r'`allow_soft_placement=True`.*disable_control_flow_v2\(\)`')):
    cluster_training.train_and_evaluate(
        make(tf1.ConfigProto()), tf.estimator.TrainSpec(input_fn, max_steps=1),
        tf.estimator.EvalSpec(input_fn, steps=1))
  # The chief's server is there now.
  make(tf1.ConfigProto(allow_soft_placement=True)).train(input_fn, max_steps=1)
  assert tf.train.latest_checkpoint(str(tmp_path)).endswith('-1')
  del server


def _told(model_dir, task):
  path = event_files.path_of(model_dir, task)
  return [(e.name, e.kind) for e in event_files.read_file(path).events]


def test_a_run_tells_what_it_did(tmp_path):
  _run(tmp_path)
  told = _told(tmp_path, 'chief:0')
  assert [event for event in told if event[0] != 'saving'] == [
      ('starting', 'begin'), ('starting', 'end'), ('training', 'begin'),
      ('training', 'end'), ('ended', 'instant')]
  assert told.count(('saving', 'begin')) == told.count(('saving', 'end')) > 0


def test_a_task_that_waits_in_vain_tells_for_whom(monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  _set_task(monkeypatch, cluster, 'worker')
  with pytest.raises(TimeoutError):
    _run(tmp_path, start_limit_secs=0.2)
  events = event_files.read_file(
      event_files.path_of(tmp_path, 'worker:0')).events
  assert [(e.name, e.kind) for e in events] == [
      ('starting', 'begin'), ('waiting', 'begin'), ('waiting', 'end'),
      ('dying', 'instant')]
  assert events[1].details == {'on': ['chief:0']}
  assert events[-1].details['error'] == 'TimeoutError'
  del server


class _SignalAtStep(tf1.train.SessionRunHook):
  """Sends this process a signal in its second step."""

  def __init__(self, number):
    self._numbers = [0, number]  # 0 is no signal.

  def after_run(self, run_context, run_values):
    if self._numbers:
      os.kill(os.getpid(), self._numbers.pop(0))


@pytest.mark.parametrize('number, error, status', [
    (signal.SIGTERM, SystemExit, 143),
    (signal.SIGINT, KeyboardInterrupt, None)])
def test_a_signal_ends_the_training_with_a_last_checkpoint(
    signal_handlers, tmp_path, number, error, status):
  before = signal.getsignal(number)
  with pytest.raises(error) as ended:
    _run(tmp_path, hooks=[_SignalAtStep(number)])
  assert getattr(ended.value, 'code', None) == status
  assert signal.getsignal(number) is before
  # Of three steps two were made: w = 4, 2, 1.
  reader = tf.train.load_checkpoint(str(tmp_path))
  assert reader.get_tensor('global_step') == 2
  assert reader.get_tensor('weight') == pytest.approx(1.0)
  told = _told(tmp_path, 'chief:0')
  assert [name for name, _ in told if 'stop' in name] == ['stopping', 'stopped']


@pytest.mark.parametrize('task_type', ['ps', 'chief'])
def test_an_occupied_port_is_named(monkeypatch, tmp_path, task_type):
  cluster = ports.make_cluster(0, 1)
  server = tf.distribute.Server(cluster, job_name=task_type, task_index=0)
  _set_task(monkeypatch, cluster, task_type)
  with pytest.raises(RuntimeError, match=(
      f'The port of {task_type}:0 in `TF_CONFIG` must be free. Received: '
      f"'{cluster[task_type][0]}', where")):
    _run(tmp_path)
  del server
