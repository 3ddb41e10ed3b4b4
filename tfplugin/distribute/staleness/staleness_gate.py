# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the global step around a training step, and drops stale gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute.staleness import step_reading
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1

# What happens to an update, for messages.
AUDITED = 'drops updates that are stale'


class StalenessGate:
  """Decides whether gradients are applied, anew for each `decide`.

  Attributes:
    reading: The global step when the step began; None before a decision, as the
      others.
    staleness: The staleness of the gradients, an `int64` scalar.
    accepted: Whether the gradients are applied, a bool scalar.
  """

  def __init__(self, max_staleness: int):
    """Decides nothing yet.

    Args:
      max_staleness: The largest staleness that is still applied.
    """
    self._max_staleness = max_staleness
    self.reading = None
    self.staleness = None
    self.accepted = None

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: Optional[tf.Tensor] = None) -> None:
    """Sets the attributes.

    Args:
      step: The variable that staleness is counted in.
      gradients: The gradients of one step, not None.
      reading: The step when the training step began; None puts the reading
        before the model's first read of a variable, in a graph.

    Raises:
      ValueError: There is no gradient.
    """
    if not gradients:
      raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                       'provided for any variable. Received: none')
    if reading is None:
      reading = step_reading.read_step_before_forward(step, gradients)
    self.reading = reading
    self.staleness = staleness_ops.staleness_of(
        reading, step_reading.read_step_after(step, gradients))
    self.accepted = staleness_ops.is_fresh(self.staleness, self._max_staleness)


class OneDecision(StalenessGate):
  """Decides once in a graph, for all optimizers of the step.

  The step that the first optimizer takes does not make the second one stale.
  """

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: Optional[tf.Tensor] = None) -> None:
    """See the base class."""
    if self.accepted_here is None:
      super().decide(step, gradients, reading)
    else:
      step_reading.order_before_forward(self.reading, gradients)

  @property
  def accepted_here(self) -> Optional[tf.Tensor]:
    """The decision of the current graph, or None before it."""
    if (self.accepted is None or
        self.accepted.graph is not tf1.get_default_graph()):
      return None
    return self.accepted
