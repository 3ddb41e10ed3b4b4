# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums over shards of every kind.

  tf.distribute replicas:  an all-reduce by the strategy, also of the shards of
                           a decorator; a TPUStrategy uses the TPU's own op.
  TPU shards:              CrossReplicaSum, inside a `tpu_shard_context`
                           (TPUEstimator, `tf.compat.v1.tpu.shard`).
  one shard:               the value itself.

The TPU path has been checked as a graph; it was built, not run.
"""

from __future__ import annotations

import contextlib
from typing import Optional

import tensorflow as tf

from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import shards_here


def cross_replica_sum(
    x: all_reduce.Summand,
    group_assignment: groups_lib.GroupAssignment = None,
    name: Optional[str] = None,
) -> all_reduce.Summand:
  """Sums `x` over the shards of its group.

  Every shard must call this function, in the same order. Gradients flow: the
  gradient of a sum over shards is the sum of the shards' gradients. The sum of
  `IndexedSlices` has the rows of all shards, repeated ids included.

  With groups under tf.distribute, one all-reduce sums each group in a separate
  slice. So the traffic grows with the number of groups.

  Args:
    x: Tensor of any shape, or `IndexedSlices`; same dtype and shape on each
      shard (for `IndexedSlices`, the number of rows may differ, except on TPU).
    group_assignment: List of lists of shard indices that sum together, all of
      one size. None sums over all shards.
    name: A name scope for the ops of the sum.

  Returns:
    The sum over this shard's group, of the kind, dtype and shape of `x`. With
    one shard, `x`.

  Raises:
    ValueError: `group_assignment` is no partition of the shards in equal
      groups.
    RuntimeError: Called in the cross-replica context of a strategy.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> strategy = tf.distribute.MirroredStrategy(
    ...     ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())
    >>> def shard():
    ...   index = tf.distribute.get_replica_context().replica_id_in_sync_group
    ...   return tfplugin.cross_replica_sum(tf.cast(index, tf.float32) + 1.0)
    >>> [float(y) for y in
    ...  strategy.experimental_local_results(strategy.run(shard))]
    [3.0, 3.0]

  Differences from tf.contrib:
    `tf.contrib.tpu.cross_replica_sum` exists on TPU only, and densifies an
    `IndexedSlices`.

  References:
    `tf.compat.v1.tpu.cross_replica_sum`.
  """
  with tf.name_scope(name) if name else contextlib.nullcontext():
    return shards_here.shards_here('cross_replica_sum').sum(
        x, group_assignment)
