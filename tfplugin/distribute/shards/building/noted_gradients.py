# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Record of the gradients that shards took."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.variables import same_values


class NotedGradients:
  """Finds the values that are computed from noted gradients."""

  def __init__(self):
    self._noted = set()
    self._without = set()

  def add(self, gradient) -> None:
    """Notes `gradient`."""
    self._noted.add(_values(gradient).op)

  def made(self, value) -> bool:
    """Returns whether `value` was computed from a noted gradient."""
    if not isinstance(value, (tf.Tensor, tf.IndexedSlices)):
      return False
    pending = [_values(value).op]
    visited = set()
    while pending:
      op = pending.pop()
      if op in self._noted:
        return True
      if op not in visited and op not in self._without:
        visited.add(op)
        pending.extend(tensor.op for tensor in op.inputs)
    self._without |= visited
    return False

  def are_in_total(self, value) -> bool:
    """Returns whether `value` has noted gradients in sums over shards only."""
    pending, seen, found = [_values(value)], set(), False
    while pending:
      tensor = pending.pop()
      if tensor.ref() in seen:
        continue
      seen.add(tensor.ref())
      if same_values.is_declared(tensor) and tensor.op.inputs:
        found = found or self.made(tensor.op.inputs[0])
      elif tensor.op in self._noted:
        return False
      else:
        pending += tensor.op.inputs
    return found


def _values(gradient) -> tf.Tensor:
  return (gradient.values if isinstance(gradient, tf.IndexedSlices)
          else gradient)
