# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of scaling rows in place."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.clipping import row_scaling

tf1 = tf.compat.v1


def _scaled(start, positions, scales):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    done = row_scaling.scale_rows(v, tf.constant(positions, tf.int64),
                                  tf.constant(scales, start.dtype))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(done)
      return session.run(v)


@pytest.mark.parametrize('row_shape, scale_shape', [
    ([], []), ([3], [1]), ([2, 3], [2, 1]), ([2, 3], [1, 1])])
def test_scales_broadcast_to_rows(behavior, row_shape, scale_shape):
  start = np.random.rand(5, *row_shape).astype(np.float32)
  scales = np.random.rand(2, *scale_shape).astype(np.float32)
  want = start.copy()
  want[[4, 1]] *= scales
  np.testing.assert_array_equal(_scaled(start, [4, 1], scales), want)


def test_no_rows(behavior):
  start = np.float32([[1.0, 2.0]])
  np.testing.assert_array_equal(
      _scaled(start, [], np.zeros([0, 1])), start)


def test_more_rows_than_a_block_holds(behavior, monkeypatch):
  monkeypatch.setattr(row_scaling, '_BLOCK_BYTES', 32)  # Two rows of four.
  start = np.random.rand(7, 4).astype(np.float32)
  scales = np.random.rand(5, 1).astype(np.float32)
  want = start.copy()
  want[[0, 2, 3, 4, 6]] *= scales
  np.testing.assert_array_equal(
      _scaled(start, [0, 2, 3, 4, 6], scales), want)


def test_a_value_read_before_stays_as_it_was():
  v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
  before = v.read_value()
  row_scaling.scale_rows(v, tf.constant([1]), tf.constant([[0.5]]))
  between = v.read_value()
  row_scaling.scale_rows(v, tf.constant([0]), tf.constant([[3.0]]))
  np.testing.assert_array_equal(before, [[1.0, 2.0], [3.0, 4.0]])
  np.testing.assert_array_equal(between, [[1.0, 2.0], [1.5, 2.0]])
  np.testing.assert_array_equal(v, [[3.0, 6.0], [1.5, 2.0]])


def test_rows_of_one_block_need_no_loop(monkeypatch):
  """A graph with many small variables is built faster."""

  def num_operations():
    with tf.Graph().as_default() as graph:
      v = tf1.get_variable('v', [2, 4])
      before = len(graph.get_operations())
      row_scaling.scale_rows(v, tf.constant([1]), tf.constant([[0.5]]))
      return len(graph.get_operations()) - before

  monkeypatch.setattr(row_scaling, '_BLOCK_BYTES', 32)
  without = num_operations()
  monkeypatch.setattr(row_scaling, '_BLOCK_BYTES', 31)
  assert without < num_operations()
