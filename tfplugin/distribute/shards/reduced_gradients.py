# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Application of gradients that were already reduced over the replicas.

A v1 optimizer in a replica context always reduces its gradients. The strategy
used here reduces nothing, and keeps the rest of the optimizer's work: slots,
one update per copy of a variable, the global step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.variables import branch_calls

tf1 = tf.compat.v1


class _ReducedExtended:
  """The part of a strategy's `extended` that an optimizer calls."""

  def __init__(self, extended: tf.distribute.StrategyExtended):
    self.update = extended.update
    self.update_non_slot = extended.update_non_slot
    self.non_slot_devices = extended.non_slot_devices

  def batch_reduce_to(self, reduce_op, value_destination_pairs) -> Sequence:
    """Returns the values unchanged."""
    del reduce_op
    return [value for value, _ in value_destination_pairs]


class _ReducedStrategy:
  """Stand-in for a strategy whose gradients are already reduced."""

  def __init__(self, strategy: tf.distribute.Strategy):
    self.extended = _ReducedExtended(strategy.extended)
    self.group = strategy.group


def apply_reduced_gradients(
    optimizer: tf1.train.Optimizer,
    grads_and_vars: types.GradsAndVars,
    global_step: Optional[tf.Variable] = None,
    name: Optional[str] = None,
):
  """Applies each replica's gradients to that replica's copy of the variables.

  Nothing is reduced. Call it in a replica context, once per replica. If the
  replicas' gradients differ, their copies will differ. `optimizer` is a v1
  optimizer with TensorFlow's own way to apply, not a wrapper.

  Returns the op of `apply_gradients`. Raises ValueError if there is no
  gradient, or if a variable has one copy for all replicas.
  """
  pairs = [(g, v) for g, v in grads_and_vars if g is not None]
  if not pairs:
    raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                     'provided for any variable. Received: '
                     f'{list(grads_and_vars)!r}')

  def apply(strategy, pairs):
    for _, variable in pairs:
      _check_copies(strategy, variable)
    return _tf_internals.distributed_apply(
        optimizer, _ReducedStrategy(strategy), pairs, global_step, name)

  return tf.distribute.get_replica_context().merge_call(
      branch_calls.labelled(f'{optimizer.get_name()}.apply_gradients', apply),
      args=(pairs,))


def _check_copies(strategy: tf.distribute.Strategy, variable) -> None:
  """Raises ValueError if `variable` has one copy for all replicas."""
  if len(strategy.experimental_local_results(variable)) == 1:
    raise ValueError(
        '`group_assignment` with several groups needs a copy of every variable '
        f'per replica. Received: {variable.name}, which '
        f'{type(strategy).__name__} keeps once for all replicas. Use '
        '`tf.distribute.MirroredStrategy`, or one group.')
