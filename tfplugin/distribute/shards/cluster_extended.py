# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Engines of CrossShardStrategy for several processes.

They sum gradients in a smaller type, and values of one type each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.shards import cross_shard_extended
from tfplugin.distribute.shards import horovod_processes
from tfplugin.distribute.updates import intercepted_updates
from tfplugin.distribute.variables import mirrored_variables
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# Small gradients are sent together, in several packs: one is sent while the
# next one is being made.
_BYTES_PER_PACK = 2 << 20


class ClusterExtended(cross_shard_extended.GroupReduction,
                      mirrored_variables.MirroredInGraph,
                      intercepted_updates.InterceptedUpdates,
                      untuned_inputs.UntunedInputs,
                      _tf_internals.CollectiveAllReduceExtended):
  """The devices of every worker of a cluster, by TensorFlow's collectives."""

  def __init__(self, strategy: tf.distribute.Strategy,
               devices: Sequence[str]):
    self._devices_of_worker = tuple(devices)
    try:
      super().__init__(
          strategy, cluster_resolver=None, communication_options=(
              tf.distribute.experimental.CommunicationOptions(
                  bytes_per_pack=_BYTES_PER_PACK)))
    except RuntimeError as error:
      if not _tf_internals.is_late(error):
        raise
      raise RuntimeError(
          '`CrossShardStrategy` of several processes must be created before '
          'the program creates a model, a variable or a tensor. Received: one '
          'that is created later. Create it at the start of the program.'
      ) from error

  def _initialize_local_devices(self, cluster_resolver, worker_device):
    del cluster_resolver
    kind = tf.DeviceSpec.from_string(self._devices_of_worker[0]).device_type
    return tuple(worker_device + d for d in self._devices_of_worker), kind

  def _update(self, var, fn, args, kwargs, group):
    """Updates; the global step after the model and the session hooks read it.

    Each process decides by this value what is computed, a summary for example.
    A sum that one process alone computes would wait for ever.
    """
    with tf1.control_dependencies(_reads_of_step(var)):
      return super()._update(var, fn, args, kwargs, group)

  def _sum_over_all(self, value_destination_pairs, options):
    """Sums gradients, the larger ones in `exchange_dtype`."""
    dtype = self._container_strategy().exchange_dtype
    if dtype is None:
      return super()._sum_over_all(value_destination_pairs, options)
    values = [self._local_results(value) for value, _ in
              value_destination_pairs]
    types = [value[0].dtype for value in values]
    are_smaller = [own.is_floating and wire_types.is_smaller(dtype, own)
                   for own in types]
    if not any(are_smaller):
      raise ValueError(
          '`exchange_dtype` must be smaller than the type of a gradient. '
          f'Received: {dtype!r} with gradients of '
          f'{", ".join(sorted({own.name for own in types}))}. Leave it out.')
    totals = super()._sum_over_all([
        (self._per_device(
            lambda x: wire_types.encode_summand(x, dtype), each)
         if is_smaller else value, destination)
        for (value, destination), each, is_smaller
        in zip(value_destination_pairs, values, are_smaller)], options)
    return [self._per_device(
        lambda x, own=own: wire_types.decode_sum(x, dtype, own),
        self._local_results(total)) if is_smaller else total
            for total, own, is_smaller in zip(totals, types, are_smaller)]

  def _are_totals(self, value: Any) -> bool:
    are_totals = super()._are_totals(value)
    dtype = self._container_strategy().exchange_dtype
    if are_totals and dtype is not None:
      tf1.logging.log_first_n(
          tf1.logging.WARN,
          '`exchange_dtype` must be None for gradients that '
          '`tfplugin.cross_replica_sum` sums: it sums in their own type. '
          'Received: %r. Leave one of them out.', 1, dtype)
    return are_totals

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    """Reduces the values of each type by themselves: a pack has one type."""
    by_type = {}
    for index, (value, _) in enumerate(value_destination_pairs):
      dtype = getattr(self._local_results(value)[0], 'dtype', None)
      by_type.setdefault(dtype, []).append(index)
    reduced = {}
    for indices in by_type.values():
      reduced.update(zip(indices, super()._reduce_over_all(
          reduce_op, [value_destination_pairs[i] for i in indices], options)))
    return [reduced[index] for index in range(len(reduced))]


def _reads_of_step(variable: tf.Variable) -> list[tf.Tensor]:
  """Returns the values that were read, if `variable` is the global step."""
  if tf1.executing_eagerly_outside_functions():
    return []
  with tf.init_scope():
    if variable is not tf1.train.get_global_step():
      return []
  return [op.outputs[0] for copy in variable.values
          for op in copy.handle.consumers()
          if _tf_internals.reads_whole_variable(op) and not (
              op.control_inputs or _tf_internals.is_in_branch_or_loop(op))]


class HorovodExtended(horovod_processes.HorovodReduction, ClusterExtended):
  """The same devices; Horovod sums, TensorFlow's collectives do all else."""
