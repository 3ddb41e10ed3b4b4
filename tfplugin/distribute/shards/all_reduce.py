# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""All-reduces of a tf.distribute strategy: with a gradient, by group, packed.

In a graph with collections, `ReplicaContext.all_reduce` refuses a value that
depends on a variable. It takes the other replicas' values, computed from the
same variable, for its own inputs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.variables import same_values
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction

Summand = Union[tf.Tensor, tf.IndexedSlices]

_SUM = tf.distribute.ReduceOp.SUM
_TPU_STRATEGIES = (
    tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy,
    tf.compat.v1.distribute.experimental.TPUStrategy)
_gradient_numbers = itertools.count()
# Packing larger tensors saves nothing: a copy costs as much as a separate op.
_MAX_PACKED_ELEMENTS = 1 << 14


def all_reduce_sum(
    value: Summand,
    group_assignment: shard_reduction.GroupAssignment = None) -> Summand:
  """Returns the sum of `value` over all replicas or a group, in every replica.

  The gradient of a sum over the replicas is the sum of their gradients. `value`
  is a tensor of one shape in all replicas, or `tf.IndexedSlices`. Call it in a
  replica context, in every replica, with a checked group assignment or None.
  """
  context = tf.distribute.get_replica_context()
  return sum_in_group(
      value, group_assignment, context.replica_id_in_sync_group,
      functools.partial(_sum_over_all, context))


def _sum_over_all(context, value: Summand) -> Summand:
  in_plain_graph = not (tf.executing_eagerly() or tf.inside_function())
  if not in_plain_graph or isinstance(value, tf.IndexedSlices):
    total = context.all_reduce(_SUM, value)
    same_values.declare([total])
    return total
  # TensorFlow refuses a value that depends on variables. So in a replica the
  # gradient goes to `value`, and only outside of replicas to the total.
  total = _reduce(context, value)
  name = f'TfpluginAllReduceSum{next(_gradient_numbers)}'
  tf.RegisterGradient(name)(_sum_of_gradients)
  with _tf_internals.identity_gradient(name):
    _, result = tf.raw_ops.IdentityN(input=[value, total])
  same_values.stand_for(result, total)
  return result


def all_reduce(context: tf.distribute.ReplicaContext, reduce_op: Any,
               value: Any, options: Any = None) -> Any:
  """Returns `value` reduced by SUM or MEAN; gradients flow to every shard.

  It replaces the method of a shard's `context`, which refuses values that
  depend on variables. MEAN weights shards by their rows.
  """
  del options
  if isinstance(reduce_op, str):
    reduce_op = tf.distribute.ReduceOp(reduce_op.upper())
  weight = 1.0 if reduce_op == _SUM else (
      context.strategy.extended.shares_of_rows[context.tfplugin_shard])

  def reduce(part: Summand) -> Summand:
    part = batch_parts.weighted_sum([part], [weight])
    is_sparse = isinstance(part, tf.IndexedSlices)
    return (_reduce if is_sparse else _sum_over_all)(context, part)

  return tf.nest.map_structure(reduce, value)


def sum_of_group(value: Summand) -> Summand:
  """Returns the sum over the shards of this replica's group, without gradient.

  Without groups it is declared to be the same in all replicas; see
  `same_values`.
  """
  context = tf.distribute.get_replica_context()
  return sum_in_group(
      value, context.strategy.group_assignment,
      context.replica_id_in_sync_group, functools.partial(_reduce, context))


def _sum_of_gradients(op: tf.Operation, unused_value_gradient, gradient):
  del op, unused_value_gradient
  if tf.distribute.in_cross_replica_context() or (
      not tf.distribute.has_strategy()):
    return None, gradient
  return all_reduce_sum(gradient), None


def _reduce(context, value: Summand) -> Summand:

  def merge(strategy, value):
    copies = list(strategy.experimental_local_results(value))
    number = len(strategy.extended.worker_devices)
    # One tensor, such as a sum, is each replica's. On a TPU one graph is built
    # for all cores.
    if len(copies) < number and not isinstance(strategy, _TPU_STRATEGIES):
      value = _tf_internals.per_replica(copies * number)
    total = strategy.extended.batch_reduce_to(_SUM, [(value, value)])[0]
    same_values.declare(strategy.experimental_local_results(total))
    return total

  return context.merge_call(
      merge_calls.labelled('a sum over shards', merge), args=(value,))


def sum_in_group(x: Summand, groups: shard_reduction.GroupAssignment,
                 shard: int | tf.Tensor,
                 sum_over_all: Callable[[Summand], Summand]) -> Summand:
  """Returns the sum over the group of `shard`, by one sum over all shards."""
  if groups is None:
    return sum_over_all(x)
  group = tf.gather(shard_reduction.group_of_shard(groups), shard)
  total = sum_over_all(put_in_group(x, group, len(groups)))
  return take_from_group(total, x, group, len(groups))


def put_in_group(x: Summand, group, num_groups: int) -> Summand:
  """Returns `x` in the slice of its group, so that other groups are not added.

  `x` is a shard's tensor of shape `[...]`, or `IndexedSlices`. `group`, an int
  or an int32 scalar, is the index of the shard's group. The result has the
  shape `[num_groups, ...]`, and is zero outside the group's slice. For
  `IndexedSlices`, row i of group g is row i * num_groups + g.
  """
  if isinstance(x, tf.IndexedSlices):
    wide = tf.cast(num_groups, x.indices.dtype)
    return tf.IndexedSlices(
        x.values, x.indices * wide + tf.cast(group, x.indices.dtype),
        _scale_rows(x, num_groups))
  # Not a product with a one-hot vector: 0 * nan would reach other groups.
  is_own = tf.equal(tf.range(num_groups), group)
  is_own = tf.reshape(is_own, tf.concat([[-1], tf.ones_like(tf.shape(x))], 0))
  return tf.where(is_own, x[tf.newaxis], tf.zeros_like(x)[tf.newaxis])


def take_from_group(total: Summand, x: Summand, group,
                    num_groups: int) -> Summand:
  """Returns the group's part of `total`, a sum of `put_in_group` of `x`."""
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
  """Returns the dense shape of `x` with `factor` times the rows, or None."""
  if x.dense_shape is None:
    return None
  rows = x.dense_shape[:1] * tf.cast(factor, x.dense_shape.dtype)
  return tf.concat([rows, x.dense_shape[1:]], axis=0)


class PackedReduction(tf.distribute.ReductionToOneDevice):
  """Sum over the devices of one host, with small tensors packed by dtype.

  A model has many small variables, and each sum, copy and dispatch has a cost.
  Sparse gradients stay sparse: their rows are concatenated.

  Supported: `cross_device_ops` of `tf.distribute.MirroredStrategy`.
  """

  def batch_reduce_implementation(self, reduce_op, value_destination_pairs,
                                  options):
    """See base class."""
    packs = _packs(value_destination_pairs)
    reduced = {}
    for indices in packs:
      pack = [value_destination_pairs[i][0] for i in indices]
      reduced.update(zip(indices, self._reduce_pack(reduce_op, pack, options)))
    return [
        reduced[i] if i in reduced else self.reduce_implementation(
            reduce_op, value, destination, options)
        for i, (value, destination) in enumerate(value_destination_pairs)]

  def _reduce_pack(self, reduce_op, pack: Sequence, options) -> list:
    """Reduces the per-replica values `pack` with one sum."""
    shapes = [value.values[0].shape for value in pack]
    flat = []
    for tensors in zip(*(value.values for value in pack)):
      with tf.device(tensors[0].device):
        flat.append(tf.concat([tf.reshape(t, [-1]) for t in tensors], axis=0))
    flat = _tf_internals.regroup(tuple(flat))
    total = self.reduce_implementation(reduce_op, flat, flat, options)
    parts = []
    for part in total.values:
      with tf.device(part.device):
        split = tf.split(part, [shape.num_elements() for shape in shapes])
        parts.append([tf.reshape(s, shape) for s, shape in zip(split, shapes)])
    return [_tf_internals.regroup(values) for values in zip(*parts)]


def _packs(value_destination_pairs: Sequence) -> list[list[int]]:
  """Returns the indices of the pairs that reduce together, by dtype."""
  packs = {}
  for index, (value, destination) in enumerate(value_destination_pairs):
    if _is_packable(value, destination):
      packs.setdefault(value.values[0].dtype, []).append(index)
  return [pack for pack in packs.values() if len(pack) > 1]


def _is_packable(value, destination) -> bool:
  """Returns whether `value` is small and is reduced to its own devices."""
  if not isinstance(value, tf.distribute.DistributedValues) or not isinstance(
      destination, tf.distribute.DistributedValues):
    return False
  return all(
      isinstance(tensor, tf.Tensor) and tensor.shape.is_fully_defined() and
      tensor.shape.num_elements() <= _MAX_PACKED_ELEMENTS
      for tensor in value.values)
