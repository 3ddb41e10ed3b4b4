# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A worker's own updates between the two readings of a gradient.

  reading 1 -> batch -> own update -> gradient -> reading 2

Two updates in one train op may share a batch. The second update's reading
precedes the batch, so the first update is between its readings, and no order of
ops can change this. Such an update is subtracted from the staleness.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph


class _Update(NamedTuple):
  """An update that advances `step` by 1 where `accepted` is true."""

  done: tf.Operation
  step: tf.Variable
  accepted: tf.Tensor


_updates = per_graph.PerGraph()  # Of a list.


def note(update: tf.Operation, step: tf.Variable,
         accepted: tf.Tensor) -> None:
  """Notes an update that advances `step` by 1 where `accepted` is true."""
  if per_graph.of(update.graph).step_counts_exchanges:
    return  # Another wrapper decides which updates advance the step.
  _updates[update.graph] = [
      *_updates.get(update.graph, ()), _Update(update, step, accepted)]


def between(step: tf.Variable, reading: tf.Tensor,
            second: tf.Tensor) -> list[tf.Tensor]:
  """Returns whether each of the noted updates between two readings advances.

  The updates wait for `reading`. An update in a branch that `second` is not in
  is left out, and so is one outside of the v2 branch of `second`.
  """
  updates = [update for update in _updates.get(second.graph, ())
             if update.step is step]
  if not updates:
    return []
  before = graph_order.upstream([reading])
  after_begin = graph_order.upstream(
      [second], stop=lambda op: _tf_internals.repeats_loop_of(op, second.op),
      known=before)
  return [update.accepted for update in updates
          if update.done in after_begin and _follow(
              update.accepted, reading, before)]


def _follow(accepted: tf.Tensor, reading: tf.Tensor,
            before: set[tf.Operation]) -> bool:
  """Returns whether `accepted` is usable; makes it wait for `reading`."""
  if not _tf_internals.is_usable_here(accepted):
    return False
  # The op that calls a branch of v2 waits for the reading already.
  if accepted.graph is reading.graph:
    if accepted.op in before or not _tf_internals.can_precede(
        reading.op, accepted.op):
      return False
    _tf_internals.add_control_inputs(accepted.op, [reading.op])
  return True
