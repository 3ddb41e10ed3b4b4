# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replica context of a tower, which waits for the other towers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_gradients
from tfplugin.distribute.variables import branch_calls
from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


class TowerContext(_tf_internals.MirroredReplicaContext):
  """The replica context of one tower of a `TowerRun`."""

  def __init__(self, strategy, tower: int, run: Any):
    """Makes the context of one tower; the `TowerRun` `run` builds it."""
    super().__init__(strategy, tower)
    self._tower = tower
    self._run = run

  @property
  def tower(self) -> int:
    """The index of the tower."""
    return self._tower

  @property
  def num_towers(self) -> int:
    """The number of towers."""
    return self._run.num_towers

  def all_reduce(self, reduce_op, value, options=None):
    """Reduces `value` over the towers; gradients flow to every tower.

    In a graph the inherited method refuses values that depend on variables
    shared by the towers.
    """
    del options
    if isinstance(reduce_op, str):
      reduce_op = tf.distribute.ReduceOp(reduce_op.upper())
    parts = tf.nest.flatten(value)
    if reduce_op == tf.distribute.ReduceOp.MEAN:
      weight = self._run.weights.rows[self._tower]
      parts = [weighted_sum.weighted_sum([part], [weight]) for part in parts]
    totals = self._labelled(
        f'all_reduce ({reduce_op})', self._run.add_up, tuple(parts), {})
    same_values.declare([total for total in totals if isinstance(
        total, tf.IndexedSlices)][:1])
    return tf.nest.pack_sequence_as(value, [
        total if isinstance(total, tf.IndexedSlices) else
        tower_gradients.total_of_towers(part, total)
        for part, total in zip(parts, totals)])

  def gradient_of_part(self, gradient: tf.Tensor) -> tf.Tensor:
    """Returns the gradient by this tower's term of a total.

    `gradient` is the gradient by the total, in this tower.
    """
    weights = self._run.weights.loss
    total, = self._labelled(
        'the gradient of an all_reduce', self._run.add_up,
        (weighted_sum.weighted_sum([gradient], [weights[self._tower]]),), {})
    return tf.math.divide_no_nan(
        total, tf.cast(weights[self._tower], total.dtype))

  def sum_gradient(self, variable: tf.Variable, gradient,
                   towers: Sequence[int], sums_totals: bool = True):
    """Returns the unweighted sum over `towers`, which is applied as it is.

    `sums_totals` says whether a `gradient` that is a sum over the towers is
    summed again.
    """
    if not sums_totals and self._run.gradients.are_in_total(gradient):
      towers = [towers[0]]
    if self._run.branches.is_here():
      # The update that follows refuses it, unless all towers have the same.
      return self._run.sum_unweighted(self.strategy, gradient, towers)
    return self._labelled(
        f'the sum of the gradient of `{variable.name}`',
        functools.partial(self._run.sum_unweighted, towers=towers),
        (gradient,), {})

  def value_of_all(self, variable: tf.Variable, method: str, value):
    """Returns the batch value of a write of each tower.

    `variable` was made without an `aggregation`; `method` writes `value` to it
    in this tower.
    """
    if self._run.branches.is_here() or self._run.num_towers == 1:
      return value  # The write itself compares.
    return self._labelled(
        f'`{method}` of `{variable.name}`',
        functools.partial(self._run.one_value, variable, method), (value,), {})

  def _merge_call(self, fn: Callable, args: tuple, kwargs: dict):
    label = branch_calls.label_of(fn, args)
    branches, place = self._run.branches, _tf_internals.Place()
    if not branches.is_here():
      return self._labelled(label, fn, args, kwargs)
    with branches.outside.entered():
      return self._labelled(label, fn, args, kwargs, place)

  def _labelled(self, label: str, fn: Callable, args: tuple, kwargs: dict,
                place: Optional[_tf_internals.Place] = None):
    run = self._run
    run.check_can_wait(label)
    run.pause(self._tower, label)
    call = branch_calls.Call(
        label, place or run.branches.outside, args, kwargs)
    # Only the function of tower 0 is run, with the arguments of all towers.
    result = super()._merge_call(run.merged(fn), (call,), {})
    run.resume(self._tower)
    return result


@contextlib.contextmanager
def on_device(functions: Sequence[Any], device: str) -> Iterator[None]:
  """Enters the device of a tower, inside the device functions of its run."""
  known = _tf_internals.device_functions()
  with contextlib.ExitStack() as stack:
    if not all(function in known for function in functions):
      for function in (*functions, device):
        stack.enter_context(tf1.device(function))
    yield


def current_tower() -> Optional[TowerContext]:
  """Returns the context of the tower that is being built, or None."""
  context = tf.distribute.get_replica_context()
  return context if isinstance(context, TowerContext) else None
