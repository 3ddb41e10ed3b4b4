# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conditions whose branches may update variables of any kind and strategy.

Control flow v2 passes the value of a reference variable to a branch, and an
update needs the variable itself. Control flow v1 passes the variable. Both
versions can be used in one graph, so v1 is used for conditions that update
reference variables.

Inside a branch, TensorFlow's replicas cannot synchronize in a `merge_call`. A
single replica does not have to. Shards make such a call once for all of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import AbstractContextManager
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


@contextlib.contextmanager
def updating(variables: Iterable[tf.Variable]) -> Iterator[None]:
  """Makes the branches of a `tf.cond` inside it able to update `variables`."""
  if not (tf1.control_flow_v2_enabled() and any(map(is_reference, variables))):
    yield
    return
  tf1.disable_control_flow_v2()
  try:
    yield
  finally:
    tf1.enable_control_flow_v2()


def cond(should: tf.Tensor, true_fn: Callable[[], tf.Tensor],
         false_fn: Callable[[], tf.Tensor] = lambda: tf.constant(False),
         updated: Iterable[tf.Variable] = ()) -> tf.Tensor:
  """Returns `true_fn()` where `should` is true, else `false_fn()`."""
  with updating(updated):
    return tf.cond(should, true_fn, false_fn)


def done(operations: Iterable) -> tf.Tensor:
  """Returns True, a branch's result, after `operations`; None is ignored."""
  with tf1.control_dependencies([op for op in operations if op is not None]):
    return tf.constant(True)


def with_merges_in_branches(
    strategy: tf.distribute.Strategy, fn: Callable,
    alone: Callable[[int], AbstractContextManager] | None = None,
) -> Callable:
  """Returns `fn`, able to apply an optimizer in a branch or a loop.

  There, a merge call concerns its own replica only. The merge function receives
  the variables in the place of Keras' casts of them. With several replicas in
  sync and no `alone`, `fn` is returned unchanged. `alone(replica_number)` is a
  context around such a merge call.
  """
  if strategy.num_replicas_in_sync == 1:
    alone = contextlib.nullcontext
  if alone is None:
    return fn

  def merging_in_branches(*args, **kwargs):
    outer = tf.distribute.get_replica_context()
    number = int(tf.get_static_value(outer.replica_id_in_sync_group))
    outside = current_branch()
    inner = tf.distribute.ReplicaContext(strategy, number)
    merge_alone = inner.merge_call

    def merge_call(merge_fn, args=(), kwargs=None):
      # Replicas may have different casts of one common variable.
      args, kwargs = tf.nest.map_structure(
          _tf_internals.own_variable, (args, kwargs or {}))
      if current_branch() == outside:
        with outer:
          return outer.merge_call(in_own_scope(merge_fn), args, kwargs)
      with alone(number):
        return _tf_internals.select_replica(
            number, merge_alone(merge_fn, args, kwargs))

    inner.merge_call = merge_call
    with inner:
      return fn(*args, **kwargs)

  return merging_in_branches


def in_own_scope(merge_fn: Callable) -> Callable:
  """Returns `merge_fn` in the current name scope, which TensorFlow repeats."""
  scope = _tf_internals.Place().scope

  @functools.wraps(merge_fn)
  def scoped(*args, **kwargs):
    with tf.name_scope(scope):
      return merge_fn(*args, **kwargs)

  return scoped


def current_branch() -> tuple:
  """Returns the current graph, and its current branch or loop."""
  return tf1.get_default_graph(), _tf_internals.branch_or_loop()


def is_reference(variable: tf.Variable) -> bool:
  """Returns whether `variable` is a reference variable, not a resource."""
  return variable.dtype != variable.dtype.base_dtype


def read_rows(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Returns the current rows of a variable, after the control dependencies.

  `tf.gather` of a reference variable reads the same tensor as the model. With a
  `caching_device` on the worker, that is a copy from before an update of the
  same step. `variable` has rank 1 or more, `ids` are integers `[num_ids]`, and
  the rows are `[num_ids, ...]`.
  """
  return tf.gather(variable.read_value() if is_reference(variable)
                   else variable, ids)


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
      return fn(strategy, *args, **kwargs)
    if not same_values.are_same([(call.args, call.kwargs) for call in calls]):
      raise RuntimeError(_DIFFERENT.format(
          f'{first.label} in a branch, with values that may differ'))
    self._entered.append((first.label, [call.place for call in calls]))
    args, kwargs = _spread(len(calls), (first.args, first.kwargs))
    with first.place.entered():
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
