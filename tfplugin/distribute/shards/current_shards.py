# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards that the current code runs on, of every kind, and sums over them.

Each kind of shards has a size, a sum over a group, and the factor of a shard's
loss. The sums:

  tf.distribute replicas:  an all-reduce by the strategy, also of the shards of
                           a decorator; a TPUStrategy uses the TPU's own op.
  TPU shards:              CrossReplicaSum, inside a `tpu_shard_context`
                           (TPUEstimator, `tf.compat.v1.tpu.shard`).
  one shard:               the value itself.

The TPU path has been checked as a graph; it was built, not run.
"""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import horovod_processes
from tfplugin.ops import shard_reduction

tf1 = tf.compat.v1

_TWO_KINDS = (
    '`{}` must be called where there is one kind of shards. Received: {} {}, '
    'and {} processes of Horovod, which would not be summed over. Leave out '
    '`hvd.init()`, or what makes the {}.')
_CROSS_REPLICA = (
    '`{}` must be called once per shard. Received: a call in the cross-replica '
    'context of {}. Call it in the replica function that `strategy.run` runs, '
    'or in the model_fn.')


def _check_number(x: Any) -> all_reduce.Summand:
  """Returns `x` as a tensor or rows; raises TypeError if it has no sum."""
  if isinstance(x, (dict, tf.SparseTensor, tf.RaggedTensor)):
    raise TypeError(
        'A value to sum over shards must be one tensor or IndexedSlices. '
        f'Received: {x!r}. Sum each part by itself, with '
        '`tf.nest.map_structure`.')
  if not isinstance(x, tf.IndexedSlices):
    x = tf.convert_to_tensor(x)
  if not (x.dtype.is_floating or x.dtype.is_integer or x.dtype.is_complex):
    raise TypeError(
        f'A value to sum over shards must be numeric. Received: {x!r}. Cast it '
        'first, with `tf.cast(x, tf.int32)`.')
  return x


class Shards:
  """The shards of one computation; `size` is their number.

  This class itself is for one shard: no distribution, or a single replica.
  """

  def __init__(self, size: int):
    """Stores the number of shards."""
    self.size = size

  def sum(self, x: all_reduce.Summand,
          groups: shard_reduction.GroupAssignment = None) -> all_reduce.Summand:
    """Returns the sum of `x` over this shard's group, in every shard."""
    size = shard_reduction.group_size(groups, self.size)
    number = _check_number(x)
    if size == 1:
      return x
    return self._sum(number, None if size == self.size else groups)

  def loss_factor(self, reduction: str,
                  groups: shard_reduction.GroupAssignment) -> float:
    """Returns the factor of a shard's loss; gradients then sum to `reduction`.

    The last loss that was built decides whether TensorFlow divides it, too.
    """
    return shard_reduction.factor(
        reduction, shard_reduction.group_size(groups, self.size),
        self._loss_divisor())

  def sums(self, grads_and_vars: types.GradsAndVars,
           groups: shard_reduction.GroupAssignment) -> list:
    """Returns (group's sum, variable) tuples; a gradient of None stays None."""
    return [(g if g is None else self.sum(g, groups), v)
            for g, v in grads_and_vars]

  def applying_sums(self) -> contextlib.AbstractContextManager:
    """Returns a context in which an optimizer applies `sums`."""
    return contextlib.nullcontext()

  def _sum(self, x, groups):
    raise NotImplementedError

  def _loss_divisor(self) -> int:
    """Returns the number that TensorFlow divides a loss by."""
    return 1


class TpuShards(Shards):
  """The shards of a `tpu_shard_context`."""

  def _sum(self, x, groups):
    """Sums by CrossReplicaSum, or by an exchange of rows (AllToAll)."""
    groups = groups or [list(range(self.size))]
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


class Processes(Shards):
  """The processes of a `horovodrun`, each with its own variables."""

  def _sum(self, x, groups):
    return horovod_processes.sum_over(x, groups)


class Replicas(Shards):
  """The replicas of a strategy."""

  def _sum(self, x, groups):
    return all_reduce.all_reduce_sum(x, groups)

  def _loss_divisor(self) -> int:
    return (tf.distribute.get_strategy().num_replicas_in_sync
            if _tf_internals.strategy_divides_loss() else 1)


class SharingReplicas(Replicas):
  """Shards in one graph, with shared variables.

  Each shard has separate gradients. They are applied once, as the sum over the
  group of shard 0.
  """

  def sums(self, grads_and_vars, groups):
    """See base class."""
    group = next(group for group in groups or [range(self.size)]
                 if 0 in group)
    sum_over = tf.distribute.get_strategy().extended.sum_over
    return [(g if g is None else sum_over(group, g), v)
            for g, v in grads_and_vars]

  def applying_sums(self):
    """See base class."""
    return tf.distribute.get_strategy().extended.applying_sums


def cross_replica_sum(
    x: all_reduce.Summand,
    group_assignment: shard_reduction.GroupAssignment = None,
    name: str | None = None,
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
    return current_shards('cross_replica_sum').sum(
        x, group_assignment)


def current_shards(caller: str) -> Shards:
  """Returns the shards that the current code, called by `caller`, runs on."""
  shards, kind = _in_this_process(caller)
  num_processes = horovod_processes.number()
  extended = tf.distribute.get_strategy().extended
  # The replicas of such a strategy are those of all processes.
  if num_processes == 1 or isinstance(
      extended, horovod_processes.HorovodReduction):
    return shards
  if shards.size > 1:
    raise RuntimeError(_TWO_KINDS.format(
        caller, shards.size, kind, num_processes, kind))
  return Processes(num_processes)


def _in_this_process(caller: str) -> tuple[Shards, str]:
  """Returns the shards of this process or its strategy, and a name for them."""
  if _tf_internals.is_in_shard():
    size = tf.distribute.get_strategy().num_shards
    return (SharingReplicas(size) if size > 1 else Shards(1)), 'shards'
  if tf.distribute.has_strategy():
    strategy = tf.distribute.get_strategy()
    name = type(strategy).__name__
    if tf.distribute.in_cross_replica_context():
      raise RuntimeError(_CROSS_REPLICA.format(caller, name))
    size = strategy.num_replicas_in_sync
    return (Replicas(size) if size > 1 else Shards(1)), f'replicas of {name}'
  size = _tf_internals.number_of_tpu_shards()
  return (Shards(1) if size is None else TpuShards(size)), 'TPU shards'
