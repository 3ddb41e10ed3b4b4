# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A RunConfig, and each task of a cluster, is set up as by TensorFlow 2.15.

Where TensorFlow has the module itself, both must give the same.
"""

from __future__ import annotations

import importlib
import json
import types

import pytest
import tensorflow as tf

from tests.compat import fresh_processes
from tfplugin.bin.processes import ports
from tfplugin.compat import estimator_training

tf1 = tf.compat.v1
_HOSTS = {'chief': ['h:1'], 'worker': ['h:2', 'h:3'], 'ps': ['h:4'],
          'evaluator': ['h:5']}
_CLUSTER = {job: _HOSTS[job] for job in ('chief', 'worker', 'ps')}
# TensorFlow's own on 2.15; ours beside it, and alone where it has none.
_MODULES = {
    module.__name__: module for module in (estimator_training, (
        importlib.import_module('tensorflow.python.distribute'
                                '.estimator_training')))}


@pytest.fixture(params=_MODULES)
def training(request):
  return _MODULES[request.param]


def _strategy():
  return tf1.distribute.OneDeviceStrategy('/cpu:0')


def _config(training, monkeypatch, tf_config, **arguments):
  """A RunConfig that the module `training` has set up."""
  run_config = importlib.import_module(
      'tensorflow_estimator.python.estimator.run_config')
  monkeypatch.setattr(run_config, 'distribute_coordinator_training', training)
  monkeypatch.setenv('TF_CONFIG', json.dumps(tf_config))
  return tf.estimator.RunConfig(**arguments)


def test_without_a_cluster_the_coordinator_stays_out(training, monkeypatch):
  config = _config(training, monkeypatch, {}, train_distribute=_strategy())
  assert config._distribute_coordinator_mode is None
  assert not training.should_run_distribute_coordinator(config)
  assert (config.num_worker_replicas, config.num_ps_replicas) == (1, 0)
  assert config.is_chief


def test_an_evaluation_strategy_alone_needs_no_coordinator(
    training, monkeypatch):
  config = _config(
      training, monkeypatch,
      {'cluster': _CLUSTER, 'task': {'type': 'worker', 'index': 1}},
      eval_distribute=_strategy())
  assert config._distribute_coordinator_mode is None
  assert (config.task_type, config.task_id) == ('worker', 1)
  assert config.global_id_in_cluster == 2


def test_a_worker_of_a_cluster_runs_on_the_coordinator(training, monkeypatch):
  config = _config(
      training, monkeypatch,
      {'cluster': _CLUSTER, 'task': {'type': 'worker', 'index': 0}},
      train_distribute=_strategy())
  assert config._distribute_coordinator_mode == 'independent_worker'
  assert training.should_run_distribute_coordinator(config)
  assert config.cluster_spec.as_dict() == _CLUSTER


def test_an_old_master_is_set_up_by_its_environment(training, monkeypatch):
  config = _config(
      training, monkeypatch,
      {'cluster': {'master': ['h:1'], 'ps': ['h:4']},
       'task': {'type': 'master', 'index': 0}}, train_distribute=_strategy())
  assert config._distribute_coordinator_mode is None
  assert config.task_type == 'master'
  assert config.num_ps_replicas == 1


def _experimental(**arguments):
  return types.SimpleNamespace(**{
      'train_distribute': None, 'eval_distribute': None, 'remote_cluster': None,
      **arguments})


def test_a_remote_cluster_is_run_from_here(training, monkeypatch):
  cluster = tf.train.ClusterSpec(_CLUSTER)
  config = _config(
      training, monkeypatch, {}, experimental_distribute=_experimental(
          train_distribute=_strategy(), remote_cluster=cluster))
  assert config._distribute_coordinator_mode == 'standalone_client'
  assert config.train_distribute is not None
  assert config.cluster_spec is cluster


@pytest.mark.parametrize('name', ['train_distribute', 'eval_distribute'])
def test_a_strategy_given_twice_is_refused(training, monkeypatch, name):
  with pytest.raises(ValueError, match=name):
    _config(training, monkeypatch, {}, **{
        name: _strategy(),
        'experimental_distribute': _experimental(**{name: _strategy()})})


def test_a_cluster_given_twice_is_refused(training, monkeypatch):
  with pytest.raises(ValueError, match='remote_cluster'):
    _config(
        training, monkeypatch,
        {'cluster': _CLUSTER, 'task': {'type': 'worker', 'index': 0}},
        experimental_distribute=_experimental(
            train_distribute=_strategy(),
            remote_cluster=tf.train.ClusterSpec(_CLUSTER)))


# Task of the cluster: global id, servers, workers and whether it has a cluster.
@pytest.mark.parametrize('task, expected', [
    (('chief', 0), (0, 1, 3, True)),
    (('worker', 0), (1, 1, 3, True)),
    (('worker', 1), (2, 1, 3, True)),
    (('ps', 0), (3, 1, 3, True)),
    (('evaluator', 0), (None, 0, 0, False)),
    ((None, None), (0, 0, 1, False)),
])
def test_a_task_knows_its_place(monkeypatch, task, expected):
  jobs = _CLUSTER if task[0] else {}
  context = types.SimpleNamespace(
      cluster_spec=tf.train.ClusterSpec(jobs), task_type=task[0],
      task_id=task[1], master_target='grpc://h', is_chief=task[0] == 'chief')
  monkeypatch.setattr(
      estimator_training.distribute_coordinator_context,
      'get_current_worker_context', lambda: context)
  estimator = tf.estimator.Estimator(lambda features: None)
  strategy = _strategy()
  made = estimator_training._estimator_of_task(estimator, 'train', strategy)
  config = made.config
  assert (config.global_id_in_cluster, config.num_ps_replicas,
          config.num_worker_replicas, bool(config.cluster_spec)) == expected
  assert made._train_distribution is strategy
  assert config.master == config.evaluation_master == 'grpc://h'
  assert config.is_chief == (task[0] == 'chief')
  assert estimator.config.train_distribute is None


# A process has one server for one cluster.
_PROGRAM = """
import importlib, json, os
import tensorflow as tf
import tfplugin
tf1 = tf.compat.v1
training = importlib.import_module('{module}')
for name in ('run_config', 'training'):
  importlib.import_module(f'tensorflow_estimator.python.estimator.{{name}}'
      ).distribute_coordinator_training = training
os.environ['TF_CONFIG'] = json.dumps({{
    'cluster': {{'chief': ['127.0.0.1:{port}']}},
    'task': {{'type': 'chief', 'index': 0}}}})

def model_fn(features, labels, mode):
  v = tf1.get_variable('v', [], initializer=tf1.zeros_initializer())
  loss = tf.reduce_mean(tf.square(v - labels))
  train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
  return tf.data.Dataset.from_tensors(
      (tf.ones([1]), tf.ones([1]))).repeat()

config = tf.estimator.RunConfig(
    model_dir='{directory}',
    train_distribute=tf1.distribute.OneDeviceStrategy(
        '/job:chief/task:0/cpu:0'))
estimator = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=2),
    tf.estimator.EvalSpec(input_fn, steps=1))
print(estimator.get_variable_value('v'))
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize('module', _MODULES)
def test_a_chief_trains_on_the_coordinator(module, tmp_path):
  (result,) = fresh_processes.run('import tensorflow', [_PROGRAM.format(
      module=module, port=ports.pick_free(1)[0], directory=tmp_path)])
  # v becomes v + .25 * 2 * (1 - v): 0, .5, .75.
  assert result.printed == '0.75\n', result.errors


@pytest.mark.parametrize('run', ['estimator_train', 'estimator_evaluate'])
def test_training_in_a_worker_alone_is_refused(training, monkeypatch, run):
  config = _config(
      training, monkeypatch,
      {'cluster': _CLUSTER, 'task': {'type': 'worker', 'index': 0}},
      train_distribute=_strategy(), eval_distribute=_strategy())
  estimator = tf.estimator.Estimator(lambda features: None, config=config)
  with pytest.raises(ValueError):
    getattr(training, run)(estimator, None, [])
