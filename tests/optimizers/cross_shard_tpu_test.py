# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""CrossShardOptimizer on TPU shards: the graph, which is built and not run."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1
Reduction = tf1.losses.Reduction
SGD = tf1.train.GradientDescentOptimizer


def _tpu_graph(num_shards, build):
  with tf.Graph().as_default() as graph:
    tf1.tpu.shard(build, num_shards=num_shards)
    return graph


@pytest.mark.parametrize('groups, expected, scale', [
    (None, [[0, 1, 2, 3]], 0.25), ([[0, 2], [1, 3]], [[0, 2], [1, 3]], 0.5),
])
def test_tpu_shards_graph_sums_over_groups_once(
    behavior, groups, expected, scale):
  losses = []

  def build():
    weight = tf1.get_variable('weight', initializer=1.0, use_resource=True)
    optimizer = cross_shard.CrossShardOptimizer(
        SGD(1.0), group_assignment=groups)
    grads_and_vars = optimizer.compute_gradients(weight * 3.0)
    losses.append(grads_and_vars[0][0])
    return optimizer.apply_gradients(grads_and_vars)

  graph = _tpu_graph(4, build)
  [op] = [op for op in graph.get_operations() if op.type == 'CrossReplicaSum']
  np.testing.assert_array_equal(tf.get_static_value(op.inputs[1]), expected)
  [mul] = [op for op in graph.get_operations() if op.type == 'Mul' and
           any(tf.get_static_value(i) == np.float32(scale) for i in op.inputs)
           and 'gradients' not in op.name]
  assert mul is not None


def test_tpu_shards_graph_of_sum_is_not_scaled(behavior):
  def build():
    weight = tf1.get_variable('weight', initializer=1.0, use_resource=True)
    return cross_shard.CrossShardOptimizer(
        SGD(1.0), Reduction.SUM).minimize(weight)

  types = [op.type for op in _tpu_graph(4, build).get_operations()]
  assert types.count('CrossReplicaSum') == 1
  assert 'Mul' not in types


def test_tpu_shards_sparse_gradient_is_gathered(behavior):
  def build():
    table = tf1.get_variable('table', [9, 2], use_resource=True)
    loss = tf.reduce_sum(tf.gather(table, [1, 1, 4]))
    return cross_shard.CrossShardOptimizer(SGD(1.0)).minimize(loss)

  ops = {}
  for op in _tpu_graph(2, build).get_operations():
    ops.setdefault(op.type, []).append(op)
  assert 'CrossReplicaSum' not in ops
  assert 'UnsortedSegmentSum' not in ops
  [scatter] = ops.get('ResourceScatterAdd', []) + ops.get(
      'ResourceScatterSub', [])
  assert scatter.inputs[1].shape == [6]
