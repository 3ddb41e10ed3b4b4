# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerStrategy as `RunConfig(train_distribute=...)`."""

import copy

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings(
    'ignore:`tf.layers', 'ignore:To make it possible to preserve')

_X = np.random.RandomState(0).randn(10, 4).astype(np.float32)
_Y = (_X[:, :1] * 2 + 1).astype(np.float32)


def _get_variable(x):
  return x @ tf1.get_variable(
      'w', [4, 1], initializer=tf1.initializers.constant(.3))


def _layers(x):
  h = tf1.layers.dense(x, 3, tf.tanh,
                       kernel_initializer=tf1.initializers.constant(.2),
                       kernel_regularizer=lambda w: .1 * tf.reduce_sum(w * w))
  return tf1.layers.dense(h, 1, kernel_initializer=tf1.initializers.ones())


def _keras(x):
  return tf.keras.Sequential([
      tf.keras.layers.Dense(3, 'tanh', kernel_initializer='ones'),
      tf.keras.layers.Dense(1, kernel_initializer='ones')])(x)


def _variable(x):
  return x @ tf.Variable(tf.fill([4, 1], .3), name='w')


def _train(tmp_path, model, batches, strategy):
  def model_fn(features, labels, mode):
    loss = tf1.losses.mean_squared_error(labels, model(features))
    loss += sum(tf1.losses.get_regularization_losses())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf1.train.MomentumOptimizer(.1, .9).minimize(
            loss, tf1.train.get_global_step()))

  def input_fn():
    def generate():
      for rows in batches:
        yield _X[rows], _Y[rows]
    return tf.data.Dataset.from_generator(
        generate, output_signature=(tf.TensorSpec([None, 4], tf.float32),
                                    tf.TensorSpec([None, 1], tf.float32)))

  config = tf.estimator.RunConfig(
      train_distribute=strategy, save_summary_steps=None,
      session_config=tf1.ConfigProto(
          device_count={'CPU': 4}, allow_soft_placement=True))
  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path / ('towers' if strategy else 'one')), config)
  estimator.train(input_fn)
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


@pytest.mark.parametrize('model', (_get_variable, _layers, _keras, _variable),
                         ids=lambda model: model.__name__)
def test_equals_one_device_with_the_joined_batches(behavior, tmp_path, model):
  # Towers of 3 + 2, then of 1 + 4 rows.
  slices = (slice(0, 3), slice(3, 5), slice(5, 6), slice(6, 10))
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  found = _train(tmp_path, model, slices, strategy)
  expected = _train(tmp_path, model, (slice(0, 5), slice(5, 10)), None)
  assert sorted(found) == sorted(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_copy_is_a_strategy_of_its_own():
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  copied = copy.deepcopy(strategy)
  assert copied.num_replicas_in_sync == 2
  with tf.Graph().as_default(), copied.scope():
    variable = tf1.get_variable('w', [1])
    assert copied.extended.variable_created_in_scope(variable)
    assert not strategy.extended.variable_created_in_scope(variable)


@pytest.mark.parametrize('devices, error', (
    ([], ValueError), ('/cpu:0', TypeError), (['nonsense'], ValueError),
    (['/job:worker'], ValueError), ([0], TypeError)))
def test_bad_devices_are_refused(devices, error):
  with pytest.raises(error, match='`devices` must'):
    tower_strategy.TowerStrategy(devices)


def test_run_in_a_tf_function():
  # Each tower's gradient is 2: w = [1, 2] - .1 * (2 + 2).
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    w = tf.Variable([1., 2.])
    optimizer = tf1.train.GradientDescentOptimizer(.1)

  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(2 * w)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])

  tf.function(lambda: strategy.run(step))()
  np.testing.assert_allclose(w.numpy(), [.6, 1.6], rtol=1e-6)


def test_keras_optimizer_with_a_schedule_in_a_tf_function():
  # Each tower's gradient is 1: w = 1 - .5 * 2, then - .25 * 2.
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    w = tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(
        tf.keras.optimizers.schedules.PiecewiseConstantDecay([0], [.5, .25]))

  def step():
    with tf.GradientTape() as tape:
      loss = 1.0 * w
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])

  run = tf.function(lambda: strategy.run(step))
  for expected in (0.0, -0.5):
    run()
    np.testing.assert_allclose(w.numpy(), expected, atol=1e-6)


def test_keras_fit_equals_one_device():
  weights = []
  for strategy in (tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']),
                   tf.distribute.get_strategy()):
    with strategy.scope():
      model = tf.keras.Sequential([
          tf.keras.layers.Dense(1, kernel_initializer='zeros')])
      model.compile(tf.keras.optimizers.SGD(.1), 'mse')
    model.fit(_X[:8], _Y[:8], batch_size=4, shuffle=False, verbose=0)
    weights.append([w.numpy() for w in model.weights])
  for found, expected in zip(*weights):
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_current_tower_is_0(behavior):
  """There is one model, whatever the number of towers."""
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 3)
  with tf.Graph().as_default(), strategy.scope():
    assert strategy.run(tower_strategy.current_tower) == 0
    assert tower_strategy.current_tower() == 0


@pytest.mark.parametrize('drop_remainder, rows', [(False, 5), (True, 4)])
def test_last_batches_may_be_fewer_than_the_towers(
    behavior, drop_remainder, rows):
  # Three batches: of 2, 2 and 1 rows; of one row each, and one is left out.
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 2)
  data = [[1.], [2.], [4.], [8.], [16.]]
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    iterator = strategy.make_input_fn_iterator(
        lambda context: tf1.data.Dataset.from_tensor_slices(data).batch(
            1 if drop_remainder else 2, drop_remainder))

    def step(x):
      total = tf1.get_local_variable('total', initializer=0.0)
      return total.assign_add(tf.reduce_sum(x))

    total = strategy.experimental_local_results(
        strategy.run(step, args=(iterator.get_next(),)))
    session.run([iterator.initialize(), tf1.local_variables_initializer()])
    for _ in range(10):
      try:
        session.run(total)
      except tf.errors.OutOfRangeError:
        break
    assert session.run(tf1.local_variables()[0]) == sum(
        value for value, in data[:rows])


def test_is_a_strategy_of_today(behavior):
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 2)
  assert isinstance(strategy, tf.distribute.Strategy)
  assert isinstance(strategy, tf1.distribute.Strategy)
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.fill([2], context.replica_id_in_sync_group))
    assert session.run(strategy.gather(values, axis=0)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize('policy', ('mixed_bfloat16', 'mixed_float16'))
def test_mixed_precision_of_keras(policy):
  # docs/strategies.md says why one of them is refused.
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 2)
  with strategy.scope():
    def layer():
      return tf.keras.layers.Dense(1, dtype=policy, use_bias=False,
                                   kernel_initializer='zeros')

    if policy == 'mixed_float16':
      with pytest.raises(ValueError, match='not supported with.*TowerStrategy'):
        layer()
      return
    model = tf.keras.Sequential([layer()])
    model.compile(tf.keras.optimizers.SGD(.25), 'mse')
    model.fit(np.ones([4, 1], np.float32), np.ones([4, 1], np.float32),
              batch_size=4, verbose=0)
  # w = .25 * 2 * 1
  assert model.get_weights()[0].tolist() == [[.5]]
