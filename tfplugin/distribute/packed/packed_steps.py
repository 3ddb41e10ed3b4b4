# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixin whose steps send small tensors to and from servers in one message."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.packed import packing
from tfplugin.distribute.packed import reads
from tfplugin.distribute.updates import met_updates


class PackedSteps(met_updates.MetUpdates):
  """Mixin before the extended class of a v1 parameter-server strategy.

  The small variables that a step reads, and the small gradients that it sends,
  are packed; see `tfplugin.distribute.packed.packing`. No value changes.
  """

  @property
  def own_device(self) -> str:
    """The device of the variables and ops that a worker has once."""
    devices = self._compute_devices
    return devices[0] if len(devices) == 1 else self._worker_device

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    pairs = list(value_destination_pairs)
    if tf.executing_eagerly() or not all(
        isinstance(variable, tf.Variable) for _, variable in pairs):
      return super()._batch_reduce_to(reduce_op, pairs, options)
    # Sums on the worker. TensorFlow would send each gradient to be reduced.
    reduced = super()._batch_reduce_to(reduce_op, [
        (value, self.own_device if packing.is_remote(
            self.own_device, variable.device) else variable)
        for value, variable in pairs], options)
    sent = packing.send_gradients(
        [(self._only_value(value), variable)
         for value, (_, variable) in zip(reduced, pairs)], self.own_device)
    return [gradient for gradient, _ in sent]

  def _only_value(self, value):
    """Returns the value of one device; that of several is left as it is."""
    values = self._container_strategy().experimental_local_results(value)
    return values[0] if len(values) == 1 else value

  def _step_is_built(self, result):
    super()._step_is_built(result)
    # Estimator's step. Another program may differentiate the result of a call.
    if getattr(result, 'train_op', None) is not None:
      strategy = self._container_strategy()
      reads.pack_reads(result, [
          part for leaf in tf.nest.flatten(result.train_op)
          for part in strategy.experimental_local_results(leaf)])
