# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of shards in one graph; most of it is tested by shard_run_test."""

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shared_shards
from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1


def test_each_shard_knows_its_index_and_shares_the_variables(behavior):
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])

  def fn(shard):
    return (shard, tower_strategy.current_tower(),
            strategy.num_replicas_in_sync, tf1.get_variable('w', []))

  with tf.Graph().as_default():
    _, shards = strategy.build(fn)
    assert strategy.num_replicas_in_sync == 2
  assert [shard[:3] for shard in shards] == [(0, 0, 1), (1, 1, 1)]
  assert shards[0][3] is shards[1][3]
  assert len(shards[0][3].values) == 1


@pytest.mark.parametrize('shares, mean', (([.75, .25], 1.0), (None, 2.0)))
def test_a_mean_over_shards_has_their_weights(behavior, shares, mean):
  def fn(shard):
    return tf.distribute.get_replica_context().all_reduce(
        'MEAN', tf.constant(4.0 * shard))

  strategy = shared_shards.SharedShards(
      ['/cpu:0', '/cpu:1'], shares_of_rows=shares)
  with tf.Graph().as_default(), tf1.Session() as session:
    _, means = strategy.build(fn)
    assert session.run(means) == [mean, mean]
