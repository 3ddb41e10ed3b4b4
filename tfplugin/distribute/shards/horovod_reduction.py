# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reductions of a strategy over the processes of Horovod."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import horovod_processes

_MEAN = tf.distribute.ReduceOp.MEAN


class HorovodReduction:
  """Mixin before the extended class of several hosts."""

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    del options  # They are for TensorFlow's collectives.
    return [self._over_all(reduce_op, value)
            for value, _ in value_destination_pairs]

  def _reduce_to(self, reduce_op, value, destinations, options):
    if _tf_internals.is_mirrored(value) or len(
        self._local_results(value)) != len(self.worker_devices):
      return super()._reduce_to(reduce_op, value, destinations, options)
    return self._over_all(reduce_op, value)

  def _over_all(self, reduce_op, value):
    """Reduces over this process's devices, and then over all processes."""
    with tf.device(self.worker_devices[0]):
      total = horovod_processes.sum_over(
          _added_up(self._local_results(value)))
      if reduce_op == _MEAN:
        total = _divided(total, self._num_replicas_in_sync)
    copies = []
    for device in self.worker_devices:
      with tf.device(device):
        copies.append(tf.nest.map_structure(
            tf.identity, total, expand_composites=True))
    return _tf_internals.regroup(tuple(copies))


def _added_up(parts: tuple) -> all_reduce.Summand:
  """Returns the sum of tensors, or all rows of `IndexedSlices`."""
  if len(parts) == 1:
    return parts[0]
  if not isinstance(parts[0], tf.IndexedSlices):
    return tf.add_n(list(parts))
  return tf.IndexedSlices(
      tf.concat([part.values for part in parts], axis=0),
      tf.concat([part.indices for part in parts], axis=0),
      parts[0].dense_shape)


def _divided(total: all_reduce.Summand, number: int) -> all_reduce.Summand:
  if isinstance(total, tf.IndexedSlices):
    return tf.IndexedSlices(_divided(total.values, number), total.indices,
                            total.dense_shape)
  return total / tf.cast(number, total.dtype)
