# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the global step around a training step, and drops stale gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.staleness import step_order
from tfplugin.distribute.staleness import step_reading
from tfplugin.distribute.updates import finite_updates
from tfplugin.events import step_figures
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1

# What happens to an update, for messages.
AUDITED = 'drops updates that are stale'


class Decision(NamedTuple):
  """Whether the gradients of one step are applied.

  Attributes:
    reading: The global step when the step began.
    staleness: The staleness of the gradients, an `int64` scalar.
    accepted: Whether the gradients are applied, a bool scalar.
    fresh: Whether they are not stale, which is the same unless gradients that
      are not finite are dropped, too.
  """

  reading: tf.Tensor
  staleness: tf.Tensor
  accepted: tf.Tensor
  fresh: tf.Tensor


class StalenessGate:
  """Decides whether gradients are applied, anew for each `decide`.

  Attributes:
    decision: The last one; None before it.
  """

  def __init__(self, max_staleness: staleness_ops.Bound,
               on_nonfinite: str = nonfinite.APPLY):
    """Decides nothing yet.

    Args:
      max_staleness: The largest staleness that is still applied.
      on_nonfinite: What becomes of gradients with a NaN or an infinity.
    """
    self._max_staleness = max_staleness
    self._on_nonfinite = nonfinite.check_policy(on_nonfinite)
    self.decision: Optional[Decision] = None

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: Optional[tf.Tensor] = None,
             names: Sequence[str] = ()) -> Decision:
    """Returns a decision, and keeps it.

    Args:
      step: The variable that staleness is counted in.
      gradients: The gradients of one step, not None.
      reading: The step when the training step began; None puts the reading
        before the model's work, in a graph, and keeps this worker's own writes
        of the step from being counted.
      names: Of the variables of the gradients, for the error.

    Raises:
      ValueError: There is no gradient.
    """
    if not gradients:
      raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                       'provided for any variable. Received: none')
    orders = reading is None
    if orders:
      reading = step_reading.read_step_before_forward(step, gradients)
    second = step_reading.read_step_after(step, gradients)
    if orders:
      step_order.keep_own_writes_out(reading, second)
    staleness = staleness_ops.staleness_of(reading, second)
    if not tf.executing_eagerly():
      step_figures.note(staleness.graph, step_figures.STALENESS, staleness)
    fresh = staleness_ops.is_fresh(staleness, self._max_staleness)
    # Another thread may replace the one that is kept.
    decision = self._judged(
        Decision(reading, staleness, fresh, fresh), gradients, names)
    self.decision = decision
    return decision

  def _judged(self, decision: Decision, gradients: Sequence[types.Gradient],
              names: Sequence[str]) -> Decision:
    """Returns `decision`, which accepts what is finite if only that counts."""
    if self._on_nonfinite == nonfinite.APPLY:
      return decision
    return decision._replace(accepted=tf.logical_and(
        decision.accepted, finite_updates.accepted(
            self._on_nonfinite, gradients, names, decision.reading)))


class OneDecision(StalenessGate):
  """Decides once in a graph, for all optimizers of the step.

  The step that the first optimizer takes does not make the second one stale.
  """

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: Optional[tf.Tensor] = None,
             names: Sequence[str] = ()) -> Decision:
    """See the base class."""
    if self.accepted_here is None:
      return super().decide(step, gradients, reading, names)
    step_reading.order_before_forward(self.decision.reading, gradients)
    return self._judged(self.decision, gradients, names)

  @property
  def accepted_here(self) -> Optional[tf.Tensor]:
    """The decision that ops made here can go by, or None before it.

    A decision in a branch of `tf.cond` holds in that branch.
    """
    if self.decision is None or not _tf_internals.is_usable_here(
        self.decision.accepted):
      return None
    return self.decision.accepted
