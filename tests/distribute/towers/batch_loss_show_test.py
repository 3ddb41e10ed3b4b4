# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of who sees the loss of the batch instead of a tower's."""

import tensorflow as tf

from tfplugin.distribute.towers import batch_loss

tf1 = tf.compat.v1


def test_what_reads_the_loss_of_a_tower_reads_that_of_the_batch(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    losses = [tf1.placeholder_with_default(x, []) for x in (
        tf.constant(2.0), tf.constant(3.0, tf.float64))]
    before = tf.negative(losses[0])  # What the total waits for is its own.
    with tf.control_dependencies([before]):
      total = losses[0] * 4 + tf.cast(losses[1], tf.float32)
    readers = [loss + loss for loss in losses]
    batch_loss.show(losses, total)
    assert session.run([total, before, *readers]) == [11.0, -2.0, 22.0, 22.0]
    assert readers[1].dtype == tf.float64
    # The losses themselves stay.
    assert session.run(losses) == [2.0, 3.0]
