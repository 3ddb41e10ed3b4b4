# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows and weights of a batch's parts, and of their sum."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import batch_parts

tf1 = tf.compat.v1


def _sum(values, weights):
  return batch_parts.weighted_sum(
      [tf.constant(value, tf.float32) for value in values], weights).numpy()


@pytest.mark.parametrize('weights, expected', (
    # 1 * 8, 10 and 3 * 8, 30.
    ([.5, .5], [2., 20.]), ([1., 1.], [4., 40.]), ([.25, .75], [2.5, 25.]),
    ([2., 2.], [8., 80.]), ([2., 1.], [5., 50.]), ([0., 0.], [0., 0.])))
@pytest.mark.parametrize('as_tensor', (False, True))
def test_dense(weights, expected, as_tensor):
  if as_tensor:
    weights = [tf.constant(weight) for weight in weights]
  found = _sum([[1., 10.], [3., 30.]], weights)
  np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize('as_tensor', (False, True))
def test_weight_0_hides_nan(as_tensor):
  weights = [1.0, 0.0]
  if as_tensor:
    weights = [tf.constant(weight) for weight in weights]
  assert _sum([[2.], [np.nan]], weights).tolist() == [2.]
  assert _sum([[2.], [np.inf]], weights).tolist() == [2.]


def test_sparse_is_concatenated():
  slices = [tf.IndexedSlices(tf.constant([[1.], [2.]]), tf.constant([3, 3])),
            tf.IndexedSlices(tf.constant([[10.]]), tf.constant([0]))]
  found = batch_parts.weighted_sum(slices, [.5, .1])
  assert found.indices.numpy().tolist() == [3, 3, 0]
  np.testing.assert_allclose(found.values, [[.5], [1.], [1.]], rtol=1e-6)


def test_one_value():
  assert _sum([[2., 4.]], [.5]).tolist() == [1., 2.]
  slices = tf.IndexedSlices(tf.constant([[2.]]), tf.constant([3]),
                            dense_shape=tf.constant([4, 1]))
  found = batch_parts.weighted_sum([slices], [.5])
  assert found.values.numpy().tolist() == [[1.]]
  assert found.dense_shape.numpy().tolist() == [4, 1]


def test_dense_and_sparse_are_dense():
  sparse = tf.IndexedSlices(tf.constant([[2.], [2.]]), tf.constant([1, 1]),
                            dense_shape=tf.constant([2, 1]))
  found = batch_parts.weighted_sum([sparse, tf.ones([2, 1])], [.5, .5])
  assert found.numpy().tolist() == [[.5], [2.5]]


@pytest.mark.parametrize('dtype', (tf.float16, tf.float64, tf.int32))
def test_keeps_the_dtype(dtype):
  values = [tf.constant([2, 4], dtype), tf.constant([4, 8], dtype)]
  found = batch_parts.weighted_sum(values, [tf.constant(.5)] * 2)
  assert found.dtype == dtype
  assert found.numpy().tolist() == [3, 6]


@pytest.mark.parametrize('rows, expected', (
    ([3, 1], [.75, .25]), ([2, 0], [1., 0.]), ([0, 1], [0., 1.]),
    ([0, 0], [1., 0.]), ([5], [1.])))
def test_row_shares(rows, expected):
  shares = batch_parts.row_shares(rows)
  assert shares == expected
  assert all(isinstance(share, float) for share in shares)
  tensors = batch_parts.row_shares([tf.constant(count) for count in rows])
  assert {tensor.dtype for tensor in tensors} == {tf.float64}
  np.testing.assert_allclose(tensors, expected)


@pytest.mark.parametrize('rows, begins, held', (
    ([3, 2], [0, 3], [3, 2]), ([1, 0, 0], [0, 0, 0], [1, 1, 1]),
    ([0, 3], [0, 0], [1, 3]), ([2, 0], [0, 1], [2, 1]), ([0, 0], [0, 0], [0, 0])
))
def test_an_empty_part_has_the_last_row_or_one_of_another_part(
    rows, begins, held):
  first = [sum(rows[:i]) for i in range(len(rows))]
  assert batch_parts.at_least_one_row(first, rows) == (begins, held)
  tensors = batch_parts.at_least_one_row(first, [
      tf.constant(count, tf.int64) for count in rows])
  assert [[int(value) for value in values] for values in tensors] == [
      begins, held]


@pytest.mark.parametrize('count, expected', (
    (0, [1, 0]), (1, [1, 4]), (2, [1, 4])))
def test_a_row_that_is_no_part_of_a_tower_is_left_out_whole(count, expected):
  part = tf.zeros([1, 4])  # Rows along axis 1, each with some entries.
  for given in (count, tf.constant(count, tf.int64)):
    entries = batch_parts.entries_of_rows(part, 1, given)
    assert part[:, :entries].shape == expected


def test_rows_of_one_static_length_are_left_alone():
  with tf.Graph().as_default():
    leaves = [tf.zeros([2, 3]), tf.zeros([1, 3])]
    assert batch_parts.fill_up(leaves) is leaves
    unknown = [tf1.placeholder(tf.float32) for _ in range(2)]
    assert batch_parts.fill_up(unknown) is unknown


def test_rows_are_filled_up_to_the_longest():
  with tf.Graph().as_default(), tf1.Session() as session:
    leaves = [tf1.placeholder_with_default(value, [None, None])
              for value in ([['a', 'b']], [['c']], [['d'], ['e']])]
    filled = batch_parts.fill_up(leaves)
    assert [value.tolist() for value in session.run(filled)] == [
        [[b'a', b'b']], [[b'c', b'']], [[b'd', b''], [b'e', b'']]]


def test_static_rows_are_found_or_refused():
  with tf.Graph().as_default():
    unknown = tf1.placeholder(tf.float32)
    open_rows = tf1.placeholder(tf.float32, [None, 2])
    assert batch_parts.static_rows([unknown, open_rows], '') is None
    assert batch_parts.static_rows(
        [unknown, open_rows, tf.ones([3]), tf.ones([3, 1])], '') == 3
    with pytest.raises(ValueError, match=r'Received: \[2, 3\].*A remedy\.$'):
      batch_parts.static_rows([tf.ones([3]), tf.ones([2])], 'A remedy.')


def test_rows_of_every_kind_are_concatenated():
  rows = [[[1, 2]], [[3, 0], [4, 5]]]
  expected = [[1, 2], [3, 0], [4, 5]]
  for make in tf.constant, tf.sparse.from_dense, tf.RaggedTensor.from_tensor:
    found = batch_parts.concat([make(tf.constant(part)) for part in rows])
    if isinstance(found, tf.SparseTensor):
      found = tf.sparse.to_dense(found)
    elif isinstance(found, tf.RaggedTensor):
      found = found.to_tensor()
    assert found.numpy().tolist() == expected
