# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions that run on variables after an update, in every context.

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
  """The update of one variable, or of the parts of a partitioned variable.

  `gradients` were just applied to the first of `variables`; usually there is
  one. `update_fn` is called with the variables and the ids of the touched rows,
  and returns an op. Ids of None mean all rows, or unknown ones.
  """

  variables: Sequence[tf.Variable]
  gradients: Sequence[types.Gradient]
  update_fn: Callable[[Sequence[tf.Variable], Optional[tf.Tensor]], Any]


def update_after(first, updates: Sequence[VariableUpdate]) -> list:
  """Runs `updates` in their order after `first`, the op of an earlier update.

  In eager execution `first` is None. Returns the results of the functions, one
  or more for each.
  """
  if tf.distribute.has_strategy() and not (
      tf.distribute.in_cross_replica_context()):

    def merged(strategy, first, gradients):
      return _update_copies(strategy, first, updates, gradients)

    return tf.distribute.get_replica_context().merge_call(
        merged, args=(first, tuple(tuple(u.gradients) for u in updates)))
  with tf.control_dependencies([] if first is None else [first]):
    return [u.update_fn(u.variables, _touched_ids(u.gradients))
            for u in updates]


def _touched_ids(gradients: Sequence[types.Gradient]) -> Optional[tf.Tensor]:
  """Returns the row ids of sparse gradients; None if one of them is dense."""
  ids = [g.indices for g in gradients if isinstance(g, tf.IndexedSlices)]
  if len(ids) < len(gradients):
    return None
  return ids[0] if len(ids) == 1 else tf.concat(ids, 0)


def _update_copies(strategy, first, updates, gradients) -> list:
  """Updates every copy of each variable, in cross-replica context."""
  first = [op for op in strategy.experimental_local_results(first)
           if op is not None]
  results = []
  with tf.control_dependencies(first):
    for update, applied in zip(updates, gradients):
      ids = _ids_of_replicas(strategy, applied)

      def run(*variables, update_fn=update.update_fn, ids=ids):
        return update_fn(variables, ids)

      results.extend(strategy.extended.update(
          update.variables[0], run, args=tuple(update.variables[1:]),
          group=False))
  return results


def _ids_of_replicas(strategy, gradients) -> Optional[tf.Tensor]:
  """Returns the rows that any replica touched; None where they are unknown."""
  of_replicas = [strategy.experimental_local_results(g) for g in gradients]
  if any(len(g) < strategy.num_replicas_in_sync for g in of_replicas):
    # The other workers' ids are not available: all rows have to be measured.
    return None
  return _touched_ids([g for of_one in of_replicas for g in of_one])
