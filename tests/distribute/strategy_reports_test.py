# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses and evaluations that an Estimator reports under strategies."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

TWO = ['/cpu:0', '/cpu:1']
STRATEGIES = {
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=1),
    'elastic_devices': lambda: distribute.ElasticAverageStrategy(
        communication_period=1, devices=TWO),
    'drop_stale': lambda: distribute.DropStaleGradientStrategy(staleness=0),
    'tower': lambda: distribute.TowerStrategy(TWO),
    'cross_shard': lambda: distribute.CrossShardStrategy(TWO),
    'clipping': lambda: distribute.VariableClippingStrategy(
        distribute.CrossShardStrategy(TWO), {'w': 0}, 9.0),
}
X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


def model_fn(features, labels, mode):
  """The weight stays 1; the loss of row x is (2 x - x)^2."""
  w = tf1.get_variable('w', [1, 1], initializer=tf1.ones_initializer())
  loss = tf1.losses.mean_squared_error(labels, tf.matmul(features, w))
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
        'mean': tf1.metrics.mean(features)})
  train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf.data.Dataset.from_tensor_slices((X, 2 * X)).batch(1)


@pytest.mark.filterwarnings('ignore:To make it possible:UserWarning')
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_losses_and_metrics_are_those_of_the_rows(strategy, tmp_path):
  made = STRATEGIES[strategy]()
  devices = len(made.extended.worker_devices)
  estimator = tf.estimator.Estimator(model_fn, str(tmp_path), (
      tf.estimator.RunConfig(
          train_distribute=made, eval_distribute=STRATEGIES[strategy](),
          save_summary_steps=1)))
  estimator.train(input_fn, steps=1)
  (events,) = tmp_path.glob('events*')
  losses = [value.simple_value
            for event in tf1.train.summary_iterator(str(events))
            for value in event.summary.value if value.tag == 'loss']
  # One row for each device, the mean of them.
  assert losses[0] == pytest.approx(np.mean(X[:devices]**2))
  metrics = estimator.evaluate(input_fn)
  assert metrics['loss'] == pytest.approx(np.mean(X**2))
  assert metrics['mean'] == pytest.approx(2.5)
