# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A step of a strategy ends with its communication, whatever it returns."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_a_step_without_an_estimator_spec_communicates(behavior, devices):
  del behavior

  def step():
    w = tf1.get_variable('w', initializer=0.0)
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(-w)
    return {'loss': w.value() * 2.0, 'train': train_op, 'nothing': None}

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.25, devices=devices)
  with tf.Graph().as_default(), strategy.scope():
    result = strategy.run(tf.autograph.experimental.do_not_convert(step))
    assert result['nothing'] is None
    train = strategy.group(result['train'])
    w, = tf1.global_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      losses = strategy.experimental_local_results(result['loss'])
      for _ in range(3):  # Which does not train.
        assert set(session.run(list(losses))) == {0.0}
      center = 0.0
      for index in range(1, 3):
        session.run(train)
        # A copy: 1, 2; each gives a quarter of 2.
        center = 0.5 * len(devices or '1') if index == 2 else 0.0
        assert session.run(w.read_value()) == center
      assert set(session.run(list(losses))) == {2 * (2 - 0.5)}


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_a_step_that_returns_nothing_of_its_training_is_refused(
    behavior, devices):
  del behavior

  def step():
    w = tf1.get_variable('w', initializer=0.0)
    tf1.train.GradientDescentOptimizer(1.0).minimize(-w)
    return w.value()

  strategy = elastic_average_strategy.ElasticAverageStrategy(devices=devices)
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(RuntimeError, match='Return the result of `minimize`'):
      strategy.run(tf.autograph.experimental.do_not_convert(step))


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_a_step_that_trains_in_a_branch_communicates(behavior, devices):
  del behavior

  def step(should):
    w = tf1.get_variable('w', initializer=0.0)

    def train():
      with tf1.control_dependencies([
          tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
              [(tf.constant(-1.0), w)])]):
        return tf.constant(True)

    return {'train': tf.cond(should, train, lambda: tf.constant(False))}

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.25, devices=devices)
  with tf.Graph().as_default(), strategy.scope():
    should = tf1.placeholder(tf.bool, [])
    train = strategy.experimental_local_results(strategy.run(
        tf.autograph.experimental.do_not_convert(step), (should,))['train'])
    w, = tf1.global_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      centers = []
      for is_trained in (True, False, True):
        session.run(train, {should: is_trained})
        centers.append(session.run(w.read_value()))
  # Each copy gives a quarter of 2.
  assert centers == [0.0, 0.0, 0.5 * len(devices or '1')]


@pytest.mark.parametrize('rho', [0.0, 0.5])
def test_an_update_past_the_penalty_is_refused(behavior, rho):
  del behavior

  def step():
    w = tf1.get_variable('w', initializer=0.0)
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(-w)
    return tf.group(train_op, w.assign_add(1.0))

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.25, rho=rho)
  with tf.Graph().as_default(), strategy.scope():
    if rho:
      with pytest.raises(ValueError, match='outside of the optimizers'):
        strategy.run(tf.autograph.experimental.do_not_convert(step))
    else:
      strategy.run(tf.autograph.experimental.do_not_convert(step))


class _Decaying(tf1.train.Optimizer):
  """Assigns by itself; divides by the number of the step, and advances it."""

  def __init__(self):
    super().__init__(False, 'Decaying')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    rate = 1.0 / (1.0 + tf.cast(global_step.read_value(), tf.float32))
    with tf1.control_dependencies([
        v.assign_sub(rate * g) for g, v in grads_and_vars]):
      return tf.group(global_step.assign_add(1), name=name)


def _decaying_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=0.0)
  return tf1.estimator.EstimatorSpec(
      mode, loss=w + 0.0, train_op=_Decaying().apply_gradients(
          [(tf.constant(-1.0), w)], tf1.train.get_global_step()))


# A strategy counts exchanges, whoever advances the step. The rates are 1, 1,
# 1 / 2, 1 / 2: the copy 1, 2 -> 1.5, 2, 2.5, of which a quarter moves.
@pytest.mark.parametrize('form, steps, centers', [
    ('strategy', [0, 1, 1, 2], [0, 0.5, 0.5, 1]),
    ('devices', [0, 1, 1, 2], [0, 1, 1, 1.75]),
    # 1, 1 / 2, 1 / 3, 1 / 4: the copy 1, 1.5 -> 1.125, 1.125 + 7 / 12.
    ('decorator', [1, 2, 3, 4], [0, 0.375, 0.375, 0.375 + (0.75 + 7 / 12) / 4]),
])
def test_an_optimizer_that_assigns_reads_the_step(
    behavior, form, steps, centers):
  del behavior
  settings = {'communication_period': 2, 'moving_rate': 0.25}
  if form == 'decorator':
    worker = strategy_worker.StrategyWorker(
        tf.distribute.get_strategy(),
        estimator.elastic_average(_decaying_fn, **settings))
  else:
    worker = strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(
            devices=['/cpu:0', '/cpu:1'] if form == 'devices' else None,
            **settings), _decaying_fn)
  for step, center in zip(steps, centers):
    worker.step()
    assert worker.value('global_step') == step
    assert worker.center('w') == pytest.approx(center)
