# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `cross_replica_sum`."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import current_shards

tf1 = tf.compat.v1


def _mirrored(num_replicas):
  return tf.distribute.MirroredStrategy(
      [f'CPU:{i}' for i in range(num_replicas)],
      tf.distribute.ReductionToOneDevice())


def _run(num_replicas, fn, *per_replica):
  """Values of `fn(value)` on each replica; `per_replica` gives the values."""
  strategy = _mirrored(num_replicas)
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      return fn(*[tf.gather(tf.constant(v), index) for v in per_replica])
    results = strategy.run(replica)
    local = tf.nest.map_structure(
        strategy.experimental_local_results, results)
    return session.run(local)


def test_one_shard_returns_x_itself(behavior):
  with tf.Graph().as_default() as graph:
    x = tf.constant([1.0])
    before = len(graph.get_operations())
    assert current_shards.cross_replica_sum(x) is x
    assert len(graph.get_operations()) == before


def test_sum_over_all_replicas(behavior):
  # 1 + 2 + 4 = 7, 10 + 20 + 40 = 70
  values = np.float32([[1, 10], [2, 20], [4, 40]])
  results = _run(3, current_shards.cross_replica_sum, values)
  for result in results:
    np.testing.assert_array_equal(result, [7, 70])


def test_name_is_a_scope_of_the_sum():
  with tf.Graph().as_default() as graph, _mirrored(2).scope():
    tf.distribute.get_strategy().run(lambda: current_shards.cross_replica_sum(
        tf.constant(1.0), None, 'total'))
    names = [op.name for op in graph.get_operations()]
  assert [name for name in names if name.startswith('total/')]


@pytest.mark.parametrize('groups, expected', [
    ([[0, 1], [2, 3]], [3, 3, 12, 12]),
    ([[0, 3], [2, 1]], [9, 6, 6, 9]),
    ([[0, 1, 2, 3]], [15, 15, 15, 15]),
    ([[0], [1], [2], [3]], [1, 2, 4, 8]),
])
@pytest.mark.parametrize('dtype', [np.float32, np.float64, np.int32])
def test_sum_over_groups(behavior, groups, expected, dtype):
  results = _run(4, lambda x: current_shards.cross_replica_sum(x, groups),
                 np.array([1, 2, 4, 8], dtype))
  np.testing.assert_array_equal(results, expected)


@pytest.mark.parametrize('shape', [[0, 3], [2, 0], [0]])
def test_nothing_is_summed_over_groups(behavior, shape):
  results = _run(2, lambda x: current_shards.cross_replica_sum(
      x, [[0], [1]]), np.zeros([2, *shape], np.float32))
  assert [list(result.shape) for result in results] == [shape, shape]
  results = _run(4, lambda x: current_shards.cross_replica_sum(
      x, [[0, 1], [2, 3]]), np.zeros([4, *shape], np.float32))
  assert [list(result.shape) for result in results] == [shape] * 4


def test_rows_of_any_number_are_summed_over_groups(behavior):
  def fn(x):
    x = tf1.placeholder_with_default(x, None)  # Of unknown rank.
    return current_shards.cross_replica_sum(x, [[0, 1], [2, 3]])
  results = _run(4, fn, np.float32([[1], [2], [4], [8]]))
  np.testing.assert_array_equal(results, [[3], [3], [12], [12]])


@pytest.mark.parametrize('groups', [None, [[0], [1]], [[0, 1], [2, 3]]])
@pytest.mark.parametrize('value, message', [
    (lambda x: x > 0, 'must be numeric.*Received: .*Cast it first'),
    (lambda x: tf.as_string(x), 'must be numeric'),
    (lambda x: {'x': x}, "one tensor or IndexedSlices. Received: {'x'.*map_s"),
])
def test_what_has_no_sum_is_refused(behavior, groups, value, message):
  num_replicas = 2 if groups == [[0], [1]] else 4
  with pytest.raises(TypeError, match=message):
    _run(num_replicas, lambda x: current_shards.cross_replica_sum(
        value(x), groups), np.arange(4.0))


def test_nan_stays_in_its_group(behavior):
  results = _run(
      4, lambda x: current_shards.cross_replica_sum(x, [[0, 1], [2, 3]]),
      np.float32([np.nan, 1, 2, 3]))
  np.testing.assert_array_equal(results, [np.nan, np.nan, 5, 5])


@pytest.mark.parametrize('groups, expected', [
    # y = sum over the group; loss[i] = w[i] * y. Then d (sum of losses) / d x
    # is the sum of w over the group of x.
    (None, [15, 15, 15, 15]),
    ([[0, 2], [1, 3]], [5, 10, 5, 10]),
])
def test_gradient_is_summed_over_the_same_shards(behavior, groups, expected):
  def shard(x, weight):
    y = current_shards.cross_replica_sum(x, groups)
    return tf.gradients(weight * y, x)[0]
  results = _run(4, shard, np.float32([3, 5, 7, 11]), np.float32([1, 2, 4, 8]))
  np.testing.assert_array_equal(results, expected)


@pytest.mark.parametrize('groups, expected', [
    (None, [[1, 8, 2, 4]] * 4),
    # Shards 0 and 2: {1: 3} + {3: 4, 0: 1}; 1 and 3: {1: 3, 2: 2} + {1: 2}.
    ([[0, 2], [1, 3]], [[1, 3, 0, 4], [0, 5, 2, 0]] * 2),
])
def test_indexed_slices_stay_sparse(behavior, groups, expected):
  indices = np.int64([[1, 1], [1, 2], [3, 0], [1, 1]])
  values = np.float32([[[1], [2]], [[3], [2]], [[4], [1]], [[1], [1]]])
  # Row sums: shard 0: {1: 3}; 1: {1: 3, 2: 2}; 2: {3: 4, 0: 1}; 3: {1: 2}

  def shard(indices, values):
    total = current_shards.cross_replica_sum(
        tf.IndexedSlices(values, indices, tf.constant([4, 1], tf.int64)),
        groups)
    assert isinstance(total, tf.IndexedSlices)
    return tf.math.unsorted_segment_sum(total.values, total.indices, 4)[:, 0]

  results = _run(4, shard, indices, values)
  np.testing.assert_array_equal(results, expected)


def test_indexed_slices_without_dense_shape(behavior):
  def shard(values):
    total = current_shards.cross_replica_sum(
        tf.IndexedSlices(values, tf.constant([0, 2])), [[0, 1], [2, 3]])
    return tf.math.unsorted_segment_sum(total.values, total.indices, 3)
  results = _run(4, shard, np.float32([[1, 2], [3, 4], [5, 6], [7, 8]]))
  np.testing.assert_array_equal(
      results, [[4, 0, 6], [4, 0, 6], [12, 0, 14], [12, 0, 14]])


def test_works_in_tf_function_and_eager():
  strategy = _mirrored(2)

  def shard():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    return current_shards.cross_replica_sum(
        tf.cast(index, tf.float32) + 1.0, [[1, 0]])

  for run in (strategy.run, tf.function(strategy.run)):
    results = strategy.experimental_local_results(run(shard))
    assert [float(r) for r in results] == [3.0, 3.0]


def test_cross_replica_context_is_refused():
  strategy = _mirrored(2)
  with strategy.scope():
    with pytest.raises(RuntimeError, match='once per shard.*MirroredStrategy'):
      current_shards.cross_replica_sum(tf.constant(1.0))


def test_groups_that_do_not_fit_are_refused():
  with pytest.raises(ValueError, match=r'permutation of range\(1\)'):
    current_shards.cross_replica_sum(tf.constant(1.0), [[0, 1]])


def _tpu_ops(computation, num_shards):
  """Ops of the graph that `tpu.shard` makes of `computation`, by type."""
  with tf.Graph().as_default() as graph:
    tf1.tpu.shard(computation, num_shards=num_shards)
    ops = {}
    for op in graph.get_operations():
      ops.setdefault(op.type, []).append(op)
    return ops


@pytest.mark.parametrize('groups, expected', [
    (None, [[0, 1, 2, 3]]), ([[0, 2], [1, 3]], [[0, 2], [1, 3]]),
])
def test_tpu_shards_graph_has_cross_replica_sum_with_groups(
    behavior, groups, expected):
  ops = _tpu_ops(lambda: current_shards.cross_replica_sum(
      tf.constant([1.0, 2.0]), groups), 4)
  [op] = ops['CrossReplicaSum']
  np.testing.assert_array_equal(
      tf.get_static_value(op.inputs[1]), expected)
  assert op.outputs[0].shape == [2]


def test_tpu_shards_graph_exchanges_rows_of_indexed_slices(behavior):
  def shard():
    total = current_shards.cross_replica_sum(
        tf.IndexedSlices(tf.ones([3, 5]), tf.constant([0, 1, 1], tf.int64),
                         tf.constant([7, 5])), [[0, 2], [1, 3]])
    # Two shards of three rows each.
    assert total.values.shape == [6, 5]
    assert total.indices.shape == [6]
    return total.values

  ops = _tpu_ops(shard, 4)
  assert 'CrossReplicaSum' not in ops
  for op in ops['AllToAll']:
    np.testing.assert_array_equal(
        tf.get_static_value(op.inputs[1]), [[0, 2], [1, 3]])
    assert op.get_attr('split_count') == 2


def test_one_tpu_shard_adds_no_op(behavior):
  ops = _tpu_ops(
      lambda: current_shards.cross_replica_sum(tf.constant(1.0)), 1)
  assert 'CrossReplicaSum' not in ops


class _FakeTPUs(tf.distribute.cluster_resolver.TPUClusterResolver):
  """Four cores that nobody has, of which a graph can be built."""

  task_type = task_id = None

  def __init__(self):  # Nothing of the base class, which looks for cores.
    pass

  def cluster_spec(self):
    return tf.train.ClusterSpec({})

  def get_tpu_system_metadata(self):
    task = '/job:worker/replica:0/task:0'
    return tf.tpu.experimental.TPUSystemMetadata(
        num_cores=4, num_hosts=1, num_of_cores_per_host=4, topology=None,
        devices=[types.SimpleNamespace(name=f'{task}/device:{kind}:{index}',
                                       device_type=kind)
                 for kind, index in (('CPU', 0), *(('TPU', i)
                                                   for i in range(4)))])


@pytest.mark.parametrize('groups, shape', [(None, [2]), ([[0, 2], [1, 3]],
                                                         [2, 2])])
def test_tpu_strategy_uses_the_op_of_the_tpu(behavior, groups, shape):
  with tf.Graph().as_default() as graph:
    strategy = tf1.distribute.experimental.TPUStrategy(_FakeTPUs())
    with strategy.scope():
      strategy.run(lambda: current_shards.cross_replica_sum(
          tf.constant([1.0, 2.0]), groups))
  [op] = [op for op in graph.get_operations() if op.type == 'CrossReplicaSum']
  # Over all four cores; of two groups each has a slice of its own.
  assert op.inputs[0].shape == shape
  np.testing.assert_array_equal(
      tf.get_static_value(op.inputs[1]), [[0, 1, 2, 3]])
