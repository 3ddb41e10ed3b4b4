# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of shards in one graph; most of it is tested by tower_run_test."""

import tensorflow as tf

from tfplugin.distribute.towers import shard_towers
from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1

_HALVES = tower_weights.TowerWeights([.5, .5], [.5, .5])


def test_each_shard_knows_its_index_and_shares_the_variables(behavior):
  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])

  def fn(tower):
    return (tower, tower_strategy.current_tower(),
            strategy.num_replicas_in_sync, tf1.get_variable('w', []))

  with tf.Graph().as_default(), strategy.scope():
    _, shards = strategy.build_towers(fn, _HALVES)
    assert strategy.num_replicas_in_sync == 2
  assert [shard[:3] for shard in shards] == [(0, 0, 1), (1, 1, 1)]
  assert shards[0][3] is shards[1][3]
  assert isinstance(shards[0][3], tower_variables.TowerVariable)


def test_a_mean_over_shards_has_their_weights(behavior):
  def fn(tower):
    return tf.distribute.get_replica_context().all_reduce(
        'MEAN', tf.constant(4.0 * tower))

  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    _, means = strategy.build_towers(
        fn, tower_weights.TowerWeights([.75, .25], [.75, .25]))
    assert session.run(means) == [1.0, 1.0]
