# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of gradients that are applied as they are, to each copy."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1


def _apply(strategy, make_pairs):
  """Applies `make_pairs(weight, index)` by Adagrad on each replica."""
  with tf.Graph().as_default(), strategy.scope():
    step = tf1.train.get_or_create_global_step()

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      weight = tf1.get_variable('weight', initializer=8.0, use_resource=True)
      optimizer = tf1.train.MomentumOptimizer(1.0, 0.5)
      return cross_shard.apply_reduced_gradients(
          optimizer, make_pairs(weight, index), step), weight

    train_op, weight = strategy.run(replica)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(2):
        session.run(strategy.experimental_local_results(train_op))
      return session.run(
          [list(strategy.experimental_local_results(weight)), step])


def _mirrored():
  return tf.distribute.MirroredStrategy(
      ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())


def test_each_copy_gets_its_own_gradient(behavior):
  weights, step = _apply(_mirrored(), lambda weight, index: [
      (tf.cast(index, tf.float32) + 1.0, weight), (None, weight)])
  # Gradients 1 and 2; velocities g, then 1.5 g.
  np.testing.assert_array_equal(weights, [5.5, 3.0])
  assert step == 2


def test_no_gradient_is_refused():
  with pytest.raises(ValueError, match='must hold a gradient'):
    _apply(_mirrored(), lambda weight, index: [(None, weight)])


def test_one_copy_for_all_replicas_is_refused():
  strategy = tf.distribute.experimental.CentralStorageStrategy(
      ['CPU:0', 'CPU:1'], 'CPU:0')
  with pytest.raises(ValueError, match='once for all replicas'):
    _apply(strategy, lambda weight, index: [(tf.constant(1.0), weight)])
