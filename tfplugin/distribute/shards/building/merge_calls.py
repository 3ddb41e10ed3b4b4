# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Merge calls of shards, also in a branch, and their names in messages."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_DIFFERENT = (
    'The calls of shards inside of `tf.cond` must be the same in all of '
    'them: they cannot wait for each other there. Received: {}. '
    'Accumulate outside of the branch, in a variable with `assign_add`, and '
    'let the branch use the variable and the step; or make the call in every '
    'step, and let branches choose the values that it is given.')
_RETURNED = (
    'A branch in shards must neither return nor use the result of a write: '
    'only the first shard has it. Received: {} in a branch. Return '
    '`tf.group(...)` from all branches, or write outside of them.')


@dataclasses.dataclass(frozen=True)
class Call:
  """A merge call of one replica, made at `place`.

  `label` names the call in messages, and is equal in all replicas that agree.
  """

  label: str
  place: _tf_internals.Place
  args: tuple
  kwargs: dict


class Branches:
  """The branches of the replicas of one run, and the calls made in them.

  Gradient accumulation adds to a variable in every step, and applies the
  variable in a branch of every n-th step. A branch cannot use tensors of
  another replica's branch, so no sums are possible there. They are not needed
  either: the accumulated values are in variables, and so are the same for each
  replica.

  `outside` is the place where the replicas are built.
  """

  def __init__(self):
    """Stores the current place; to be called where the replicas are built."""
    self.outside = _tf_internals.Place()
    self._entered = []

  def is_current(self) -> bool:
    """Returns whether the current ops are in a branch."""
    return _tf_internals.Place().is_branch_of(self.outside)

  def run(self, fn: Callable, strategy: tf.distribute.Strategy,
          calls: Sequence[Call]) -> Any:
    """Returns the result of `fn`, called once for all replicas.

    `calls` has the `merge_call` of each replica. In a branch, the first replica
    makes the call, with its arguments for all of them, and the others get ops
    that do nothing. Raises RuntimeError if, in a branch, the values of the
    replicas may differ.
    """
    first, *others = calls
    if first.place == self.outside:
      args = _tf_internals.regroup(tuple(call.args for call in calls))
      kwargs = _tf_internals.regroup(tuple(call.kwargs for call in calls))
      with tf.name_scope(first.place.scope):  # TensorFlow repeats it.
        return fn(strategy, *args, **kwargs)
    if not same_values.are_same([(call.args, call.kwargs) for call in calls]):
      raise RuntimeError(_DIFFERENT.format(
          f'{first.label} in a branch, with values that may differ'))
    self._entered.append((first.label, [call.place for call in calls]))
    args, kwargs = _spread(len(calls), (first.args, first.kwargs))
    with first.place.entered(), tf.name_scope(first.place.scope):
      results = [_tf_internals.select_replica(0, fn(strategy, *args, **kwargs))]
    for call in others:
      with call.place.entered():
        results.append(tf.nest.map_structure(
            lambda _: tf.no_op(), results[0]))
    if results[0] is not None:
      # Later calls, such as clipping, may get the result of either replica.
      same_values.declare(results)
    return _tf_internals.regroup(tuple(results))

  def explain(self, error: Exception) -> None:
    """Raises a TypeError with the remedy if results of calls led to `error`.

    To be called where a replica is built that is not the first.
    """
    # Of `tf.cond`, or of an op that takes the result.
    if self._entered and any(
        word in str(error) for word in ('true_fn', 'convert Operation')):
      raise TypeError(_RETURNED.format(self._entered[-1][0])) from error

  def check_conditions(self) -> None:
    """Raises RuntimeError if the conditions of replicas' branches may differ.

    To be called after the replicas are built.
    """
    for label, places in self._entered:
      conditions = [place.conditions() for place in places]
      if not same_values.are_same(conditions):
        raise RuntimeError(_DIFFERENT.format(
            f'{label} in a branch, on conditions that may differ'))


def _spread(count: int, value: Any) -> Any:
  """Returns `value` with each tensor as the values of `count` replicas."""

  def per_replica(leaf):
    if not tf.is_tensor(leaf) or isinstance(leaf, tf.Variable):
      return leaf
    return _tf_internals.per_replica([leaf] * count)

  return tf.nest.map_structure(per_replica, value)


def labelled(label: str, fn: Callable) -> Callable:
  """Returns `fn`; messages about its merge call say `label`."""
  fn.tfplugin_label = label
  return fn


def label_of(fn: Callable, args: tuple) -> str:
  """Returns a name of a merge call, equal in all replicas that agree."""
  # `merge_call` wraps the function by AutoGraph.
  fn = inspect.unwrap(fn)
  if hasattr(fn, 'tfplugin_label'):
    return fn.tfplugin_label
  if _tf_internals.is_write(fn):
    return 'a write to a variable'
  owner = getattr(fn, '__self__', None)
  if isinstance(owner, tf1.train.Optimizer) and args:
    names = ', '.join(variable.name for _, variable in args[0])
    return f'{owner.get_name()}.apply_gradients of [{names}]'
  return f'`{getattr(fn, "__qualname__", type(fn).__name__)}`'
