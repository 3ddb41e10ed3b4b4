# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""An update that all replicas make inside a branch of a `tf.cond`.

Gradients are accumulated over steps like this: a variable is added to in every
step, and a branch applies it in every n-th. A branch cannot use what is in the
branch of another replica, so nothing can be summed there. Nor need it be: what
all replicas have accumulated is in variables, and so is the same for each.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_DIFFERENT = (
    'What towers or replicas do inside of `tf.cond` must be the same in all of '
    'them: they cannot wait for each other there. Received: {}. Accumulate '
    'outside of the branch, in a variable with `assign_add`, and let the '
    'branch use the variable and the step; or make the call in every step, and '
    'let branches choose the values that it is given.')


@dataclasses.dataclass(frozen=True)
class Call:
  """A merge call of one replica.

  Attributes:
    label: Names the call in messages; equal in all replicas that agree.
    place: Where the call is made.
    args: The arguments of the replica.
    kwargs: Likewise.
  """

  label: str
  place: _tf_internals.Place
  args: tuple
  kwargs: dict


class Branches:
  """The branches of the replicas of one run, and the calls made in them.

  Attributes:
    outside: Where the replicas are built.
  """

  def __init__(self):
    """Is made where the replicas are built."""
    self.outside = _tf_internals.Place()
    self._entered = []

  def is_here(self) -> bool:
    """Whether ops are being made in a branch."""
    return _tf_internals.Place().is_branch_of(self.outside)

  def run(self, fn: Callable, strategy: tf.distribute.Strategy,
          calls: Sequence[Call],
          spread: Optional[Callable[[Any], Any]] = None) -> Any:
    """Returns the result of `fn`, called once for all replicas.

    In a branch the call of the first replica stands for all; the others get ops
    that do nothing.

    Args:
      fn: The function that each replica passed to `merge_call`.
      strategy: The strategy of the replicas.
      calls: The call of each replica.
      spread: In a branch, makes the arguments of all replicas from those of
        one. None: `fn` takes one value that all have.

    Raises:
      RuntimeError: In a branch the values of the replicas differ, or may do so.
    """
    first, *others = calls
    if first.place == self.outside:
      args = _tf_internals.regroup(tuple(call.args for call in calls))
      kwargs = _tf_internals.regroup(tuple(call.kwargs for call in calls))
      return fn(strategy, *args, **kwargs)
    if not same_values.are_same([(call.args, call.kwargs) for call in calls]):
      raise RuntimeError(_DIFFERENT.format(
          f'{first.label} in a branch, with values that are their own'))
    self._entered.append((first.label, [call.place for call in calls]))
    args, kwargs = first.args, first.kwargs
    if spread is not None:
      args, kwargs = spread((args, kwargs))
    with first.place.entered():
      results = [_tf_internals.select_replica(0, fn(strategy, *args, **kwargs))]
    for call in others:
      with call.place.entered():
        results.append(tf.nest.map_structure(
            lambda _: tf.no_op(), results[0]))
    if results[0] is not None:
      # What comes next, as clipping does, is given the one or the other.
      same_values.declare(results)
    return _tf_internals.regroup(tuple(results))

  def check_conditions(self) -> None:
    """Raises unless all replicas take the same branches; after they are built.

    Raises:
      RuntimeError: Their conditions differ, or may do so.
    """
    for label, places in self._entered:
      conditions = [place.conditions() for place in places]
      if not same_values.are_same(conditions):
        raise RuntimeError(_DIFFERENT.format(
            f'{label} in a branch, on conditions that are their own'))


def label_of(fn: Callable, args: tuple) -> str:
  """Names a merge call; equal in all replicas that agree.

  Args:
    fn: The function that `merge_call` was given.
    args: Its arguments.
  """
  # `merge_call` passes it wrapped by AutoGraph.
  fn = inspect.unwrap(fn)
  owner = getattr(fn, '__self__', None)
  if isinstance(owner, tf1.train.Optimizer) and args:
    names = ', '.join(variable.name for _, variable in args[0])
    return f'{owner.get_name()}.apply_gradients of [{names}]'
  return f'`{getattr(fn, "__qualname__", type(fn).__name__)}`'
