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


def _rows(strategy):
  """The row 1 for one device, and 3 for the other."""
  return strategy.experimental_distribute_values_from_function(
      lambda context: tf.constant([[[1.0]], [[3.0]]])[
          context.replica_id_in_sync_group])


def _step_in_a_graph(strategy, train):
  """The variables after a step on the rows 1 and 3 of the loss mean(x**2)."""
  with tf.Graph().as_default(), strategy.scope():

    def step(x):
      for _ in range(2):
        x = keras.layers.Dense(
            1, use_bias=False, kernel_initializer='ones')(x)
      return train(tf.reduce_mean(x**2))

    trained = strategy.experimental_local_results(
        strategy.run(step, args=(_rows(strategy),)))
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


def _minimize_by_keras_loss(x, reduction):
  loss = keras.losses.MeanSquaredError(reduction=reduction)(tf.zeros_like(x), x)
  return tf1.train.GradientDescentOptimizer(0.01).minimize(loss)


def _step_with_rows(strategy, reduction):
  """The variables after a step on the rows 1 and 3 by a loss of Keras."""
  with tf.Graph().as_default(), strategy.scope():

    def step(x):
      for _ in range(2):
        x = keras.layers.Dense(
            1, use_bias=False, kernel_initializer='ones')(x)
      return _minimize_by_keras_loss(x, reduction)

    trained = strategy.experimental_local_results(
        strategy.run(step, args=(_rows(strategy),)))
    with tf1.Session() as session:
      session.run([variable.initializer for variable in tf1.global_variables()])
      session.run(trained)
      return np.ravel(session.run(tf1.trainable_variables()[:2]))


@pytest.mark.parametrize('name', ['tower', 'cross_shard'])
@pytest.mark.parametrize('reduction, expected', [
    # The gradient 10 of a mean, see above, or 20 of a sum.
    ('sum_over_batch_size', 0.9), ('mean_with_sample_weight', 0.9),
    ('sum', 0.8)])
def test_losses_in_a_graph_are_those_of_one_device(name, reduction, expected):
  found = _step_with_rows(STRATEGIES[name](), reduction)
  np.testing.assert_allclose(found, [expected] * 2, rtol=1e-6)


@pytest.mark.parametrize('reduction, expected', [
    ('sum_over_batch_size', 0.9), ('sum', 0.8)])
@pytest.mark.parametrize('wrap', [tf.function, lambda fn: fn],
                         ids=['tf_function', 'eager'])
def test_losses_out_of_a_graph_are_those_of_one_device(
    wrap, reduction, expected):
  strategy = STRATEGIES['cross_shard']()
  with strategy.scope():
    variable = tf.Variable([[1.0]])
  optimizer = tf1.train.GradientDescentOptimizer(0.01)

  def step():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    x = tf.gather([[1.0], [3.0]], tf.reshape(index, [1]))
    optimizer.minimize(
        lambda: keras.losses.MeanSquaredError(reduction=reduction)(
            tf.zeros([1, 1]), x @ variable), var_list=[variable])

  wrap(lambda: strategy.run(step))()
  # d (x v)**2 / dv = 2 x**2: 2 and 18, whose mean is 10.
  np.testing.assert_allclose(variable.numpy(), [[expected]], rtol=1e-6)


@pytest.mark.parametrize('arguments', [
    {'reduction': tf1.losses.Reduction.SUM}, {'group_assignment': [[0], [1]]}])
def test_a_mean_that_is_divided_by_another_number_is_refused(arguments):
  strategy = distribute.CrossShardStrategy(DEVICES, **arguments)
  with pytest.raises(ValueError, match='(?s)mean loss of Keras 3 .*must not.*'
                     'divided by 2.*Use `tf.compat.v1.losses`'):
    _step_with_rows(strategy, 'mean')


def _minimize_by_keras(loss):
  variables = tf1.trainable_variables()
  return keras.optimizers.SGD(RATE).apply_gradients(
      zip(tf.gradients(loss, variables), variables))


def test_an_optimizer_whose_update_nothing_would_run_is_refused():
  with pytest.raises(TypeError, match=f'TowerStrategy: in a graph.*{_REMEDY}'):
    _step_in_a_graph(STRATEGIES['tower'](), _minimize_by_keras)


def test_an_optimizer_that_counts_steps_is_refused_where_a_gate_counts():
  strategy = distribute.DropStaleGradientStrategy(staleness=1)
  with tf.Graph().as_default(), strategy.scope(), pytest.raises(
      TypeError, match='DropStaleGradientStrategy decides when the global step '
      'advances.*Keras optimizer of `keras.src'):
    strategy.run(lambda: _minimize_by_keras(
        tf.reduce_sum(keras.layers.Dense(1)(tf.ones([2, 1])))))


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


def test_statistics_of_a_layer_are_means_over_the_shards():
  strategy = STRATEGIES['cross_shard']()
  with strategy.scope():
    model = keras.Sequential([
        keras.layers.Input([1]), keras.layers.Dropout(0.0),
        keras.layers.BatchNormalization(momentum=0.0)])
    model.compile(keras.optimizers.SGD(0.0), 'mse')
  x = np.float32([[1], [3], [5], [17]])
  model.fit(x, x, batch_size=4, verbose=0, shuffle=False)
  moving_mean, moving_variance = model.layers[-1].non_trainable_variables
  for variable, expected in ((moving_mean, (2 + 11) / 2),
                             (moving_variance, (1 + 36) / 2)):
    for copy in strategy.experimental_local_results(variable.value):
      np.testing.assert_allclose(copy, [expected], rtol=1e-5)
