# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras 3 in strategies without Estimator: right numbers, or a refusal."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

pytestmark = pytest.mark.skipif(
    keras.__version__.startswith('2.'), reason='`keras` is Keras 2')

DEVICES = ['/cpu:0', '/cpu:1']
RATE = 0.1
STRATEGIES = {
    'tower': lambda: distribute.TowerStrategy(DEVICES),
    'cross_shard': lambda: distribute.CrossShardStrategy(DEVICES),
    'clipping': lambda: distribute.VariableClippingStrategy(
        tf.distribute.MirroredStrategy(
            DEVICES, tf.distribute.ReductionToOneDevice()), {'.*': 0}, 100.0),
    'elastic': lambda: distribute.ElasticAverageStrategy(
        devices=DEVICES, communication_period=1, moving_rate=0.3),
}
_REMEDY = 'pip install tf-keras.*TF_USE_LEGACY_KERAS=1'


def _train(strategy, wrap):
  """One step from 1 towards 3 on one device, and 5 on the other."""
  with strategy.scope():
    variable = tf.Variable([1.0])
    optimizer = keras.optimizers.SGD(RATE)
    optimizer.build([variable])

  def step():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    target = tf.gather([3.0, 5.0], index)
    optimizer.apply_gradients([(variable - target, variable)])

  wrap(lambda: strategy.run(step))()
  return variable.numpy()[0]


@pytest.mark.parametrize('wrap', [tf.function, lambda fn: fn],
                         ids=['tf_function', 'eager'])
@pytest.mark.parametrize('name', STRATEGIES)
def test_an_optimizer_applies_the_sum_or_is_refused(name, wrap):
  strategy = STRATEGIES[name]()
  if name == 'elastic':
    with pytest.raises(TypeError, match=f'ElasticAverageStrategy.*{_REMEDY}'):
      _train(strategy, wrap)
  else:
    # 1 - .1 * ((1 - 3) + (1 - 5))
    np.testing.assert_allclose(_train(strategy, wrap), 1.6, rtol=1e-6)


def _step_in_a_graph(strategy, train):
  """The variables after a step on the rows 1 and 3 of the loss mean(x**2)."""
  with tf.Graph().as_default(), strategy.scope():

    def step():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      x = tf.gather([[1.0], [3.0]], tf.reshape(index, [1]))
      for _ in range(2):
        x = keras.layers.Dense(
            1, use_bias=False, kernel_initializer='ones')(x)
      return train(tf.reduce_mean(x**2))

    trained = strategy.experimental_local_results(strategy.run(step))
    with tf1.Session() as session:
      session.run([variable.initializer for variable in tf1.global_variables()])
      session.run(trained)
      return session.run(tf1.trainable_variables())


@pytest.mark.parametrize('name', ['tower', 'cross_shard'])
def test_layers_in_a_graph_have_the_numbers_of_one_device(name):
  first, second = _step_in_a_graph(
      STRATEGIES[name](),
      lambda loss: tf1.train.GradientDescentOptimizer(0.01).minimize(loss))[:2]
  # d mean((a b x)**2) / da = 2 a b**2 mean(x**2) = 10, and so for b.
  np.testing.assert_allclose([first, second], [[[0.9]], [[0.9]]], rtol=1e-6)


def test_an_optimizer_whose_update_nothing_would_run_is_refused():
  def train(loss):
    variables = tf1.trainable_variables()
    return keras.optimizers.SGD(RATE).apply_gradients(
        zip(tf.gradients(loss, variables), variables))

  with pytest.raises(TypeError, match=f'TowerStrategy: in a graph.*{_REMEDY}'):
    _step_in_a_graph(STRATEGIES['tower'](), train)


@pytest.mark.parametrize('name', STRATEGIES)
def test_a_metric_counts_each_row_once_or_is_refused(name):
  strategy = STRATEGIES[name]()

  def measure():
    with strategy.scope():
      metric = keras.metrics.Mean()
    for _ in range(2):
      strategy.run(lambda: metric.update_state(tf.gather(
          [3.0, 5.0],
          tf.distribute.get_replica_context().replica_id_in_sync_group)))
    return metric.result().numpy()

  if name == 'tower':
    with pytest.raises(ValueError, match=f'TowerStrategy.*{_REMEDY}'):
      measure()
  else:
    assert measure() == 4.0  # (3 + 5) / 2
