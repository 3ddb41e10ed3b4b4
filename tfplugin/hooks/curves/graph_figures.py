# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of a graph's wrapper: how far, and how stale."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.events import step_figures
from tfplugin.ops import elastic

tf1 = tf.compat.v1

# To read the distance a worker reads the whole centre: of a large model on a
# slow network that is done less often, so that it takes 1 % of the time.
_TIMES_AS_LONG = 100.0


class Distance:
  """How far this worker's copies are from the centre, in the default graph."""

  def __init__(self):
    """Adds what reads it to the graph, if something is averaged there."""
    pairs = step_figures.of(tf1.get_default_graph(), step_figures.DISTANCE)
    self._value: Optional[tf.Tensor] = None
    self._due = float('-inf')
    self._is_prepared = False
    if pairs:
      # All copies of a worker are on it; else the chief would get them.
      with placement.only_on(pairs[0][0].device):
        self._value = elastic.distance([copy.read_value() for copy, _ in pairs],
                                       [c.read_value() for _, c in pairs])

  def told(self, session: tf1.Session) -> dict[str, float]:
    """Returns `distance`; nothing where there is none, or not yet another.

    Args:
      session: Where the variables are.
    """
    start = time.monotonic()
    if self._value is None or start < self._due:
      return {}
    try:
      value = float(session.run(self._value))
    except tf.errors.FailedPreconditionError:
      # A variable that a program initialises later ends no training.
      return {}
    now = time.monotonic()
    if self._is_prepared:  # The first time the session makes its plan, too.
      self._due = now + _TIMES_AS_LONG * (now - start)
    self._is_prepared = True
    # JSON has no other numbers.
    return {'distance': value} if math.isfinite(value) else {}


class Staleness:
  """What tells how stale the gradients of the default graph's steps are.

  It is asked of steps that compute it anyway: a program may run others, such as
  those of another optimizer, with the same hooks.
  """

  def __init__(self):
    """Finds the tensors; what a branch alone computes is not told."""
    self._graph = tf1.get_default_graph()
    self._tensors = [
        tensor for tensor, in step_figures.of(
            self._graph, step_figures.STALENESS)
        if _tf_internals.is_usable_here(tensor)]
    self._of_fetches = {}

  def of_step(self, fetches: Any) -> list[tf.Tensor]:
    """Returns the tensors that a run computes with what it is asked for.

    Args:
      fetches: What the run is asked for.
    """
    if not self._tensors:
      return []
    asked = tf.nest.flatten(fetches, expand_composites=True)
    # By identity: a tensor must not be compared.
    key = tuple(one if isinstance(one, str) else id(one) for one in asked)
    if key not in self._of_fetches:
      run = graph_order.upstream(graph_order.operations_of(
          map(self._graph.as_graph_element, asked)))
      self._of_fetches[key] = [t for t in self._tensors if t.op in run]
    return self._of_fetches[key]


def told(values: Optional[Sequence[int]]) -> dict[str, int]:
  """Returns `staleness`: the largest, where a step has several optimizers.

  Args:
    values: Of what `Staleness.of_step` has returned; None: nothing was asked.
  """
  return {'staleness': max(map(int, values))} if values else {}
