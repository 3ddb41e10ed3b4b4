# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce, its gradient below variables, and packs of small tensors."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def _mirrored():
  return tf1.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'], tf.distribute.ReductionToOneDevice())


@pytest.mark.usefixtures('behavior')
def test_gradient_is_the_sum_of_the_replicas_gradients():
  # Replica i has loss s**2 with s = w * x[0] + w * x[1], w = 2, x = (1, 3):
  # s = 8, d loss / d s = 16 in each replica, 32 summed; times x[i].
  with tf.Graph().as_default():
    strategy = _mirrored()

    def replica():
      context = tf.distribute.get_replica_context()
      x = 1.0 + 2.0 * tf.cast(context.replica_id_in_sync_group, tf.float32)
      w = tf1.get_variable('w', initializer=2.0, use_resource=True)
      total = all_reduce.all_reduce_sum(w * x)
      return total, tf.gradients(tf.square(total), w)[0]

    with strategy.scope():
      results = strategy.extended.call_for_each_replica(replica)
    totals, gradients = map(strategy.experimental_local_results, results)
    config = tf1.ConfigProto(device_count={'CPU': 2})
    with tf1.Session(config=config) as session:
      session.run(tf1.global_variables_initializer())
      np.testing.assert_array_equal(session.run(totals), [8.0, 8.0])
      np.testing.assert_array_equal(session.run(gradients), [32.0, 96.0])


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('groups, sums', [
    ([[0, 1], [2, 3]], [8.0, 8.0, 24.0, 24.0]),
    ([[3, 0], [2, 1]], [16.0] * 4)])
def test_gradient_in_groups_is_the_sum_of_the_groups_gradients(groups, sums):
  # x = 1, 3, 5, 7 and w = 2: s = 2 sum x, loss s**2, and so the gradient is
  # 2 s of each of two replicas, times x.
  strategy = tf1.distribute.MirroredStrategy(
      [f'/cpu:{i}' for i in range(4)], tf.distribute.ReductionToOneDevice())

  def replica():
    context = tf.distribute.get_replica_context()
    x = 1.0 + 2.0 * tf.cast(context.replica_id_in_sync_group, tf.float32)
    w = tf1.get_variable('w', initializer=2.0, use_resource=True)
    total = all_reduce.all_reduce_sum(w * x, groups)
    return total, tf.gradients(tf.square(total), w)[0]

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    results = strategy.extended.call_for_each_replica(replica)
    totals, gradients = map(strategy.experimental_local_results, results)
    session.run(tf1.global_variables_initializer())
    np.testing.assert_array_equal(session.run(totals), sums)
    np.testing.assert_array_equal(
        session.run(gradients), np.array(sums) * 4.0 * [1, 3, 5, 7])


def test_sums_are_known_to_be_the_same(behavior):
  strategy, sums = _mirrored(), []
  strategy.group_assignment = None

  def replica():
    w = tf1.get_variable('w', initializer=2.0, use_resource=True)
    total = all_reduce.sum_of_group(w * 3.0)
    sums.append(all_reduce.all_reduce_sum(w * 3.0))
    rows = all_reduce.sum_of_group(
        tf.IndexedSlices(tf.stack([w]), tf.constant([1]), tf.constant([2])))
    return total, tf.convert_to_tensor(rows)

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    total, rows = strategy.extended.call_for_each_replica(replica)
    totals = strategy.experimental_local_results(total)
    assert same_values.are_same([x + 1.0 for x in totals])
    assert same_values.are_same([x + 1.0 for x in sums])
    session.run(tf1.global_variables_initializer())
    assert session.run(totals) == (12.0, 12.0)
    np.testing.assert_array_equal(
        session.run(strategy.experimental_local_results(rows)), [[0, 4]] * 2)


def test_tensors_of_a_tf_function_are_summed():
  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'], tf.distribute.ReductionToOneDevice())

  @tf.function
  def run():
    return strategy.run(lambda: all_reduce.all_reduce_sum(tf.constant(3.0)))

  sums = strategy.experimental_local_results(run())
  assert [float(x) for x in sums] == [6.0, 6.0]


@pytest.mark.parametrize('shape, expected', (
    ([5, 2], [15, 2]), ([5], [15]), (None, None)))
def test_rows_of_groups_make_a_table_of_all(shape, expected):
  values = tf.ones([1, *(shape or [5])[1:]])
  slices = tf.IndexedSlices(values, tf.constant([4]),
                            None if shape is None else tf.constant(shape))
  placed = all_reduce.put_in_group(slices, 2, 3)
  assert placed.indices.numpy().tolist() == [4 * 3 + 2]
  assert (placed.dense_shape if expected is None
          else placed.dense_shape.numpy().tolist()) == expected


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
