# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of gradients that shards have summed before they apply them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards import four_shards
from tfplugin.distribute.shards import cross_replica
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1
CrossShardStrategy = cross_shard_strategy.CrossShardStrategy


@pytest.mark.parametrize('groups, sums', [
    (None, [15] * 4), ([[0, 1], [2, 3]], [3, 3, 12, 12])])
@pytest.mark.parametrize('change, changed', [
    (lambda g: g, lambda x: x), (lambda g: 0.5 * g, lambda x: 0.5 * x),
    (lambda g: tf.clip_by_norm(g, 1.0), np.ones_like)])
def test_gradients_that_are_summed_by_hand_are_summed_once(
    behavior, groups, sums, change, changed):
  def make_train_op(weight, x):
    other = tf1.get_variable('other', initializer=0.0, use_resource=True)
    gradient, of_other = tf.gradients(weight * x + other * x, [weight, other])
    total = change(cross_replica.cross_replica_sum(gradient, groups))
    # The strategy sums that of `other`.
    with tf.control_dependencies([
        tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(total, weight), (of_other, other)])]):
      return tf.identity(other.read_value())

  sums = np.float32(sums)
  strategy = CrossShardStrategy(four_shards.CPUS, group_assignment=groups)
  np.testing.assert_allclose(
      four_shards.train(strategy, make_train_op), 100 - changed(sums))


def test_rows_of_gradients_that_are_summed_by_hand_are_summed_once(behavior):
  strategy = CrossShardStrategy(four_shards.CPUS[:2])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    def shard():
      table = tf1.get_variable('table', initializer=[[0.0]] * 3,
                               use_resource=True)
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      [rows] = tf.gradients(
          tf.reduce_sum(tf.nn.embedding_lookup(table, [index, 2])), [table])
      return tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
          [(cross_replica.cross_replica_sum(rows), table)]), table

    train_op, table = strategy.run(shard)
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(train_op))
    for copy_of in session.run(list(
        strategy.experimental_local_results(table))):
      np.testing.assert_array_equal(copy_of, [[-1.0], [-1.0], [-2.0]])


def test_sums_by_hand_in_a_function_are_summed_once():
  strategy = CrossShardStrategy(four_shards.CPUS)
  with strategy.scope():
    weight = tf.Variable(100.0)
  sgd = tf1.train.GradientDescentOptimizer(1.0)

  @tf.function
  def step():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      with tf.GradientTape() as tape:
        loss = weight * tf.gather(tf.constant(four_shards.GRADIENTS), index)
      gradient = cross_replica.cross_replica_sum(tape.gradient(loss, weight))
      sgd.apply_gradients([(gradient, weight)])
    strategy.run(shard)

  step()
  assert weight.numpy() == 85.0


def test_the_wrapper_sums_again_what_was_summed_by_hand(behavior):
  """As on TPU, where the wrapper sums whatever it gets."""
  def make_train_op(weight, x):
    [gradient] = tf.gradients(weight * x, [weight])
    return cross_shard.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(1.0)).apply_gradients(
            [(cross_replica.cross_replica_sum(gradient), weight)])
  weights = four_shards.train(
      CrossShardStrategy(four_shards.CPUS), make_train_op)
  np.testing.assert_array_equal(weights, [40] * 4)
