# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that are sums over replicas already, applied to each copy."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class PerCopy:
  """Optimizer that applies each replica's gradients to that replica's copies.

  It takes what `is_applied_per_copy` accepts.
  """

  def __init__(self, optimizer: tf1.train.Optimizer):
    """Wraps `optimizer`, which would sum the gradients over the replicas."""
    self.apply_gradients = (
        functools.partial(
            optimizer.apply_gradients, skip_gradients_aggregation=True)
        if isinstance(optimizer, wrapper.OptimizerWrapper) else
        functools.partial(apply_reduced_gradients, optimizer))


def is_applied_per_copy(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether TensorFlow or tfplugin applies it, and sums gradients."""
  return isinstance(optimizer, wrapper.OptimizerWrapper) or (
      type(optimizer).apply_gradients is tf1.train.Optimizer.apply_gradients)


def apply_reduced_gradients(
    optimizer: tf1.train.Optimizer,
    grads_and_vars: types.GradsAndVars,
    global_step: tf.Variable | None = None,
    name: str | None = None,
):
  """Applies each replica's gradients to that replica's copy of the variables.

  A v1 optimizer in a replica context always reduces its gradients. Here a
  stand-in for the strategy reduces nothing, and keeps the rest of the
  optimizer's work: slots, one update per copy of a variable, the global step.
  `optimizer` is applied in TensorFlow's own way, and no wrapper.
  """
  pairs = [(g, v) for g, v in grads_and_vars if g is not None]
  if not pairs:
    raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                     'provided for any variable. Received: '
                     f'{list(grads_and_vars)!r}')

  def apply_to_copies(strategy, pairs):
    for _, variable in pairs:
      _check_copies(strategy, variable)
    extended = strategy.extended
    reduced = SimpleNamespace(group=strategy.group, extended=SimpleNamespace(
        batch_reduce_to=lambda reduce_op, pairs: [value for value, _ in pairs],
        update=extended.update, update_non_slot=extended.update_non_slot,
        non_slot_devices=extended.non_slot_devices))
    return _tf_internals.distributed_apply(
        optimizer, reduced, pairs, global_step, name)

  return tf.distribute.get_replica_context().merge_call(
      branching.labelled(
          f'{optimizer.get_name()}.apply_gradients', apply_to_copies),
      args=(pairs,))


def _check_copies(strategy: tf.distribute.Strategy, variable) -> None:
  """Raises ValueError if `variable` has one copy for all replicas."""
  if len(strategy.experimental_local_results(variable)) == 1:
    raise ValueError(
        '`group_assignment` with several groups, and a wrapper of the program, '
        'need a copy of every variable per replica. Received: '
        f'{variable.name}, which {type(strategy).__name__} keeps once for all '
        'replicas. Use `tf.distribute.MirroredStrategy`, or one group.')
