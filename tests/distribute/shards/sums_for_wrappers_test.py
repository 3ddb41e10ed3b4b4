# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of wrappers that a program writes: they get sums over shards."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards import four_shards
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.optimizers import cross_shard
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1
SUM = tf1.losses.Reduction.SUM
SGD = tf1.train.GradientDescentOptimizer

STRATEGIES = {
    'cross shard': lambda: cross_shard_strategy.CrossShardStrategy(
        four_shards.CPUS),
    'mirrored': lambda: tf.distribute.MirroredStrategy(
        four_shards.CPUS, tf.distribute.ReductionToOneDevice()),
}


class Squaring(tf1.train.Optimizer):
  """Passes on the squares of gradients: a sum of squares is another number."""

  def __init__(self, base):
    super().__init__(False, 'Squaring')
    self.base = base

  def compute_gradients(self, *args, **kwargs):
    return self.base.compute_gradients(*args, **kwargs)

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return self.base.apply_gradients(
        [(g * g, v) for g, v in grads_and_vars], global_step, name)


class Checking(Squaring):
  """Applies the squares if they are finite, as a loss scale does."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    good = tf.reduce_all([tf.math.is_finite(g) for g, _ in grads_and_vars])
    return tf.cond(good, lambda: tf.group(super(
        Checking, self).apply_gradients(grads_and_vars, global_step)), tf.no_op)


class Assigning(Squaring):
  """Is applied by itself, inside a wrapper."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return tf.group(*[v.assign_sub(g) for g, v in grads_and_vars], name=name)


class Accumulating(Squaring):
  """Applies the sum of the gradients of all steps."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    total = tf1.get_variable(
        'total', initializer=0.0, trainable=False, use_resource=True)
    (gradient, variable), = grads_and_vars
    with tf.control_dependencies([total.assign_add(gradient)]):
      return tf.cond(total > 0.0, lambda: tf.group(self.base.apply_gradients(
          [(total.read_value(), variable)], global_step)), tf.no_op)


class AddingOwn(Squaring):
  """Applies the gradient of a loss of its own, too."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    pairs = list(grads_and_vars)
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    own, = tf.gradients(pairs[0][1] * tf.gather(
        tf.constant(four_shards.GRADIENTS), index), [pairs[0][1]])
    with tf.control_dependencies([
        self.base.apply_gradients(pairs, global_step)]):
      return self.base.apply_gradients([(own, pairs[0][1])])


# The sum of the gradients is 15, and its mean over the shards 3.75.
@pytest.mark.parametrize('reduction, squared', [
    (SUM, 15.0 ** 2), ('weighted_mean', 3.75 ** 2)])
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_a_wrapper_gets_the_sum(behavior, strategy, reduction, squared):
  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        Squaring(SGD(1.0)), reduction).minimize(weight * x)

  np.testing.assert_array_equal(
      four_shards.train(STRATEGIES[strategy](), make_train_op),
      [100 - squared] * 4)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_wrappers_inside_and_outside_of_a_wrapper(behavior, strategy):
  def make_train_op(weight, x):
    inner = variable_clipping.VariableClippingOptimizer(
        Squaring(Squaring(SGD(1.0))), [(weight, [])], 4.0)
    if strategy == 'mirrored':
      inner = Squaring(variable_clipping.VariableClippingOptimizer(
          SGD(1.0), [(weight, [])], 4.0))
    return cross_shard.CrossShardOptimizer(inner, SUM).minimize(weight * x)

  # 100 - 15 ** 4 and 100 - 15 ** 2, each clipped.
  np.testing.assert_allclose(
      four_shards.train(STRATEGIES[strategy](), make_train_op), [-4.0] * 4,
      rtol=1e-6)


def test_a_wrapper_applies_the_sum_in_a_branch(behavior):
  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        Checking(SGD(1.0)), SUM).minimize(weight * x)

  np.testing.assert_array_equal(
      four_shards.train(STRATEGIES['cross shard'](), make_train_op),
      [100 - 15.0 ** 2] * 4)


def test_a_wrapped_optimizer_that_assigns_gets_the_sum(behavior):
  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        Squaring(Assigning(SGD(1.0))), SUM).minimize(weight * x)

  np.testing.assert_array_equal(
      four_shards.train(STRATEGIES['cross shard'](), make_train_op),
      [100 - 15.0 ** 2] * 4)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_a_wrapper_gets_the_sum_in_a_function(strategy):
  strategy = STRATEGIES[strategy]()
  with strategy.scope():
    weight = tf.Variable(100.0)
  optimizer = cross_shard.CrossShardOptimizer(Squaring(SGD(1.0)), SUM)

  def step():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      x = tf.gather(tf.constant(four_shards.GRADIENTS), index)
      optimizer.minimize(lambda: weight * x, var_list=[weight])
    strategy.run(shard)

  with pytest.raises(NotImplementedError, match='eager.*Squaring.*function'):
    step()
  tf.function(step)()
  assert weight.numpy() == 100 - 15.0 ** 2


def _run_eagerly(make, devices):
  strategy = cross_shard_strategy.CrossShardStrategy(devices, SUM)
  with strategy.scope():
    weight = tf.Variable(100.0)
  optimizer = make(weight)

  def shard():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    x = tf.gather(tf.constant(four_shards.GRADIENTS), index)
    optimizer.minimize(lambda: weight * x, var_list=[weight])

  strategy.run(shard)
  return [v.numpy() for v in strategy.experimental_local_results(weight)]


@pytest.mark.parametrize('make', (
    lambda _: Squaring(SGD(1.0)),
    lambda v: variable_clipping.VariableClippingOptimizer(
        Squaring(SGD(1.0)), [(v, [])], 4.0)))
def test_the_strategy_refuses_a_wrapper_in_eager_execution(make):
  """It would get the gradients of one shard: 100 - (1 + 4 + 16 + 64)."""
  with pytest.raises(NotImplementedError, match=(
      'under `CrossShardStrategy`.*sums.*eager.*tf.function')):
    _run_eagerly(make, four_shards.CPUS)


@pytest.mark.parametrize('make, devices, expected', [
    (lambda _: SGD(1.0), four_shards.CPUS, [85] * 4),
    (lambda _: tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
        SGD(1.0), 8.0), four_shards.CPUS, [85] * 4),
    (lambda v: variable_clipping.VariableClippingOptimizer(
        SGD(1.0), [(v, [])], 4.0), four_shards.CPUS, [4] * 4),
    (lambda _: Squaring(SGD(3.0)), four_shards.CPUS[:1], [97])])
def test_other_optimizers_and_one_shard_are_applied_eagerly(
    make, devices, expected):
  np.testing.assert_array_equal(_run_eagerly(make, devices), expected)


def test_a_wrapper_gets_the_sum_of_its_group(behavior):
  strategy = cross_shard_strategy.CrossShardStrategy(
      four_shards.CPUS, group_assignment=[[0, 1], [2, 3]])

  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        Squaring(SGD(1.0)), SUM).minimize(weight * x)

  # The strategy's groups: 1 + 2 and 4 + 8.
  np.testing.assert_array_equal(
      four_shards.train(strategy, make_train_op), [91, 91, -44, -44])


# By the strategy, or by the optimizer in it.
FORMS = {'strategy': lambda optimizer: optimizer,
         'optimizer': lambda optimizer: cross_shard.CrossShardOptimizer(
             optimizer, SUM)}


def _train(wrap, groups=None, reduction=SUM, steps=1):
  return four_shards.train(cross_shard_strategy.CrossShardStrategy(
      four_shards.CPUS, reduction, groups), lambda weight, x: wrap(
          weight).minimize(weight * x), steps)


@pytest.mark.parametrize('reduction, gradient', [
    (SUM, 15.0), ('weighted_mean', 3.75)])
@pytest.mark.parametrize('make', (Squaring, Checking, lambda sgd: Squaring(
    Assigning(sgd))))
def test_the_strategy_gives_a_wrapper_the_sum(
    behavior, caplog, make, reduction, gradient):
  np.testing.assert_array_equal(
      _train(lambda _: make(SGD(1.0)), reduction=reduction),
      [100 - gradient ** 2] * 4)
  assert 'changes its own gradients' not in caplog.text


@pytest.mark.parametrize('wrap', (
    lambda v: variable_clipping.VariableClippingOptimizer(
        Squaring(SGD(1.0)), [(v, [])], 4.0),
    lambda v: Squaring(variable_clipping.VariableClippingOptimizer(
        SGD(1.0), [(v, [])], 4.0))))
def test_the_strategy_and_wrappers_of_both_kinds(behavior, wrap):
  np.testing.assert_allclose(_train(wrap), [-4.0] * 4, rtol=1e-6)


def test_the_strategy_gives_a_wrapper_the_sum_of_its_group(behavior):
  np.testing.assert_array_equal(
      _train(lambda _: Squaring(SGD(1.0)), [[0, 1], [2, 3]]),
      [91, 91, -44, -44])


@pytest.mark.parametrize('form', FORMS)
def test_what_a_wrapper_accumulates_is_summed_once(behavior, form):
  # 15 after the first step, and 30 after the second.
  np.testing.assert_array_equal(
      _train(lambda _: FORMS[form](Accumulating(SGD(1.0))), steps=2),
      [100 - 45] * 4)


@pytest.mark.parametrize('form', FORMS)
def test_a_gradient_that_a_wrapper_takes_is_summed(behavior, form):
  np.testing.assert_array_equal(
      _train(lambda _: FORMS[form](AddingOwn(SGD(1.0)))), [100 - 30] * 4)


def test_an_optimizer_inside_that_assigns_alone_is_summed_once(behavior):
  class Alone(tf1.train.Optimizer):
    """Holds no optimizer."""

    def __init__(self):
      super().__init__(False, 'Alone')

    apply_gradients = Assigning.apply_gradients

  class Computing(Squaring):
    """A wrapper that computes its gradients itself."""

    compute_gradients = tf1.train.Optimizer.compute_gradients

  np.testing.assert_array_equal(
      _train(lambda _: Alone()), [85] * 4)
  np.testing.assert_array_equal(
      _train(lambda _: Computing(Alone())), [100 - 15.0 ** 2] * 4)
