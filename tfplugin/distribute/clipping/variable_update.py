# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a function on variables after an update, in whatever context.

In a plain graph, eager execution and tf.function the function is called with
the variable. In a replica of tf.distribute there is one `merge_call`, and in it
`extended.update`, so that every copy of the variable changes alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

from tfplugin import types


class VariableUpdate(NamedTuple):
  """The update of one variable, or of variables that belong together.

  Attributes:
    variables: Mostly one; several for the parts of a partitioned variable.
    gradient: The gradient that has just been applied to the first.
    update_fn: Gets the variables and the ids of the rows that were touched
      (None: all of them, or unknown); returns an op.
  """

  variables: Sequence[tf.Variable]
  gradient: types.Gradient
  update_fn: Callable[[Sequence[tf.Variable], Optional[tf.Tensor]], Any]


def update_after(first, updates: Sequence[VariableUpdate]) -> list:
  """Runs `updates` when `first` is done.

  Args:
    first: The op of the update before; None in eager execution.
    updates: Their functions are called in this order.

  Returns:
    The results of the functions, one or more for each.
  """
  if tf.distribute.has_strategy() and not (
      tf.distribute.in_cross_replica_context()):

    def merged(strategy, first, gradients):
      return _update_copies(strategy, first, updates, gradients)

    return tf.distribute.get_replica_context().merge_call(
        merged, args=(first, tuple(u.gradient for u in updates)))
  with tf.control_dependencies([] if first is None else [first]):
    return [u.update_fn(u.variables, _touched_ids(u.gradient))
            for u in updates]


def _touched_ids(gradient: types.Gradient) -> Optional[tf.Tensor]:
  """Returns the row ids of a sparse gradient; None for a dense one."""
  return gradient.indices if isinstance(gradient, tf.IndexedSlices) else None


def _update_copies(strategy, first, updates, gradients) -> list:
  """Updates every copy of each variable; runs in cross-replica context."""
  first = [op for op in strategy.experimental_local_results(first)
           if op is not None]
  results = []
  with tf.control_dependencies(first):
    for update, gradient in zip(updates, gradients):
      ids = _ids_of_replicas(strategy, gradient)

      def run(*variables, update_fn=update.update_fn, ids=ids):
        return update_fn(variables, ids)

      results.extend(strategy.extended.update(
          update.variables[0], run, args=tuple(update.variables[1:]),
          group=False))
  return results


def _ids_of_replicas(strategy, gradient) -> Optional[tf.Tensor]:
  """Returns the rows that any replica touched; None where that is not known."""
  gradients = strategy.experimental_local_results(gradient)
  if len(gradients) < strategy.num_replicas_in_sync:
    # The other workers' ids are not here: all rows have to be looked at.
    return None
  ids = [_touched_ids(gradient) for gradient in gradients]
  return None if any(i is None for i in ids) else tf.concat(ids, 0)
