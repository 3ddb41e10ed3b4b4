# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a tower knows of the tensors that it is given."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import part_kinds

tf1 = tf.compat.v1


def _kinds(*batch, tower=0):
  return part_kinds.PartKinds(
      tf1.get_default_graph(), *part_kinds.of_batch(batch, tower))


def test_what_towers_share_is_the_same_for_all():
  with tf.Graph().as_default():
    shared = tf.constant([1.0, 2.0])
    own = [{'x': tf.ones([2]), 'shared': shared, 'none': None}
           for _ in range(2)]
    kinds = _kinds(*own)
    assert kinds.of(own[0]['x']).is_rows
    assert kinds.of(shared).is_same


def test_parts_of_sparse_tensors(behavior):
  with tf.Graph().as_default():
    sparse = [tf1.sparse_placeholder(tf.float32) for _ in range(2)]
    kinds = _kinds(*sparse, tower=1)
    assert kinds.of(sparse[1].values).is_rows
    assert kinds.of(sparse[1].dense_shape[0]).is_sum


def test_kinds_inside_of_a_branch(behavior):
  with tf.Graph().as_default():
    rows = [tf1.placeholder(tf.float32, [None]) for _ in range(2)]
    kinds, found = _kinds(*rows), []

    def branch():
      found.extend(kinds.of(tensor) for tensor in (
          tf.reduce_sum(rows[0]), tf.constant(1.0) * 2))
      return 1.0

    tf.cond(tf1.placeholder(tf.bool, []),
            lambda: tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: 0.0),
            lambda: 0.0)
  assert [kind.is_sum for kind in found] == [True, False]
  assert found[1].is_same


def test_kinds_of_what_a_loop_hands_on():
  with tf.Graph().as_default():
    rows = [tf1.placeholder(tf.float32, [None]) for _ in range(2)]
    kinds, carried = _kinds(*rows), []

    def body(i, before, last):
      carried[:] = i, before, last
      return i + 1, last, tf.reduce_sum(rows[0])

    tf.while_loop(lambda i, *_: i < 3, body, [0, 0.0, 0.0])
    i, *sums = map(kinds.inside(carried[0].graph).of, carried)
  assert i.is_same
  # `before` is a sum not before the third iteration.
  assert [kind.is_sum for kind in sums] == [True, True]


@pytest.mark.parametrize('shape, num_rows, expected', [
    ([3, 2], 3, True), ([None, 2], 3, True), ([3], 3, True),
    ([2, 3], 3, False), ([], 3, False), (None, 3, False), ([3], None, False)])
def test_what_may_have_rows(behavior, shape, num_rows, expected):
  with tf.Graph().as_default() as graph:
    kinds = part_kinds.PartKinds(graph, {}, num_rows)
    tensor = tf1.placeholder(tf.float32, shape)
    assert kinds.may_have_rows(tensor) == expected
