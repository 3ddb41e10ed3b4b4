# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rows that are filled up."""

import tensorflow as tf

from tfplugin.ops import row_padding

tf1 = tf.compat.v1


def test_rows_of_one_static_length_are_left_alone():
  with tf.Graph().as_default():
    leaves = [tf.zeros([2, 3]), tf.zeros([1, 3])]
    assert row_padding.fill_up(leaves) is leaves
    unknown = [tf1.placeholder(tf.float32) for _ in range(2)]
    assert row_padding.fill_up(unknown) is unknown


def test_rows_are_filled_up_to_the_longest():
  with tf.Graph().as_default(), tf1.Session() as session:
    leaves = [tf1.placeholder_with_default(value, [None, None])
              for value in ([['a', 'b']], [['c']], [['d'], ['e']])]
    filled = row_padding.fill_up(leaves)
    assert [value.tolist() for value in session.run(filled)] == [
        [[b'a', b'b']], [[b'c', b'']], [[b'd', b''], [b'e', b'']]]
