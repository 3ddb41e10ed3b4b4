# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients over shards for the wrappers that a program writes.

Such a wrapper, LARS for example, changes gradients and applies an optimizer
inside. As on TPU, it gets the gradients of all shards.
"""

from __future__ import annotations

import contextlib
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def takes_sums(optimizer: tf1.train.Optimizer | None) -> bool:
  """Returns whether `optimizer` is a program's wrapper, or has one inside."""
  while optimizer is not None:
    if _tf_internals.delegates(optimizer) and not (
        optimizer_interception.is_interceptable(optimizer) or
        _tf_internals.implements_updates(optimizer)):
      return True
    optimizer = _tf_internals.wrapped_optimizer(optimizer)
  return False


def sums_of(
    grads_and_vars: types.GradsAndVars,
    summing: contextlib.AbstractContextManager) -> list:
  """Returns (sum over all replicas, variable) tuples; None stays None.

  The strategy sums as for an optimizer, inside `summing`.
  """
  grads_and_vars = list(grads_and_vars)
  pairs = [(g, v) for g, v in grads_and_vars if g is not None]

  def reduce(strategy, pairs):
    with summing:
      sums = strategy.extended.batch_reduce_to(
          tf.distribute.ReduceOp.SUM, pairs)
    for each in sums if _is_one_group() else ():
      same_values.declare(strategy.experimental_local_results(each))
    return sums

  found = iter(tf.distribute.get_replica_context().merge_call(
      merge_calls.labelled('the sums of gradients over shards', reduce),
      args=(pairs,)))
  return [(g if g is None else next(found), v) for g, v in grads_and_vars]


def _is_one_group() -> bool:
  """Returns whether all replicas of the strategy reduce together."""
  groups = getattr(tf.distribute.get_strategy(), 'group_assignment', None)
  return groups is None or len(groups) == 1


def refuse_eager(optimizer: tf1.train.Optimizer, user: str) -> None:
  """Raises NotImplementedError: `optimizer` would get one shard's gradients."""
  raise NotImplementedError(
      f'A wrapper of the program, {user}, must be applied in a graph or a '
      'tf.function, where it gets the sums of the gradients over shards. '
      f'Received: eager execution of {type(optimizer).__name__}. Decorate the '
      'step with `tf.function`.')


class Summing(optimizer_interception.Interception):
  """Interception by a strategy that gives wrappers of the program the sums.

  In eager execution it refuses them, where there are several shards.
  """

  def __init__(self):
    """Prepares one use."""
    super().__init__(
        OfSums, tf1.tpu.CrossShardOptimizer, only=takes_sums, is_whole=True)

  def apply(self, optimizer: tf1.train.Optimizer, apply_gradients: Callable,
            *args: Any, **kwargs: Any):
    """See base class."""
    if not tf.executing_eagerly():
      return super().apply(optimizer, apply_gradients, *args, **kwargs)
    if takes_sums(optimizer) and not optimizer_interception.holds(
        optimizer, tf1.tpu.CrossShardOptimizer):
      refuse_eager(optimizer, 'under `CrossShardStrategy`')
    return apply_gradients(*args, **kwargs)

  def is_current(self) -> bool:
    """See base class; holds in eager execution of several shards, too."""
    if not tf.executing_eagerly():
      return super().is_current()
    return not tf.distribute.in_cross_replica_context() and getattr(
        tf.distribute.get_strategy(), 'num_shards', 1) > 1


class OfSums:
  """Wrapper that gives an optimizer the sums, which are not summed again."""

  def __init__(self, optimizer: tf1.train.Optimizer,
               summing: contextlib.AbstractContextManager | None = None):
    """Wraps `optimizer`; the strategy sums inside `summing`."""
    self._optimizer = optimizer
    self._summing = summing or contextlib.nullcontext()

  def apply_gradients(self, grads_and_vars: types.GradsAndVars, *args: Any,
                      **kwargs: Any):
    """Applies the sums of the gradients; called in each replica."""
    sums = sums_of(grads_and_vars, self._summing)
    with tf.distribute.get_strategy().extended.applying_sums:
      return self._optimizer.apply_gradients(sums, *args, **kwargs)
