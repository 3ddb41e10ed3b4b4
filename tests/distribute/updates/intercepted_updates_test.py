# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A step of a strategy with an update that passes its rule by is refused."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1


def _clipping(pattern='weight'):
  return distribute.VariableClippingStrategy(
      tf.distribute.OneDeviceStrategy('/cpu:0'), {pattern: 0}, 1.0)


def _elastic(rho, devices=None):
  return distribute.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.5, rho=rho, devices=devices)


# name: (make the strategy, whether it refuses)
STRATEGIES = {
    'drop stale': (
        lambda: distribute.DropStaleGradientStrategy(staleness=1), True),
    'clipping': (_clipping, True),
    'clipping another variable': (lambda: _clipping('other'), False),
    'elastic': (lambda: _elastic(0.0), False),
    'elastic with a penalty': (lambda: _elastic(0.5), True),
}


def _in_branch(update):

  def run():
    with tf.control_dependencies([update()]):
      return tf.constant(True)

  return tf.group(tf.cond(tf.constant(True), run, lambda: tf.constant(False)))


# How a step updates `weight` beside an optimizer for `other`.
UPDATES = {
    'assign': lambda weight: weight.assign(0.5 * weight, read_value=False),
    'scatter': lambda weight: tf1.scatter_sub(weight, [0], [1.0]),
    'apply': lambda weight: tf.raw_ops.ResourceApplyGradientDescent(
        var=weight.handle, alpha=1.0, delta=tf.ones([2])),
    'in a branch': lambda weight: _in_branch(
        lambda: weight.assign(0.5 * weight, read_value=False)),
}


def _step(update):
  """A train step; `None` leaves `weight` to the optimizer."""
  weight = tf1.get_variable('weight', initializer=[3.0, 4.0])
  other = tf1.get_variable('other', initializer=[1.0, 2.0])
  loss = tf.reduce_sum(weight * other)
  optimizer = tf1.train.GradientDescentOptimizer(0.1)
  step = tf1.train.get_global_step()
  if update is None:
    return optimizer.minimize(loss, step)
  train_op = optimizer.minimize(loss, step, var_list=[other])
  return tf.group(train_op, update(weight))


def _build(make, step):
  with tf.Graph().as_default():
    strategy = make()
    with strategy.scope():
      tf1.train.create_global_step()
      return strategy.extended.call_for_each_replica(step)


@pytest.mark.parametrize('how', UPDATES)
@pytest.mark.parametrize('name', STRATEGIES)
def test_update_beside_the_optimizers(behavior, name, how):
  make, refuses = STRATEGIES[name]

  def step():
    return tf.group(_step(UPDATES[how]))

  if not refuses:
    _build(make, step)
    return
  with pytest.raises(ValueError, match='weight.*`constraint`') as error:
    _build(make, step)
  assert 'Strategy' in str(error.value)


@pytest.mark.parametrize('name', STRATEGIES)
def test_updates_by_optimizers_pass(behavior, name):
  _build(STRATEGIES[name][0], lambda: _step(None))


@pytest.mark.parametrize('name', STRATEGIES)
def test_what_the_step_does_not_run_is_left_alone(behavior, name):

  def step():
    train_op = _step(None)
    with tf1.variable_scope('', reuse=True):
      weight = tf1.get_variable('weight')
    weight.assign([1.0, 1.0])
    return train_op

  _build(STRATEGIES[name][0], step)


def _around(strategy, step):
  """A function that runs the step in each replica."""
  return tf.function(lambda by_hand: strategy.run(step, (by_hand,)))


def _of_replicas(strategy, step):
  """A function that each replica runs; called twice, to be traced once."""
  function = tf.function(step)

  def run(by_hand):
    strategy.run(function, args=(by_hand,))
    traces = function.experimental_get_tracing_count()
    strategy.run(function, kwargs={'by_hand': by_hand})
    assert function.experimental_get_tracing_count() == traces

  return run


def _of_replicas_in_another(strategy, step):
  function = tf.function(step)
  return tf.function(lambda by_hand: strategy.run(function, (by_hand,)))


@pytest.mark.parametrize(
    'make_train', [_around, _of_replicas, _of_replicas_in_another])
@pytest.mark.parametrize('make_strategy, expected', [
    # |(3, 4)| = 5
    (_clipping, [0.6, 0.8]),
    (lambda: _elastic(0.5, ['/cpu:0', '/cpu:1']), [3.0, 4.0])])
def test_function(make_train, make_strategy, expected):
  strategy = make_strategy()
  with strategy.scope():
    weight = tf.Variable([3.0, 4.0], name='weight')

  def step(by_hand):
    if by_hand:
      weight.assign_sub([1.0, 1.0])
    else:
      tf1.train.GradientDescentOptimizer(0.0).apply_gradients(
          [(tf.ones([2]), weight)])

  train = make_train(strategy, step)
  train(False)
  assert weight.numpy() == pytest.approx(expected)
  with pytest.raises(ValueError, match='weight'):
    train(True)
  # Nothing was done to it.
  assert weight.numpy() == pytest.approx(expected)


def test_autograph_converts_what_replicas_run():
  strategy = _clipping()

  def halve_below_one(x):
    while x > 1.0:
      x /= 2.0
    return x

  found = strategy.run(tf.function(halve_below_one), (tf.constant(6.0),))
  assert found.numpy() == 0.75


def test_a_call_within_a_step_is_no_step(behavior, monkeypatch):
  audited = []

  def step():
    return tf.distribute.get_replica_context().merge_call(
        lambda strategy: strategy.extended.call_for_each_replica(tf.no_op))

  with tf.Graph().as_default():
    strategy = _clipping()
    monkeypatch.setattr(strategy.extended, '_step_is_built', audited.append)
    with strategy.scope():
      for count in (1, 2):
        strategy.extended.call_for_each_replica(step)
        assert len(audited) == count
