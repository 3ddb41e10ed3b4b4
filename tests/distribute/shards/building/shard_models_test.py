# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the scopes of shards; most of it is tested by shard_run_test."""

import tensorflow as tf

from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1


def test_the_devices_and_scopes_around_are_those_of_every_shard(behavior):
  def fn(unused_shard):
    with tf.name_scope('inside'):
      op = tf.no_op('op')
    return op, tf1.get_variable('w', [])

  with tf.Graph().as_default(), tf1.device('/job:worker'), (
      tf.name_scope('around')):
    _, ((first, w), (second, _)) = shared_shards.SharedShards(
        ['/device:CPU:0', '/device:CPU:1']).build(fn)
  assert (first.device, second.device) == (
      '/job:worker/device:CPU:0', '/job:worker/device:CPU:1')
  assert (first.name, second.name) == (
      'around/inside/op', 'around/tower_1/inside/op')
  assert (w.name, w.values[0].device) == ('w:0', '/job:worker/device:CPU:0')
