# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that are applied in some steps only, in every elastic form."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.testing import decorated_models
from tfplugin.testing import strategy_worker

tf1 = tf.compat.v1

SETTINGS = {'communication_period': 2, 'moving_rate': 0.25}
# loss = w * w / 2; rate .5, momentum .5. Two gradients are averaged.
#   update 1: m = 1,     w = 1 - .5 = .5
#   update 2: m = 1,     w = 0; d = -1 / 4: w = .25, centre .75
#   update 3: m = .75,   w = -.125
#   update 4: m = .25,   w = -.25; d = -1 / 4: w = 0, centre .5
COPY = [1.0, 0.5, 0.5, 0.25, 0.25, -0.125, -0.125, 0.0]
CENTER = [1.0, 1.0, 1.0, 0.75, 0.75, 0.75, 0.75, 0.5]


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


def test_accumulation_under_the_strategy_on_parameter_servers(
    behavior, request):
  if behavior == 'v2':
    tf1.disable_control_flow_v2()  # TensorFlow refuses its branches.
    request.addfinalizer(tf1.enable_control_flow_v2)
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(**SETTINGS), model_fn)
  for step in range(8):
    worker.step()
    assert (worker.value('w'), worker.center('w')) == (COPY[step], CENTER[step])
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


def test_a_condition_of_one_device_is_refused(behavior):
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      devices=['/cpu:0', '/cpu:1'], **SETTINGS)
  # Under v2 behaviour TensorFlow itself refuses.
  with pytest.raises(RuntimeError, match='condition around|control flow'):
    strategy_worker.StrategyWorker(strategy, model_fn)


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
    (['/cpu:0', '/cpu:1'], [1.0, 0.625, 0.625, 0.3671875])])
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
