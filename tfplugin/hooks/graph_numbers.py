# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a graph: its step, and the counters and figures of a wrapper."""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.ops import elastic

tf1 = tf.compat.v1

STEP = 'step'

# The distance needs a read of the whole centre. The next read waits 100 times
# as long as the last one took, so that reads take 1 % of the time.
_TIMES_AS_LONG = 100.0


def fetches() -> dict[str, tf.Tensor]:
  """Returns the default graph's step, and its counters by their names."""
  return {STEP: tf1.train.get_global_step(), **counters()}


def read(session: tf1.Session,
         tensors: Mapping[str, tf.Tensor]) -> dict[str, int]:
  """Returns the values of the tensors that `fetches` has returned."""
  try:
    values = session.run(dict(tensors))
  except tf.errors.FailedPreconditionError:
    # A counter that is initialised later must not end the training.
    values = {STEP: session.run(tensors[STEP])}
  return {name: int(value) for name, value in values.items()}


def counters() -> dict[str, tf.Tensor]:
  """Returns the counters of the graph, by the names of event details."""
  counts = per_graph.of(tf1.get_default_graph()).counts
  parts = collections.defaultdict(list)
  for variable in [*tf1.local_variables(), *tf1.global_variables()]:
    count = counts.get(variable.op.name)
    if count is not None:
      parts[count.name].append(variable.read_value() // count.every)
  return {name: tf.add_n(values) for name, values in parts.items()}


class Distance:
  """The distance of this worker's copies from the centre."""

  def __init__(self):
    """Adds the ops that read it, if the graph averages variables."""
    pairs = per_graph.of(tf1.get_default_graph()).figure(per_graph.DISTANCE)
    self._value: Optional[tf.Tensor] = None
    self._due = float('-inf')
    self._is_prepared = False
    if pairs:
      # All copies of a worker are on this device; the default is the chief.
      with placement.only_on(pairs[0][0].device):
        self._value = elastic.distance([copy.read_value() for copy, _ in pairs],
                                       [c.read_value() for _, c in pairs])

  def read(self, session: tf1.Session) -> dict[str, float]:
    """Returns `distance`; {} if there is none, or the next read is not due."""
    start = time.monotonic()
    if self._value is None or start < self._due:
      return {}
    try:
      value = float(session.run(self._value))
    except tf.errors.FailedPreconditionError:
      # A variable that is initialised later must not end the training.
      return {}
    now = time.monotonic()
    if self._is_prepared:  # The first run includes the session's planning.
      self._due = now + _TIMES_AS_LONG * (now - start)
    self._is_prepared = True
    # JSON has no NaN and no infinity.
    return {'distance': value} if math.isfinite(value) else {}


class Staleness:
  """The tensors with the staleness of the current graph's steps.

  They are fetched only with steps that compute them. A program may also run
  other steps, e.g. of another optimizer, with the same hooks.
  """

  def __init__(self):
    """Finds the tensors, except those inside a branch."""
    self._graph = tf1.get_default_graph()
    self._tensors = [
        tensor for tensor, in per_graph.of(self._graph).figure(
            per_graph.STALENESS)
        if _tf_internals.is_usable_here(tensor)]
    self._of_fetches = {}

  def of_step(self, fetches: Any) -> list[tf.Tensor]:
    """Returns the tensors that a run with these fetches computes anyway."""
    if not self._tensors:
      return []
    asked = tf.nest.flatten(fetches, expand_composites=True)
    # By identity: tensors have no plain equality.
    key = tuple(one if isinstance(one, str) else id(one) for one in asked)
    if key not in self._of_fetches:
      run = graph_order.upstream(graph_order.operations_of(
          map(self._graph.as_graph_element, asked)))
      self._of_fetches[key] = [t for t in self._tensors if t.op in run]
    return self._of_fetches[key]


def most_stale(values: Optional[Sequence[int]]) -> dict[str, int]:
  """Returns `staleness`, the largest value; {} without values."""
  return {'staleness': max(map(int, values))} if values else {}
