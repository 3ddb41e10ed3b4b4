# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the reduction of many small tensors as one."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import all_reduce

tf1 = tf.compat.v1


def _reduce(op, make_values):
  """Reduces what `make_values(index)` returns on each of two devices."""
  strategy = tf.distribute.MirroredStrategy(
      ['CPU:0', 'CPU:1'], all_reduce.PackedReduction())
  with tf.Graph().as_default() as graph, strategy.scope():
    def replica():
      context = tf.distribute.get_replica_context()
      index = tf.cast(context.replica_id_in_sync_group, tf.float32)
      return context.merge_call(
          lambda s, *values: s.extended.batch_reduce_to(
              op, [(v, v) for v in values]), make_values(index))
    results = [strategy.experimental_local_results(r)
               for r in strategy.run(replica)]
    types = [operation.type for operation in graph.get_operations()]
    with tf1.Session() as session:
      return session.run(results), types


@pytest.mark.parametrize('op, factor', [('SUM', 1.0), ('MEAN', 0.5)])
def test_small_tensors_are_reduced_as_one(behavior, op, factor):
  results, types = _reduce(op, lambda index: [
      tf.fill([2, 3], index + 1), tf.fill([], index + 10),
      tf.fill([4], index + 100)])
  # 1 + 2, 10 + 11, 100 + 101, on both devices
  for (first, second), total, shape in zip(
      results, (3, 21, 201), ([2, 3], [], [4])):
    np.testing.assert_array_equal(first, np.full(shape, total * factor))
    np.testing.assert_array_equal(second, first)
  assert types.count('AddN') == 1


def test_dtypes_and_large_and_sparse_tensors_go_their_own_way(behavior):
  results, _ = _reduce('SUM', lambda index: [
      tf.fill([2], index), tf.fill([2], tf.cast(index, tf.float64)),
      tf.fill([3], index + 1), tf.fill([20000], index),
      tf.IndexedSlices(tf.fill([2, 1], index + 1), tf.constant([3, 3]),
                       tf.constant([5, 1]))])
  float32, float64, second, large, sparse = [r[0] for r in results]
  np.testing.assert_array_equal(float32, [1, 1])
  np.testing.assert_array_equal(float64, [1, 1])
  assert float64.dtype == np.float64
  np.testing.assert_array_equal(second, [3, 3, 3])
  np.testing.assert_array_equal(large, np.ones([20000]))
  # Rows of both devices, not a table.
  np.testing.assert_array_equal(sparse.indices, [3, 3, 3, 3])
  np.testing.assert_array_equal(sparse.values[:, 0], [1, 1, 2, 2])


def test_one_tensor_is_not_copied_into_a_pack(behavior):
  results, types = _reduce('SUM', lambda index: [tf.fill([2], index + 1)])
  np.testing.assert_array_equal(results[0], [[3, 3], [3, 3]])
  assert not {'Reshape', 'Split', 'SplitV'} & set(types)


def test_sums_for_one_device_go_to_it_alone(behavior):
  strategy = tf.distribute.MirroredStrategy(
      ['CPU:0', 'CPU:1'], all_reduce.PackedReduction())
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    def replica():
      values = [tf.fill([2], 1.0), tf.fill([], 2.0)]
      return tf.distribute.get_replica_context().merge_call(
          lambda s, *values: s.extended.batch_reduce_to(
              'SUM', [(v, 'CPU:1') for v in values]), values)
    results = [strategy.experimental_local_results(r)
               for r in strategy.run(replica)]
    assert [len(set(map(id, values))) for values in results] == [1, 1]
    assert all('CPU:1' in values[0].device for values in results)
    first, second = session.run([values[0] for values in results])
    assert (first.tolist(), second) == ([2, 2], 4)
