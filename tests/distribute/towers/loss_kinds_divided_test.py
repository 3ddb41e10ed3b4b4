# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the kind of a quotient."""

import tensorflow as tf

from tfplugin.distribute.towers import loss_kinds

tf1 = tf.compat.v1


def test_a_sum_over_1_stays_a_sum():
  # 1 is the number of rows, and it divides nothing.
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [1, 2])
    kinds = loss_kinds.Kinds(
        {x.ref(): loss_kinds.ROWS}, lambda op: True, num_rows=1)
    assert kinds.of(tf.reduce_sum(x) / 1.0).is_sum
    assert not kinds.of(tf.reduce_sum(x) / 2.0).is_sum
