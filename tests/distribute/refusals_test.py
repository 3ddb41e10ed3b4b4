# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Nested strategies, Keras and early stopping under strategies."""

from __future__ import annotations

import contextlib
import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import refusals
from tfplugin.testing import behaviors

TWO = ['/cpu:0', '/cpu:1']
X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


class Strategy(refusals.OneStrategy, tf.distribute.OneDeviceStrategy):
  """One that is refused inside another."""


def test_own_scope_is_entered_again():
  strategy = Strategy('/cpu:0')
  with strategy.scope():
    with strategy.scope():
      assert tf.distribute.get_strategy() is strategy
  assert not tf.distribute.has_strategy()


def _model_fn(features, labels, mode):
  step = tf.compat.v1.train.get_global_step()
  return tf.estimator.EstimatorSpec(
      mode, loss=tf.reduce_mean(features - labels),
      train_op=step.assign_add(1))


def _train(estimator, input_fn):
  estimator.train(input_fn)


def _train_steps(estimator, input_fn):
  estimator.train(input_fn, steps=1)


def _train_and_evaluate(estimator, input_fn):
  tf.estimator.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(input_fn, max_steps=1),
      tf.estimator.EvalSpec(input_fn))


CLUSTER = {'cluster': {'chief': ['localhost:1'], 'ps': ['localhost:2']},
           'task': {'type': 'chief', 'index': 0}}


@pytest.mark.parametrize('cls', [
    distribute.TowerStrategy, distribute.CrossShardStrategy,
    distribute.ElasticAverageStrategy, distribute.DropStaleGradientStrategy,
    distribute.PackedParameterServerStrategy,
    distribute.VariableClippingStrategy])
@pytest.mark.parametrize('key, call, cluster', [
    ('train_distribute', _train, None),
    ('train_distribute', _train_steps, None),
    ('train_distribute', _train_and_evaluate, CLUSTER),
    ('eval_distribute', _train_and_evaluate, None)])
def test_the_class_in_the_place_of_an_instance_is_refused(
    monkeypatch, tmp_path, cls, key, call, cluster):
  if cluster is not None:
    monkeypatch.setenv('TF_CONFIG', json.dumps(cluster))
  estimator = tf.estimator.Estimator(_model_fn, config=tf.estimator.RunConfig(
      str(tmp_path), **{key: cls}))
  with pytest.raises(TypeError, match=(
      '`train_distribute` and `eval_distribute` must be an instance.*Received: '
      'its class. Call it')):
    call(estimator, lambda: tf.data.Dataset.from_tensors((X, X)))


def test_another_scope_is_refused_and_both_are_named():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with outer.scope():
    with pytest.raises(RuntimeError, match='Strategy inside OneDeviceStrategy'):
      inner.scope()
    assert tf.distribute.get_strategy() is outer


def test_on_a_device_of_another_it_is_refused():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with pytest.raises(RuntimeError, match='inside OneDeviceStrategy'):
    outer.run(lambda: inner.run(lambda: tf.constant(1)))



def fit(strategy):
  """Two steps of 0.1 in a graph; returns the weight, from 0."""
  with behaviors.behavior('v1'), tf.Graph().as_default():
    with strategy.scope():
      model = tf.keras.Sequential([tf.keras.layers.Dense(
          1, use_bias=False, kernel_initializer='zeros', input_shape=(1,))])
      model.compile(tf.keras.optimizers.legacy.SGD(0.1), 'mse')
    model.fit(X, 2 * X, batch_size=4, epochs=2, verbose=0)
    return model.get_weights()[0][0, 0]


@pytest.mark.parametrize('name, make', [
    ('ElasticAverageStrategy', distribute.ElasticAverageStrategy),
    ('ElasticAverageStrategy',
     lambda: distribute.ElasticAverageStrategy(devices=TWO)),
    ('DropStaleGradientStrategy',
     lambda: distribute.DropStaleGradientStrategy(staleness=1)),
    ('TowerStrategy', lambda: distribute.TowerStrategy(TWO)),
    ('VariableClippingStrategy over TowerStrategy',
     lambda: distribute.VariableClippingStrategy(
         distribute.TowerStrategy(TWO), {'kernel': 0}, 1.0)),
])
def test_fit_in_a_graph_is_refused_with_a_remedy(name, make):
  with pytest.raises(RuntimeError, match=f'{name} .*`Model.fit` in a graph.*'
                     'Received: .*model_to_estimator'):
    fit(make())


@pytest.mark.filterwarnings('ignore:.*deprecated')
@pytest.mark.filterwarnings('ignore:To make it possible:UserWarning')
def test_shards_train_in_a_graph():
  # The gradient is 15 (w - 2): 3 after one step, 1.5 after two.
  assert fit(distribute.CrossShardStrategy(TWO)) == pytest.approx(1.5)


tf1 = tf.compat.v1

STRATEGIES = {
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=1),
    'elastic devices': lambda: distribute.ElasticAverageStrategy(
        communication_period=1, devices=['/cpu:0', '/cpu:1']),
    'drop stale': lambda: distribute.DropStaleGradientStrategy(staleness=3),
    'towers': lambda: distribute.TowerStrategy(['/cpu:0', '/cpu:1']),
    'cross shard': lambda: distribute.CrossShardStrategy(['/cpu:0', '/cpu:1']),
    'clipping': lambda: distribute.VariableClippingStrategy(
        tf1.distribute.OneDeviceStrategy('/cpu:0'), {'w': []}, 100.0),
}


def _model_fn(features, labels, mode):
  """The loss grows with each step."""
  del labels
  w = tf1.get_variable('w', initializer=0.0)
  loss = tf.reduce_mean(features) - w
  train_op = tf1.train.GradientDescentOptimizer(-1.0).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _input_fn():
  return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(20)


@pytest.mark.parametrize('name', STRATEGIES)
def test_stop_if_no_decrease_is_taken_as_documented(name, tmp_path):
  estimator = tf.estimator.Estimator(
      _model_fn, str(tmp_path), tf.estimator.RunConfig(
          train_distribute=STRATEGIES[name]()))
  hook = tf.estimator.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', max_steps_without_decrease=1000)
  estimator.train(_input_fn, [hook])
  assert estimator.get_variable_value('global_step') > 1


@pytest.mark.parametrize('name', STRATEGIES)
def test_a_stop_is_one(name, tmp_path):
  estimator = tf.estimator.Estimator(
      _model_fn, str(tmp_path), tf.estimator.RunConfig(
          train_distribute=STRATEGIES[name]()))
  answers = [False, False, True]
  hook = tf.estimator.experimental.make_early_stopping_hook(
      estimator, lambda: answers.pop(0), run_every_secs=None,
      run_every_steps=1)
  estimator.train(_input_fn, [hook])
  assert not answers
  assert estimator.get_variable_value('global_step') < 10


@pytest.mark.parametrize('job', ['chief', 'worker'])
def test_processes_that_step_together_ask_by_steps(job, tmp_path, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['127.0.0.1:1'], 'worker': ['127.0.0.1:2']},
      'task': {'type': job, 'index': 0}}))
  make = tf.estimator.experimental.stop_if_no_decrease_hook
  with tf.Graph().as_default():  # Without a server of its own.
    estimator = tf.estimator.Estimator(
        _model_fn, str(tmp_path), tf.estimator.RunConfig(
            train_distribute=distribute.CrossShardStrategy(['/cpu:0'])))
    with pytest.raises(ValueError, match=(
        'under CrossShardStrategy .* Received: 60. Pass .*_every_steps=100')):
      make(estimator, 'loss', 1000, str(tmp_path))
    assert make(estimator, 'loss', 1000, str(tmp_path), run_every_secs=None,
                run_every_steps=100)


def test_without_a_strategy_nothing_changes(tmp_path):
  estimator = tf.estimator.Estimator(_model_fn, str(tmp_path))
  with pytest.raises(TypeError, match='must have type'):
    tf.estimator.experimental.make_early_stopping_hook('none', bool)
  with pytest.raises(ValueError, match='run_every_secs'):
    tf.estimator.experimental.make_early_stopping_hook(
        estimator, bool, run_every_secs=1, run_every_steps=1)


@pytest.mark.parametrize('name', STRATEGIES)
def test_a_run_config_is_enough(name, tmp_path, monkeypatch):
  """An Estimator copies none that has a directory and a session_config."""
  calls = []
  monkeypatch.setattr(
      refusals, '_mend_early_stopping', lambda: calls.append(1))
  tf.estimator.RunConfig(
      str(tmp_path), session_config=tf1.ConfigProto(),
      train_distribute=STRATEGIES[name]())
  assert calls


_DESCRIBED = types.SimpleNamespace(described_as='OurStrategy')


def _update(module):
  def fn():
    pass

  fn.__module__ = module
  return fn


@pytest.mark.parametrize('refuse, words', [
    (lambda fn: refusals.refuse_keras_update(fn, 'it sums', ', or else'),
     'it sums.*Keras optimizer of `{}`.*, or else'),
    (lambda fn: refusals.refuse_keras_step_count(fn, _DESCRIBED),
     'OurStrategy decides when the global step advances.*of `{}`')])
@pytest.mark.parametrize('module', ['keras.src.x', 'tf_keras.src.x'])
def test_every_keras_is_refused(refuse, words, module):
  with pytest.raises(TypeError, match=words.format(module)):
    refuse(_update(module))
  refuse(_update('tensorflow.python.training.optimizer'))


def test_keras_3_alone_is_refused():
  refusals.refuse_keras_3_update(
      _update('tf_keras.src.x'), _DESCRIBED, 'it sums')
  is_keras_2 = keras.__version__.startswith('2.')
  with contextlib.nullcontext() if is_keras_2 else pytest.raises(
      TypeError, match='Keras 3 in OurStrategy: it sums.*`keras.src.x`'):
    refusals.refuse_keras_3_update(
        _update('keras.src.x'), _DESCRIBED, 'it sums')
