# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduction of many small tensors as one."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals

# Packing larger tensors saves nothing: a copy costs as much as a separate op.
_MAX_PACKED_ELEMENTS = 1 << 14


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
