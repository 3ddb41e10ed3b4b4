# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Estimator's hooks for early stopping with strategies."""

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute.sessions import early_stopping

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
  monkeypatch.setattr(early_stopping, 'mend', lambda: calls.append(1))
  tf.estimator.RunConfig(
      str(tmp_path), session_config=tf1.ConfigProto(),
      train_distribute=STRATEGIES[name]())
  assert calls
