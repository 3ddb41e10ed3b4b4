# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conditions whose branches may update variables of any kind and strategy.

Control flow v2 passes the value of a reference variable to a branch, and an
update needs the variable itself. Control flow v1 passes the variable. Both
versions can be used in one graph, so v1 is used for conditions that update
reference variables.

Inside a branch, TensorFlow's replicas cannot synchronize in a `merge_call`. A
single replica does not have to. `shards/building/merge_calls.py` has the calls
of shards.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1


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
          return outer.merge_call(_in_own_scope(merge_fn), args, kwargs)
      with alone(number):
        return _tf_internals.select_replica(
            number, merge_alone(merge_fn, args, kwargs))

    inner.merge_call = merge_call
    with inner:
      return fn(*args, **kwargs)

  return merging_in_branches


def _in_own_scope(merge_fn: Callable) -> Callable:
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
