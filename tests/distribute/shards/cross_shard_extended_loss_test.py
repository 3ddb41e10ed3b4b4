# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The loss that Estimator adds up, of two shards on one host."""

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import cross_shard_strategy

tf1 = tf.compat.v1
SUM = tf1.losses.Reduction.SUM


def _reported(mode, **kwargs):
  """Returns the loss of each shard's spec, of losses 1 and 3."""
  strategy = cross_shard_strategy.CrossShardStrategy(
      ['CPU:0', 'CPU:1'], **kwargs)

  def replica():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    loss = tf.gather([1.0, 3.0], index)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.no_op() if mode == 'train' else None)

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    spec = strategy.extended.call_for_each_replica(replica)
    return session.run(list(strategy.experimental_local_results(spec.loss)))


@pytest.mark.parametrize('kwargs', [
    {}, {'reduction': SUM}, {'group_assignment': [[0], [1]]},
    {'group_assignment': [[1, 0]]}], ids=str)
def test_reported_is_the_mean_over_the_shards(behavior, kwargs):
  # 1 / 2 + 3 / 2, whatever the gradients are.
  assert _reported('train', **kwargs) == [0.5, 1.5]


def test_a_spec_that_does_not_train_has_its_own_loss(behavior):
  assert _reported('eval') == [1.0, 3.0]
