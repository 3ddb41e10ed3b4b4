# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients through a sum over shards.

A sum over towers, x = sum{towers} x[tower], has for each tower the gradient

  d loss / d x[tower] = sum{towers} weight[tower] * d loss[tower] / d x

A tower gets this gradient divided by the tower's weight, because the gradients
of the variables behind x[tower] are multiplied by that weight later. So no
tower backpropagates through the ops of another one.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_TOTAL_OF_TOWERS = 'TfpluginTotalOfTowers'


@tf.RegisterGradient(_TOTAL_OF_TOWERS)
def _total_of_towers(op: tf.Operation, unused_own, gradient):
  context = tf.distribute.get_replica_context()
  reduce = getattr(context, 'gradient_of_part', None)
  if reduce is None:
    # Not in a tower: backpropagate through all of them.
    return None, gradient
  return reduce(gradient), None


def total_of_towers(own: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
  """Returns `total`, with `own` as the term that this tower added to it."""
  with _tf_internals.identity_gradient(_TOTAL_OF_TOWERS):
    result = tf.raw_ops.IdentityN(input=[own, total])[1]
  same_values.stand_for(result, total)
  return result


class NotedGradients:
  """Record of gradients, e.g. sums over towers, that finds their uses."""

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
      if same_values.is_declared(tensor):
        found = found or self.made(tensor.op.inputs[0])
      elif tensor.op in self._noted:
        return False
      else:
        pending += tensor.op.inputs
    return found


def _values(gradient) -> tf.Tensor:
  return (gradient.values if isinstance(gradient, tf.IndexedSlices)
          else gradient)
