# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which task a process is, with and without a strategy.

And of the warnings about who evaluates: who is warned, and the remedy.
"""

import json

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.staleness import drop_stale_gradient_strategy
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1

_CLUSTER = {'chief': ['a:1'], 'worker': ['b:2', 'c:3'], 'ps': ['d:4', 'e:5']}
_CLUSTER_SPEC = tf.train.ClusterSpec(_CLUSTER)


def _set_tf_config(monkeypatch, job, index):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': _CLUSTER, 'task': {'type': job, 'index': index}}))


def _config(with_strategy):
  strategy = (drop_stale_gradient_strategy.DropStaleGradientStrategy(
      staleness=0) if with_strategy else None)
  return tf.estimator.RunConfig('unused', train_distribute=strategy)


@pytest.mark.parametrize('with_strategy', [False, True])
@pytest.mark.parametrize('job, index, master, is_chief', [
    ('chief', 0, 'grpc://a:1', True),
    ('worker', 1, 'grpc://c:3', False),
    ('ps', 1, 'grpc://e:5', False),
    ('evaluator', 0, '', False),
])
def test_the_task_is_that_of_tf_config(
    monkeypatch, job, index, master, is_chief, with_strategy):
  _set_tf_config(monkeypatch, job, index)
  config = _config(with_strategy)
  task = cluster_task.from_config(config)
  assert (task.job, task.index) == (job, index)
  assert task.name == f'{job}:{index}'
  assert task.master == master
  assert task.is_chief == is_chief
  if not with_strategy:
    assert config.is_chief == is_chief
  if job != 'evaluator':
    assert task == cluster_task.from_environment()
    assert task.cluster_spec.as_dict() == _CLUSTER
    assert task.num_ps == 2
    assert task.device == f'/job:{job}/task:{index}'


@pytest.mark.parametrize('job', ['chief', 'worker', 'master'])
def test_the_only_task_with_a_strategy_of_tensorflow_is_the_chief(
    monkeypatch, job):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['a:1']}, 'task': {'type': job, 'index': 0}}))
  task = cluster_task.from_config(tf.estimator.RunConfig(
      'unused', train_distribute=tf.compat.v1.distribute.OneDeviceStrategy(
          '/cpu:0')))
  assert (task.name, task.is_alone, task.is_chief) == (f'{job}:0', True, True)


@pytest.mark.parametrize('config', [None, tf.estimator.RunConfig('unused')])
def test_a_process_alone_is_its_own_chief(monkeypatch, config):
  monkeypatch.delenv('TF_CONFIG', raising=False)
  task = cluster_task.from_config(config)
  assert task == cluster_task.from_environment() == cluster_task.ClusterTask()
  assert task.is_alone and task.is_chief
  assert (task.training_index, task.num_workers, task.num_ps) == (0, 1, 0)
  assert (task.device, task.master, task.training_tasks) == ('', '', [])


def test_a_bad_tf_config_is_refused(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', '{cluster')
  with pytest.raises(ValueError, match='`TF_CONFIG` must be JSON'):
    cluster_task.from_environment()


@pytest.mark.parametrize('task, training_index', [
    (('chief', 0), 0), (('worker', 0), 1), (('worker', 1), 2)])
def test_those_that_train_are_numbered_from_the_chief(task, training_index):
  found = cluster_task.ClusterTask(_CLUSTER_SPEC, *task)
  assert found.trains
  assert (found.training_index, found.num_workers) == (training_index, 3)


@pytest.mark.parametrize('job', ['ps', 'evaluator'])
def test_a_task_that_does_not_train_has_no_number(job):
  task = cluster_task.ClusterTask(_CLUSTER_SPEC, job)
  assert not task.trains
  with pytest.raises(ValueError, match=f'must be one that trains.*{job}:0'):
    _ = task.training_index


def test_tasks_that_train_are_the_chief_and_the_workers():
  cluster = tf.train.ClusterSpec({'ps': ['a:1'], 'worker': {1: 'b:1', 3: 'c:1'},
                                  'chief': ['d:1']})
  task = cluster_task.ClusterTask(cluster, 'worker', 3)
  assert task.training_tasks == ['chief:0', 'worker:1', 'worker:3']
  assert (task.training_index, task.num_workers) == (2, 3)


def test_the_first_worker_is_the_chief_where_there_is_none():
  cluster = tf.train.ClusterSpec({'worker': ['a:1', 'b:1']})
  assert [cluster_task.ClusterTask(cluster, 'worker', index).is_chief
          for index in range(2)] == [True, False]


def test_a_strategy_knows_its_task(monkeypatch):
  _set_tf_config(monkeypatch, 'worker', 1)
  strategy = elastic_average_strategy.ElasticAverageStrategy()
  assert strategy.extended.task.training_index == 2
  assert strategy.num_worker == 3
  monkeypatch.delenv('TF_CONFIG')
  strategy = elastic_average_strategy.ElasticAverageStrategy()
  assert strategy.extended.task.is_alone
  assert strategy.num_worker == 1


_NO_SERVER = 'Could not start gRPC server'


def _start(task, message):
  """What TensorFlow does where it cannot start the server of `task`."""
  with cluster_task.occupied_port_named(task):
    raise tf.errors.UnknownError(None, None, message)


def test_an_occupied_port_is_named():
  task = cluster_task.ClusterTask(_CLUSTER_SPEC, 'worker', 1)
  with pytest.raises(RuntimeError, match=(
      "of worker:1 .*must be free.*'c:3', where no server.*another port")):
    _start(task, _NO_SERVER)


@pytest.mark.parametrize('task, message', [
    (cluster_task.ClusterTask(_CLUSTER_SPEC, 'worker', 1), 'of the user'),
    (cluster_task.ClusterTask(), _NO_SERVER)], ids=('other', 'alone'))
def test_an_error_that_is_of_no_port_comes_through(task, message):
  with pytest.raises(tf.errors.UnknownError, match=message):
    _start(task, message)


def test_a_process_runs_a_task_once(monkeypatch):
  monkeypatch.setattr(cluster_task, '_addresses_run', set())
  task = cluster_task.ClusterTask(_CLUSTER_SPEC, 'worker', 1)
  cluster_task.check_first_run(task)
  cluster_task.check_first_run(cluster_task.ClusterTask())
  cluster_task.check_first_run(cluster_task.ClusterTask())
  with pytest.raises(RuntimeError, match=(
      'must call `train_and_evaluate` once. Received: another call .* '
      'worker:1, at c:3. Start the program')):
    cluster_task.check_first_run(task)


_RULES = {'w': []}
STRATEGIES = {
    'elastic': distribute.ElasticAverageStrategy,
    'drop_stale': lambda: distribute.DropStaleGradientStrategy(staleness=3),
    'packed': distribute.PackedParameterServerStrategy,
    'clip': lambda: distribute.VariableClippingStrategy(
        tf1.distribute.MirroredStrategy(['/cpu:0']), _RULES, 1.0),
    'tower': lambda: distribute.TowerStrategy(['/cpu:0']),
    'shards': lambda: distribute.CrossShardStrategy(['/cpu:0']),
}


def _model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=4.0)
  return tf.estimator.EstimatorSpec(
      mode, loss=tf.square(w),
      train_op=tf1.train.GradientDescentOptimizer(0.25).minimize(
          tf.square(w), tf1.train.get_global_step()))


def _run(train_and_evaluate, form, model_dir):
  def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()

  train_and_evaluate(
      tf.estimator.Estimator(_model_fn, str(model_dir), tf.estimator.RunConfig(
          train_distribute=STRATEGIES[form]())),
      tf.estimator.TrainSpec(input_fn, 2),
      tf.estimator.EvalSpec(input_fn, steps=1))
  return bool(list(model_dir.glob('eval/events*')))


@pytest.mark.parametrize('form', STRATEGIES)
def test_the_only_task_is_warned_that_it_evaluates(
    form, monkeypatch, tmp_path, caplog):
  value = json.dumps({'cluster': {'chief': ['a:1']},
                      'task': {'type': 'chief', 'index': 0}})
  monkeypatch.setenv('TF_CONFIG', value)
  assert _run(tf.estimator.train_and_evaluate, form, tmp_path / 'tensorflow')
  assert cluster_task.ONLY_TASK in caplog.text
  caplog.clear()
  # The remedy that the warning names.
  monkeypatch.setenv('TF_CONFIG', value)
  assert not _run(cluster_training.train_and_evaluate, form, tmp_path / 'own')
  assert cluster_task.ONLY_TASK not in caplog.text


@pytest.mark.parametrize('job, expected', [
    ('master', [cluster_task.MASTER]), ('chief', [])])
def test_a_master_of_several_tasks_is_warned(
    job, expected, monkeypatch, caplog):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['a:1'], 'worker': ['b:1']},
      'task': {'type': job, 'index': 0}}))
  cluster_config.rewrite()
  with cluster_task.evaluation_kept():
    cluster_task.warn_of_evaluation()
  assert not caplog.messages
  cluster_task.warn_of_evaluation()
  assert caplog.messages == expected


@pytest.mark.parametrize('value', [
    '', '{"cluster": {"master": ["a:1"]}, "task": {"type": "master"}}'])
def test_a_process_alone_is_not_warned(value, monkeypatch, caplog):
  monkeypatch.setenv('TF_CONFIG', value)
  cluster_task.warn_of_evaluation()
  assert not caplog.messages
