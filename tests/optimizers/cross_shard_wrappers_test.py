# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of CrossShardOptimizer around wrappers that a program writes."""

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


def test_a_wrapper_gets_the_sum_of_its_group(behavior):
  strategy = cross_shard_strategy.CrossShardStrategy(
      four_shards.CPUS, group_assignment=[[0, 1], [2, 3]])

  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        Squaring(SGD(1.0)), SUM).minimize(weight * x)

  # The strategy's groups: 1 + 2 and 4 + 8.
  np.testing.assert_array_equal(
      four_shards.train(strategy, make_train_op), [91, 91, -44, -44])
