# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums over shards, whatever the shards are.

  tf.distribute replicas:  an all-reduce by the strategy. Towers are replicas;
                           on a TPUStrategy it uses the TPU's own op.
  TPU shards:              CrossReplicaSum, inside a `tpu_shard_context`
                           (TPUEstimator, `tf.compat.v1.tpu.shard`).
  one shard:               the value itself.

The TPU path has been checked as a graph; it was built, not run.
"""

from __future__ import annotations

from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.towers import tower_run

tf1 = tf.compat.v1

Summand = Union[tf.Tensor, tf.IndexedSlices]

_CROSS_REPLICA = (
    '`{}` must be called once per shard. Received: a call in the cross-replica '
    'context of {}. Call it in the replica function that `strategy.run` runs, '
    'or in the model_fn.')


def cross_replica_sum(
    x: Summand, group_assignment: groups_lib.GroupAssignment = None) -> Summand:
  """Sums `x` over the shards of its group.

  Every shard has to call it, in one order. The gradient flows: that of a sum
  over shards is the sum of the shards' gradients. An `IndexedSlices` stays one:
  the rows of all shards, repeated ids included.

  With groups under tf.distribute each group is summed in a slice of its own of
  one all-reduce, so the traffic grows with the number of groups.

  Args:
    x: Tensor of any shape, or `IndexedSlices`; same dtype and shape on each
      shard (for `IndexedSlices`, the number of rows may differ, except on TPU).
    group_assignment: List of lists of shard indices that sum together, see
      `tfplugin.distribute.shards.group_assignment`. None sums over all shards.

  Returns:
    What `x` is, with its dtype and shape: the sum over the group that this
    shard is in. With one shard, `x`.

  Raises:
    ValueError: `group_assignment` is no partition of the shards in equal
      groups.
    RuntimeError: Called in the cross-replica context of a strategy.

  Example:
    >>> strategy = tf.distribute.MirroredStrategy(
    ...     ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())
    >>> def shard():
    ...   index = tf.distribute.get_replica_context().replica_id_in_sync_group
    ...   return cross_replica_sum(tf.cast(index, tf.float32) + 1.0)
    >>> [float(y) for y in
    ...  strategy.experimental_local_results(strategy.run(shard))]
    [3.0, 3.0]

  Differences from tf.contrib:
    `tf.contrib.tpu.cross_replica_sum` exists on TPU only, and densifies an
    `IndexedSlices`.

  References:
    `tf.compat.v1.tpu.cross_replica_sum`.
  """
  count = num_shards('cross_replica_sum')
  size = groups_lib.group_size(group_assignment, count)
  if count == 1 or size == 1:
    return x
  if size == count:
    group_assignment = None
  if not isinstance(x, tf.IndexedSlices):
    x = tf.convert_to_tensor(x)
  if not in_replicas():
    return _sum_over_tpu_shards(x, group_assignment, count)
  if group_assignment is None:
    return all_reduce.all_reduce_sum(x)
  return _sum_over_group(x, group_assignment)


def num_shards(caller: str = 'num_shards') -> int:
  """How many shards the code that is being built runs on, at least 1.

  Args:
    caller: The function that the user called, for the message.

  Raises:
    RuntimeError: Called in the cross-replica context of a strategy.
  """
  tower = tower_run.current_tower()
  if tower is not None:
    return tower.num_towers
  if tf.distribute.has_strategy():
    strategy = tf.distribute.get_strategy()
    if tf.distribute.in_cross_replica_context():
      raise RuntimeError(
          _CROSS_REPLICA.format(caller, type(strategy).__name__))
    return strategy.num_replicas_in_sync
  return _tf_internals.number_of_tpu_shards() or 1


def in_replicas() -> bool:
  """Whether the shards are replicas of a strategy, and more than one."""
  return tf.distribute.has_strategy() and num_shards() > 1


def _sum_over_group(x: Summand, group_assignment: list[list[int]]) -> Summand:
  """One all-reduce over all replicas in which each group has its own slice."""
  context = tf.distribute.get_replica_context()
  num_groups = len(group_assignment)
  group = tf.gather(groups_lib.group_of_shard(group_assignment),
                    context.replica_id_in_sync_group)
  total = context.all_reduce(
      tf.distribute.ReduceOp.SUM, put_in_group(x, group, num_groups))
  return take_from_group(total, x, group, num_groups)


def put_in_group(x: Summand, group, num_groups: int) -> Summand:
  """Places `x` in the slice of its group, so that other groups are not added.

  Args:
    x: A shard's tensor of shape `[...]`, or `IndexedSlices`.
    group: The index of the shard's group; int or int32 scalar.
    num_groups: How many groups there are.

  Returns:
    Tensor of shape `[num_groups, ...]`, zero but for the group's slice, or
    `IndexedSlices` in which row i of group g is row i * num_groups + g.
  """
  if isinstance(x, tf.IndexedSlices):
    wide = tf.cast(num_groups, x.indices.dtype)
    return tf.IndexedSlices(
        x.values, x.indices * wide + tf.cast(group, x.indices.dtype),
        _scale_rows(x, num_groups))
  # Not a product with a one-hot vector: 0 * nan would reach other groups.
  return tf.scatter_nd([[group]], x[tf.newaxis],
                       tf.concat([[num_groups], tf.shape(x)], axis=0))


def take_from_group(total: Summand, x: Summand, group,
                    num_groups: int) -> Summand:
  """Returns the group's part of the sum of what `put_in_group` returned.

  Args:
    total: The sum over all shards.
    x: What the shard passed to `put_in_group`.
    group: The index of the shard's group; int or int32 scalar.
    num_groups: How many groups there are.
  """
  if not isinstance(x, tf.IndexedSlices):
    part = tf.gather(total, group)
    part.set_shape(x.shape)
    return part
  wide = tf.cast(num_groups, x.indices.dtype)
  is_own = tf.equal(total.indices % wide, tf.cast(group, x.indices.dtype))
  return tf.IndexedSlices(
      tf.boolean_mask(total.values, is_own),
      tf.boolean_mask(total.indices // wide, is_own), x.dense_shape)


def _scale_rows(x: tf.IndexedSlices, factor: int):
  """The dense shape of `x` with `factor` times the rows; None stays None."""
  if x.dense_shape is None:
    return None
  rows = x.dense_shape[:1] * tf.cast(factor, x.dense_shape.dtype)
  return tf.concat([rows, x.dense_shape[1:]], axis=0)


def _sum_over_tpu_shards(
    x: Summand, group_assignment: groups_lib.GroupAssignment,
    count: int) -> Summand:
  """The TPU's ops: CrossReplicaSum, or an exchange of rows (AllToAll)."""
  groups = group_assignment or [list(range(count))]
  if not isinstance(x, tf.IndexedSlices):
    return tf1.tpu.cross_replica_sum(x, groups)
  size = len(groups[0])

  def all_gather(rows):
    # Every shard sends the same rows to every other one.
    copies = tf.tile(rows, [size] + [1] * (rows.shape.rank - 1))
    return tf.raw_ops.AllToAll(
        input=copies, group_assignment=groups, concat_dimension=0,
        split_dimension=0, split_count=size)

  return tf.IndexedSlices(all_gather(x.values),
                          all_gather(tf.cast(x.indices, tf.int32)),
                          x.dense_shape)
