# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Notes of wrappers on a graph, which hooks read."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from tfplugin.distribute import per_graph

# The names of counters, as in details of events.
EXCHANGES = 'num_exchanges'
DROPPED = 'num_dropped'
APPLIED = 'num_applied'
# The names of figures. A distance has pairs of variables. The staleness is a
# tensor that a training step computes.
DISTANCE = 'distance'
STALENESS = 'staleness'


class Count(NamedTuple):
  """A counter: its name, and how far the variable moves for each count."""

  name: str
  every: int = 1


class TrainingGraph:
  """The notes of wrappers about a graph.

  Hooks read them without knowing the wrappers.

  Attributes:
    counts: The counters, by the names of their variables' ops.
    counted_workers: The number of workers that the default moving rate assumes;
      None where no rate does.
    awaited: The variables, beside global ones, that the chief initialises
      before workers begin.
    unlisted: The variables that start beside the local ones.
    copies: Each averaged centre and this worker's copy, by the centre's op.
    step_counts_exchanges: Whether the global step counts no local steps.
  """

  def __init__(self):
    """Starts without notes."""
    self.counts: dict[str, Count] = {}
    self.counted_workers: int | None = None
    self.awaited: list[tf.Variable] = []
    self.unlisted: list[tf.Variable] = []
    self.copies: dict[str, tuple[tf.Variable, tf.Variable]] = {}
    self.step_counts_exchanges = False
    self._figures: dict[str, dict[tuple, tuple]] = {}

  def add_count(self, variable: tf.Variable, name: str, every: int = 1) -> None:
    """Registers a variable as a counter."""
    self.counts[variable.op.name] = Count(name, every)

  def add_figure(self, name: str, *parts: Any) -> None:
    """Registers tensors or variables for a figure."""
    # By identity: tensors have no plain equality.
    self._figures.setdefault(name, {})[tuple(map(id, parts))] = parts

  def figure(self, name: str) -> list[tuple]:
    """Returns the registered tuples of a figure, each once."""
    return list(self._figures.get(name, {}).values())


_graphs = per_graph.PerGraph()


def of(graph: tf.Graph) -> TrainingGraph:
  """Returns the notes about a graph."""
  return _graphs.setdefault(graph, TrainingGraph())


def current() -> TrainingGraph:
  """Returns the notes about the graph that `PerGraph` chooses."""
  return _graphs.for_current_graph(TrainingGraph)
