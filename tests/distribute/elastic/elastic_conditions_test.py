# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that are applied in some steps only, in every elastic form."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tests.helpers import strategy_worker
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
SETTINGS = {'communication_period': 2, 'moving_rate': 0.25}
# loss = w * w / 2; rate .5, momentum .5. Two gradients are averaged.
#   update 1: m = 1,     w = 1 - .5 = .5
#   update 2: m = 1,     w = 0; d = -1 / 4: w = .25, centre .75
#   update 3: m = .75,   w = -.125
#   update 4: m = .25,   w = -.25; d = -1 / 4: w = 0, centre .5
COPY = [1.0, 0.5, 0.5, 0.25, 0.25, -0.125, -0.125, 0.0]
CENTER = [1.0, 1.0, 1.0, 0.75, 0.75, 0.75, 0.75, 0.5]
TARGETS = [4.0, 1.5]  # Of each device.
# Two copies that do the same:
#   update 2: d = -1 / 4 twice: w = .25, centre .5
#   update 3: m = .75,   w = -.125
#   update 4: m = .25,   w = -.25; d = -.75 / 4 twice: w = -.0625, centre .125
CENTER_OF_TWO = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.125]


def accumulate(w, optimizer):
  """Every second step applies the mean of two gradients."""
  total = tf1.get_variable('total', initializer=0.0, trainable=False)
  count = tf1.get_variable('count', initializer=0.0, trainable=False)
  gradient, = tf.gradients(w * w / 2, [w])

  def apply():
    update = optimizer.apply_gradients(
        [(total.read_value() / 2, w)], tf1.train.get_global_step())
    with tf1.control_dependencies([update]):
      reset = [v.assign(0.0, read_value=False) for v in (total, count)]
    with tf1.control_dependencies(reset):
      return tf.constant(True)

  with tf1.control_dependencies(
      [total.assign_add(gradient), count.assign_add(1.0)]):
    return tf.cond(tf.equal(count.read_value(), 2.0), apply,
                   lambda: tf.constant(False)).op


def momentum():
  return tf1.train.MomentumOptimizer(0.5, 0.5)


def model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=1.0)
  train_op = accumulate(w, momentum())
  return tf1.estimator.EstimatorSpec(mode, loss=w * w / 2, train_op=train_op)


@pytest.mark.parametrize('devices, center', [
    (None, CENTER), (DEVICES, CENTER_OF_TWO)])
def test_accumulation_under_the_strategy(behavior, devices, center):
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          devices=devices, **SETTINGS), model_fn)
  for step in range(8):
    worker.step()
    assert worker.center('w') == center[step]
  assert worker.value('local_step') == 4
  assert worker.value('global_step') == 2


def test_accumulation_under_the_decorator(behavior):
  values = decorated_models.train(
      estimator.elastic_average(**SETTINGS)(model_fn), 8)
  assert values['w'] == COPY[-1]
  assert values['global_center_variable/w'] == CENTER[-1]
  assert values['local_step'] == 4
  assert values['global_step'] == 2


def test_accumulation_under_the_optimizer(behavior):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter, use_resource=True)
    optimizer = elastic_graphs.make_optimizer(getter, momentum(), **SETTINGS)
    train = accumulate(w, optimizer)
    center = elastic_graphs.center(getter, w)
    with elastic_graphs.session(optimizer) as session:
      for index in range(8):
        session.run(train)
        assert session.run([w, center]) == [COPY[index], CENTER[index]]
      assert session.run([step, optimizer.local_step]) == [2, 4]
    assert 'w/Momentum' in [v.op.name for v in tf1.local_variables()]


@pytest.mark.parametrize('count_steps, count', [
    ('communications', 4), ('local', 8)])
def test_devices_with_gradients_of_their_own_accumulate(
    behavior, count_steps, count):

  def adam_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    total = tf1.get_variable('total', initializer=0.0, trainable=False)
    step = tf1.get_local_variable(
        'step', initializer=0, dtype=tf.int32, use_resource=True)
    target = tf.gather(
        TARGETS, tf.distribute.get_replica_context().replica_id_in_sync_group)
    optimizer = tf1.train.AdamOptimizer(0.125, 0.5, 0.75)

    def apply():
      update = optimizer.apply_gradients(
          [(total.read_value() / 3, w)], tf1.train.get_global_step())
      with tf1.control_dependencies([update]):
        with tf1.control_dependencies([total.assign(0.0).op]):
          return tf.constant(True)

    with tf1.control_dependencies([total.assign_add(w - target)]):
      is_third = tf.equal(step.assign_add(1) % 3, 0)
    train_op = tf.cond(is_third, apply, lambda: tf.constant(False)).op
    return tf1.estimator.EstimatorSpec(mode, loss=w + 0.0, train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          devices=DEVICES, count_steps=count_steps, **SETTINGS),
      adam_fn)
  copies, center = np.ones(2), 1.0
  mean, square = np.zeros(2), np.zeros(2)
  for update in range(1, 9):
    worker.step(3)
    gradient = copies - TARGETS
    mean = (mean + gradient) / 2
    square = (3 * square + gradient ** 2) / 4
    rate = 0.125 * np.sqrt(1 - 0.75 ** update) / (1 - 0.5 ** update)
    copies = copies - rate * mean / (np.sqrt(square) + 1e-8)
    if update % 2 == 0:
      differences = 0.25 * (copies - center)
      copies, center = copies - differences, center + differences.sum()
    np.testing.assert_allclose(worker.center('w'), center, rtol=1e-5)
  assert worker.value('global_step') == count


class Assigning(tf1.train.Optimizer):
  """Gradient descent that overrides `apply_gradients`."""

  def __init__(self):
    super().__init__(False, 'Assigning')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    with tf.control_dependencies([v.assign(v - g / 2).op
                                  for g, v in grads_and_vars]):
      return tf.group(global_step.assign_add(1))


def scaled(optimizer):
  return tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      optimizer, tf1.mixed_precision.DynamicLossScale(2.0))


def sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


class Summing(tf1.train.GradientDescentOptimizer):
  """Reduces something over the devices."""

  def apply_gradients(self, *args, **kwargs):
    tf.distribute.get_replica_context().all_reduce('SUM', tf.constant(1.0))
    return super().apply_gradients(*args, **kwargs)


@pytest.mark.parametrize('make_optimizer, words', [
    (Assigning, 'that assigns to the variables .* `tf.cond` of one device'),
    (lambda: scaled(sgd()), 'cannot wait for each other .*put the condition'),
    (lambda: Summing(0.5), 'cannot wait for each other .*put the condition'),
], ids=['assigning', 'loss scale', 'reduction'])
def test_what_devices_cannot_do_in_a_branch_is_refused(
    behavior, make_optimizer, words):

  def refused(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    train_op = accumulate(w, make_optimizer())
    return tf1.estimator.EstimatorSpec(mode, loss=w + 0.0, train_op=train_op)

  with pytest.raises(RuntimeError, match=f'(?s){words}'):
    strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(
            devices=DEVICES, **SETTINGS), refused)


@pytest.mark.parametrize('make_optimizer', [sgd, Assigning])
def test_one_replica_applies_any_optimizer_in_a_branch(
    behavior, make_optimizer):

  def model_of(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    train_op = accumulate(w, make_optimizer())
    return tf1.estimator.EstimatorSpec(mode, loss=w + 0.0, train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(rho=0.5, **SETTINGS),
      model_of)
  worker.step(8)
  # Updates 1 -> .5 -> .375, as a gradient is w + (w - 1) / 2 = .25; then
  # d = -.625 / 4: w = .53125, centre .84375, and 1 is the centre seen.
  # .53125 -> .3828125 -> .345703125; d = -.498046875 / 4.
  assert worker.center('w') == 0.84375 - 0.12451171875
  assert worker.value('w') == 0.345703125 + 0.12451171875


@pytest.mark.parametrize('make_optimizer', [
    sgd, lambda: tf.keras.optimizers.SGD(0.5)], ids=['v1', 'Keras'])
def test_devices_accumulate_in_a_function(make_optimizer):
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      devices=DEVICES, **SETTINGS)
  with strategy.scope():
    w = tf.Variable(1.0)
    total = tf.Variable(0.0, trainable=False)
    optimizer = make_optimizer()

  @tf.function
  def train(is_last):
    def on_device():
      target = tf.gather(TARGETS, tf.distribute.get_replica_context(
          ).replica_id_in_sync_group)
      total.assign_add(w - target)
      if is_last:
        optimizer.apply_gradients([(total.read_value() / 2, w)])
        total.assign(0.0)
    strategy.run(on_device)

  centers = []
  for index in range(8):
    train(tf.constant(index % 2 == 1))
    centers.append(float(w.numpy()))
  # 1 -> 2.5 -> 3.25 and 1 -> 1.25 -> 1.375: d = .5625 and .09375. Then from
  # 2.6875 -> 3.34375 -> 3.671875 and 1.28125 -> 1.390625 -> 1.4453125.
  second = 1.65625 + (3.671875 + 1.4453125 - 2 * 1.65625) / 4
  assert centers == [1.0, 1.0, 1.0, *[1.65625] * 4, second]


@pytest.mark.parametrize('wrap', [
    lambda: estimator.elastic_average(
        update_order='elastic_first', **SETTINGS)(model_fn),
], ids=['decorator'])
def test_a_branch_cannot_wait_for_a_communication(behavior, wrap):
  with pytest.raises(ValueError, match="`update_order` must be 'gradient_f"):
    decorated_models.train(wrap(), 1)


@pytest.mark.parametrize('devices, centers', [
    # 1 -> .5 -> .25; a quarter of -.75: .4375; again .21875 -> .109375.
    (None, [1.0, 0.8125, 0.8125, 0.63671875]),
    # The same twice: .625, and from .4375 on: d = (.109375 - .625) / 4, twice.
    (DEVICES, [1.0, 0.625, 0.625, 0.3671875])])
def test_dynamic_loss_scale(behavior, devices, centers):

  def scaled(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    optimizer = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
        tf1.train.GradientDescentOptimizer(0.5),
        tf1.mixed_precision.DynamicLossScale(4.0, increment_period=100))
    train_op = optimizer.minimize(w * w / 2, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=w * w / 2, train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          devices=devices, **SETTINGS), scaled)
  for center in centers:
    worker.step()
    assert worker.center('w') == center
  assert worker.value('global_step') == 2


def test_a_step_whose_gradients_are_not_finite_does_not_count(behavior):

  def overflowing(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    calls = tf1.get_local_variable('calls', initializer=0.0, use_resource=True)
    optimizer = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
        tf1.train.GradientDescentOptimizer(0.5),
        tf1.mixed_precision.DynamicLossScale(4.0, increment_period=100))
    # Infinite in the second step.
    loss = w / tf.abs(calls.assign_add(1.0) - 2.0)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=w + 0.0, train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(**SETTINGS), overflowing)
  worker.step(2)
  assert (worker.value('w'), worker.value('local_step')) == (0.5, 1)
  worker.step()
  # 1 -> .5 -> 0, and a quarter of -1.
  assert (worker.value('w'), worker.center('w')) == (0.25, 0.75)
  assert worker.value('global_step') == 1


def alternate(features, labels, mode):
  """Two optimizers in turns, each of which advances the step."""
  del features, labels
  step = tf1.train.get_or_create_global_step()
  v, w = (tf1.get_variable(name, initializer=1.0) for name in 'vw')
  loss = (v * v + w * w) / 2
  (of_v,), (of_w,) = tf.gradients(loss, [v]), tf.gradients(loss, [w])
  optimizers = [tf1.train.GradientDescentOptimizer(0.5) for _ in range(2)]
  train_op = tf.cond(
      tf.equal(step % 2, 0),
      lambda: tf.group(optimizers[0].apply_gradients([(of_v, v)], step)),
      lambda: tf.group(optimizers[1].apply_gradients([(of_w, w)], step)))
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


FORMS = {
    'strategy': lambda model_fn, **settings: strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(**settings), model_fn),
    'decorator': lambda model_fn, **settings: strategy_worker.StrategyWorker(
        tf.distribute.get_strategy(),
        estimator.elastic_average(**settings)(model_fn)),
}


@pytest.mark.parametrize('form, devices', [
    ('strategy', {}), ('strategy', {'devices': DEVICES}), ('decorator', {})])
def test_optimizers_in_exclusive_branches(behavior, form, devices):
  settings = {'communication_period': 1, 'moving_rate': 0.0, **devices}
  with pytest.raises(RuntimeError, match=(
      "different branches of `tf.cond`. Pass `count_steps='local'`")):
    FORMS[form](alternate, **settings).step()
  worker = FORMS[form](alternate, count_steps='local', **settings)
  for _ in range(3):
    worker.step()
  assert worker.value('global_step') == 3
