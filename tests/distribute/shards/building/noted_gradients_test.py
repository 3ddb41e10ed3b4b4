# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the gradients that are noted; sums are in shard_run_test."""

import tensorflow as tf

from tfplugin.distribute.shards.building import noted_gradients

tf1 = tf.compat.v1


def test_knows_what_was_made_from_a_sum():
  with tf.Graph().as_default():
    summed, other = tf.constant([3.0]), tf.constant([4.0])
    gradients = noted_gradients.NotedGradients()
    assert not gradients.made(tf.identity(other))
    gradients.add(summed)
    clipped, _ = tf.clip_by_global_norm([summed, other], 1.0)
    assert gradients.made(clipped[0])
    assert gradients.made(
        tf.IndexedSlices(summed * 2, tf.constant([0])))
    assert not gradients.made(tf.square(other))


def test_each_op_is_looked_at_once():
  # 2^64 ways lead to the first op.
  with tf.Graph().as_default():
    gradients, x = noted_gradients.NotedGradients(), tf.constant(1.0)
    for _ in range(64):
      x = x + x
    assert not gradients.made(x)
