# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the functions on sparse gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import indexed_slices


def test_deduplicate_sums_the_values_of_equal_ids():
  slices = tf.IndexedSlices(
      tf.constant([[1., 2.], [10., 20.], [100., 200.], [5., 5.]]),
      tf.constant([4, 2, 4, 0]), dense_shape=tf.constant([9, 2]))
  unique = indexed_slices.deduplicate(slices)
  np.testing.assert_array_equal(unique.indices, [4, 2, 0])
  np.testing.assert_array_equal(
      unique.values, [[101., 202.], [10., 20.], [5., 5.]])
  np.testing.assert_array_equal(unique.dense_shape, [9, 2])


def test_deduplicate_keeps_an_empty_gradient_empty():
  unique = indexed_slices.deduplicate(tf.IndexedSlices(
      tf.zeros([0, 3]), tf.zeros([0], tf.int64)))
  assert unique.values.shape == (0, 3)
  assert unique.indices.dtype == tf.int64


def test_deduplicate_refuses_a_dense_gradient():
  with pytest.raises(TypeError, match='`slices` must be .* Received: '):
    indexed_slices.deduplicate(tf.zeros([3]))


def test_map_values_keeps_the_kind_of_gradient():
  sparse = tf.IndexedSlices(tf.constant([[2.]]), tf.constant([1]))
  double = indexed_slices.map_values(lambda x: 2 * x, sparse)
  np.testing.assert_array_equal(tf.convert_to_tensor(double.values), [[4.]])
  assert float(indexed_slices.map_values(lambda x: 2 * x, 3.0)) == 6.0
  assert indexed_slices.map_values(lambda x: 2 * x, None) is None


def test_components_are_the_tensors_of_a_gradient():
  sparse = tf.IndexedSlices(tf.constant([[2.]]), tf.constant([1]))
  assert len(indexed_slices.components(sparse)) == 2
  assert len(indexed_slices.components(tf.constant(1.))) == 1
  assert indexed_slices.components(None) == []
