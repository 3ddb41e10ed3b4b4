# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The replica context of a tower: where it waits for the others."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_gradients
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Call:
  """A merge call of one tower."""

  label: str
  args: tuple
  kwargs: dict


class TowerContext(_tf_internals.MirroredReplicaContext):
  """The replica context of one tower of a `TowerRun`."""

  def __init__(self, strategy, tower: int, run: Any):
    """Makes the context of one tower.

    Args:
      strategy: A `TowerStrategy`.
      tower: The index of the tower.
      run: The `TowerRun` that builds it.
    """
    super().__init__(strategy, tower)
    self._tower = tower
    self._run = run

  @property
  def tower(self) -> int:
    """The index of the tower."""
    return self._tower

  @property
  def num_towers(self) -> int:
    """How many towers there are."""
    return self._run.num_towers

  def all_reduce(self, reduce_op, value, options=None):
    """Reduces `value` over the towers; gradients flow to every tower.

    The inherited method refuses, in a graph, values that depend on variables
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
    return tf.nest.pack_sequence_as(value, [
        total if isinstance(total, tf.IndexedSlices) else
        tower_gradients.total_of_towers(part, total)
        for part, total in zip(parts, totals)])

  def gradient_of_part(self, gradient: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of the part that this tower added to a total.

    Args:
      gradient: The gradient of the total in this tower.
    """
    weights = self._run.weights.loss
    total, = self._labelled(
        'the gradient of an all_reduce', self._run.add_up,
        (weighted_sum.weighted_sum([gradient], [weights[self._tower]]),), {})
    return tf.math.divide_no_nan(
        total, tf.cast(weights[self._tower], total.dtype))

  def view_of(self, variable: tf.Variable) -> tf.Variable:
    """Returns `variable` as this tower reads it."""
    return self._run.view(self._tower, variable)

  def reduce_gradient(self, handle: tf.Tensor, gradient):
    """Returns the sum over the towers of each tower's `gradient`."""
    return self._labelled(
        f'the gradient of `{self._run.name_of(handle)}`',
        self._run.sum_gradients, (gradient,), {})

  @property
  def gradients_are_summed(self) -> bool:
    """Whether `tf.gradients` in a tower returns the gradient of the batch."""
    return self._run.gradients_are_summed

  def sum_gradient(self, variable: tf.Variable, gradient,
                   towers: Sequence[int]):
    """Returns the plain sum over `towers`, which is applied as it is."""
    return self._labelled(
        f'the sum of the gradient of `{variable.name}`',
        functools.partial(self._run.sum_unweighted, towers=towers),
        (gradient,), {})

  def can_wait(self) -> bool:
    """Whether this tower can wait here for the others."""
    return self._run.can_wait()

  def in_first_tower(self, fn: Callable, args: tuple = (),
                     kwargs: Optional[dict] = None) -> Any:
    """Returns what `fn` does for all towers, run by the first one alone.

    A branch or loop has no place to wait for the others. They get None.

    Args:
      fn: Called with the strategy, as in `merge_call`.
      args: Arguments that do not differ between towers.
      kwargs: Likewise.
    """
    if self._tower:
      return None
    with self._run.variables.made_by_one():
      return _tf_internals.merge_alone(self, fn, args, kwargs or {})

  def _merge_call(self, fn: Callable, args: tuple, kwargs: dict):
    if not self.can_wait() and _optimizer_of(fn) is not None:
      self._run.check_same(self._tower, _label(fn, args), (args, kwargs))
      done = self.in_first_tower(fn, args, kwargs)
      return tf.no_op() if done is None else done
    return self._labelled(_label(fn, args), fn, args, kwargs)

  def _labelled(self, label: str, fn: Callable, args: tuple, kwargs: dict):
    run = self._run
    run.check_can_wait(label)
    run.pause(self._tower, label)
    call = Call(label, args, kwargs)
    # Only the function of tower 0 is run, with the arguments of all towers.
    result = super()._merge_call(run.merged(fn), (call,), {})
    run.resume(self._tower)
    return result


def current_tower() -> Optional[TowerContext]:
  """Returns the context of the tower that is being built, or None."""
  context = tf.distribute.get_replica_context()
  return context if isinstance(context, TowerContext) else None


def _label(fn: Callable, args: tuple) -> str:
  """Names the call that a tower waits in; equal in all towers that agree."""
  owner = _optimizer_of(fn)
  if owner is not None and args:
    names = ', '.join(variable.name for _, variable in args[0])
    return f'{owner.get_name()}.apply_gradients of [{names}]'
  fn = inspect.unwrap(fn)
  return f'`{getattr(fn, "__qualname__", type(fn).__name__)}`'


def _optimizer_of(fn: Callable) -> Optional[tf1.train.Optimizer]:
  """Returns the optimizer of which `fn` is a method, or None."""
  # `merge_call` passes it wrapped by AutoGraph.
  owner = getattr(inspect.unwrap(fn), '__self__', None)
  return owner if isinstance(owner, tf1.train.Optimizer) else None
