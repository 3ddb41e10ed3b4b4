# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of ElasticAverageStrategy between the devices of one process."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
TARGETS = np.array([[3.0, -2.0], [1.0, 4.0]], np.float32)
RATE = 0.1


def make(**settings):
  return elastic_average_strategy.ElasticAverageStrategy(
      devices=DEVICES, **settings)


def target():
  """A target of its own for each device."""
  return tf.gather(
      TARGETS, tf.distribute.get_replica_context().replica_id_in_sync_group)


def model_fn(features, labels, mode,
             make_optimizer=lambda: tf1.train.GradientDescentOptimizer(RATE)):
  """loss = 1/2 |w - target|^2."""
  del features, labels
  w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
  loss = 0.5 * tf.reduce_sum(tf.square(w - target()))
  train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def expected(steps, period, rate, elastic_first=False, rho=0.0):
  """The synchronous rule in numpy; returns the centre after each step."""
  center = np.ones(2)
  seen = center
  copies = np.ones([2, 2])
  centers = []
  for step in range(1, steps + 1):
    moved = copies - RATE * (copies - TARGETS + rho * (copies - seen))
    if step % period == 0:
      differences = rate * ((copies if elastic_first else moved) - center)
      seen = center
      moved = moved - differences
      center = center + differences.sum(axis=0)
    copies = moved
    centers.append(center)
  return np.array(centers)


@pytest.mark.parametrize('settings', [
    {'communication_period': 1, 'moving_rate': 0.25},
    {'communication_period': 2, 'moving_rate': 0.4},
    {'communication_period': 2, 'moving_rate': 0.4, 'rho': 0.5},
    {'communication_period': 2, 'moving_rate': 0.4,
     'update_order': 'elastic_first'},
], ids=lambda settings: '-'.join(f'{v}' for v in settings.values()))
def test_center_follows_the_synchronous_rule(behavior, settings):
  worker = strategy_worker.StrategyWorker(make(**settings), model_fn)
  period = settings['communication_period']
  wanted = expected(6, period, settings['moving_rate'],
                    'update_order' in settings, settings.get('rho', 0.0))
  for step in range(6):
    worker.step()
    np.testing.assert_allclose(worker.center('w'), wanted[step], rtol=1e-5)
  assert worker.value('global_step') == 6 // period


def test_step_that_the_model_advances_counts_communications(behavior):
  def beside_optimizer(features, labels, mode):
    spec = model_fn(features, labels, mode)
    advanced = tf1.assign_add(tf1.train.get_global_step(), 1)
    return spec._replace(train_op=tf.group(spec.train_op, advanced.op),
                         loss=tf.bitwise.invert(advanced))

  worker = strategy_worker.StrategyWorker(
      make(communication_period=3, moving_rate=0.4), beside_optimizer)
  worker.step(6)
  # Two communications; the optimizer advances the step, too.
  assert worker.value('global_step') == 4


def test_checkpoint_holds_center_and_first_device_slots(behavior, tmp_path):
  def momentum(*args):
    return model_fn(*args, lambda: tf1.train.MomentumOptimizer(RATE, 0.9))
  worker = strategy_worker.StrategyWorker(
      make(communication_period=2, moving_rate=0.5), momentum)
  worker.step()
  path = worker.save(str(tmp_path / 'model'))
  assert dict(tf.train.list_variables(path)) == {
      'global_step': [], 'w': [2], 'w/Momentum': [2]}
  assert tf.train.load_variable(path, 'w').tolist() == [1.0, 1.0]
  # The gradient of the first device in the first step.
  np.testing.assert_allclose(
      tf.train.load_variable(path, 'w/Momentum'), 1 - TARGETS[0])


def test_run_in_a_function_with_v1_optimizer():
  strategy = make(communication_period=2, moving_rate=0.4)
  with strategy.scope():
    w = tf.Variable([1.0, 1.0])
    sgd = tf1.train.GradientDescentOptimizer(RATE)

  def step():
    with tf.GradientTape() as tape:
      loss = 0.5 * tf.reduce_sum(tf.square(w - target()))
    sgd.apply_gradients([(tape.gradient(loss, w), w)])

  @tf.function
  def train():
    strategy.run(step)

  wanted = expected(4, 2, 0.4)
  for index in range(4):
    train()
    np.testing.assert_allclose(w.numpy(), wanted[index], rtol=1e-5)


def _all_values(w):
  return [w.center.read_value(), w.pair.local_center.read_value(),
          *(copy.read_value() for copy in w.values)]


def test_centre_and_copies_get_what_is_assigned_outside_of_devices():
  # As `Model.set_weights` and a schedule of the learning rate do.
  strategy = make(rho=0.5)
  with strategy.scope():
    w = tf.Variable([1.0, 1.0])
  w.pair.keep_local_center(0.5)
  w.assign([5.0, 6.0])
  w.assign_add([1.0, -2.0])
  assert w.numpy().tolist() == [6.0, 4.0]
  assert [v.numpy().tolist() for v in _all_values(w)] == [[6.0, 4.0]] * 4


def test_centre_and_copies_get_what_is_assigned_in_a_graph(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    with make(rho=0.5).scope():
      w = tf1.get_variable('w', initializer=[1.0, 1.0])
      w.pair.keep_local_center(0.5)
      assignment = w.assign([5.0, 6.0])
    session.run([tf1.global_variables_initializer()])
    session.run([tf1.local_variables_initializer()])
    session.run(assignment)
    assert [v.tolist() for v in session.run(_all_values(w))] == [
        [5.0, 6.0]] * 4


def test_an_update_outside_of_a_step_acts_on_centre_and_copies():
  strategy = make()
  with strategy.scope():
    w = tf.Variable([1.0, 1.0])
  strategy.extended.update(w, lambda v, x: v.assign(x), args=([5.0, 6.0],))
  assert w.numpy().tolist() == [5.0, 6.0]
  assert [v.numpy().tolist() for v in w.values] == [[5.0, 6.0]] * 2


def test_an_update_in_a_step_acts_on_the_copies():
  strategy = make()
  with strategy.scope():
    w = tf.Variable([1.0, 1.0])

  @tf.function
  def run():
    def on_device():
      tf.distribute.get_replica_context().merge_call(
          lambda strategy: strategy.extended.update(
              w, lambda v, x: v.assign(x), args=([5.0, 6.0],)))
    strategy.run(on_device)

  run()
  assert w.numpy().tolist() == [1.0, 1.0]
  assert [v.numpy().tolist() for v in w.values] == [[5.0, 6.0]] * 2


def test_it_is_a_strategy_of_both_versions():
  strategy = make()
  assert isinstance(strategy, tf.distribute.Strategy)
  assert isinstance(strategy, tf1.distribute.Strategy)
  values = strategy.experimental_distribute_values_from_function(
      lambda context: tf.constant([context.replica_id_in_sync_group]))
  assert strategy.gather(values, 0).numpy().tolist() == [0, 1]


def test_what_an_optimizer_makes_is_state_of_each_device():
  strategy = make(communication_period=1, moving_rate=0.5)
  with strategy.scope():
    w = tf.Variable([1.0, 1.0])
    optimizer = tf.keras.optimizers.Nadam(0.01)

  @tf.function
  def train():
    strategy.run(lambda: optimizer.apply_gradients([(tf.ones([2]), w)]))

  train()
  schedule = optimizer._u_product
  assert not hasattr(schedule, 'pair')
  for copy in schedule.values:  # .9 * (1 - .96 / 2), not half of the way to it.
    np.testing.assert_allclose(copy.numpy(), 0.468, rtol=1e-6)


def test_keras_fit_trains_the_center_and_saves_it(tmp_path):
  strategy = make(communication_period=2)
  x = np.random.randn(64, 3).astype(np.float32)
  y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
  with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(
        1, use_bias=False, input_shape=(3,))])
    model.compile(tf.keras.optimizers.SGD(0.1), 'mse')
  model.fit(x, y, batch_size=8, epochs=40, verbose=0)
  kernel = model.layers[0].kernel.numpy()
  np.testing.assert_allclose(kernel, [[1.0], [-2.0], [0.5]], atol=0.02)
  model.save_weights(str(tmp_path / 'weights'))
  plain = tf.keras.Sequential([tf.keras.layers.Dense(
      1, use_bias=False, input_shape=(3,))])
  plain.load_weights(str(tmp_path / 'weights'))
  np.testing.assert_array_equal(plain.layers[0].kernel.numpy(), kernel)


@pytest.mark.parametrize('devices, error, words', [
    (['/cpu:0'], ValueError, 'two or more'),
    (['/cpu:0', '/cpu:0'], ValueError, 'each device once'),
    (['/cpu:0', '/cpu:77'], ValueError, 'CPU:77'),
    ('/cpu:0', TypeError, 'list'),
])
def test_bad_devices_raise(devices, error, words):
  with pytest.raises(error, match=words):
    elastic_average_strategy.ElasticAverageStrategy(devices=devices)


def test_sparse_exchange_between_devices_raises():
  with pytest.raises(ValueError, match='sparse_exchange'):
    make(sparse_exchange=True)


def test_a_partitioned_variable_is_warm_started(behavior, tmp_path):
  values = np.arange(8, dtype=np.float32).reshape(4, 2)
  with tf.Graph().as_default(), tf1.Session() as session:
    whole = tf1.get_variable('table', initializer=values)
    session.run(whole.initializer)
    checkpoint = tf1.train.Saver([whole]).save(session, str(tmp_path / 'whole'))

  def partitioned(features, labels, mode):
    del features, labels
    table = tf1.get_variable(
        'table', [4, 2], partitioner=tf1.fixed_size_partitioner(2))
    tf1.train.warm_start(checkpoint)
    loss = tf.reduce_sum(tf.concat(list(table), axis=0))
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(
        loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      make(communication_period=2, moving_rate=0.25), partitioned)
  worker.step(2)
  path = worker.save(str(tmp_path / 'trained'))
  # Each of two copies is at -2, and gives a quarter of it.
  np.testing.assert_array_equal(
      tf.train.load_variable(path, 'table'), values - 1.0)


@pytest.mark.parametrize('zero_debias', (False, True))
def test_a_moving_average_outside_of_devices_counts_once(zero_debias):
  """Of 8, 9 and 7, beside one device."""
  found = []
  for scope in (make().scope(), contextlib.nullcontext()):
    with tf.Graph().as_default(), tf1.Session() as session, scope:
      x = tf1.placeholder(tf.float32, [])
      average = tf1.train.ExponentialMovingAverage(
          0.6, zero_debias=zero_debias)
      update = average.apply([x])
      v = average.average(x)
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      values = []
      for number in (8.0, 9.0, 7.0):
        session.run(update, {x: number})
        values.append(session.run(
            [copy.read_value() for copy in getattr(v, 'values', [v])]))
      found.append(values)
  np.testing.assert_allclose(
      found[0], np.repeat(found[1], 2, axis=1), rtol=1e-6)
