# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of each graph or inside a `with`, and notes of wrappers on a graph."""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from collections.abc import Iterator
from typing import Any
from typing import Callable
from typing import NamedTuple

import tensorflow as tf

# The names of counters, as in details of events.
EXCHANGES = 'num_exchanges'
DROPPED = 'num_dropped'
APPLIED = 'num_applied'
# The names of figures. A distance has pairs of variables. The staleness is a
# tensor that a training step computes.
DISTANCE = 'distance'
STALENESS = 'staleness'

_ATTRIBUTE = '_tfplugin_values'


class PerGraph:
  """A mapping from graphs to values; a value ends with its graph.

  `tf.estimator.train_and_evaluate` makes deep copies of a strategy, and a graph
  cannot be copied. So a copied mapping is empty.
  """

  def __init__(self):
    """Starts empty."""
    self._eager = {}

  def __deepcopy__(self, memo):
    return type(self)()

  def __contains__(self, graph: tf.Graph) -> bool:
    """Returns whether a graph has a value."""
    return self in getattr(graph, _ATTRIBUTE, ())

  def __setitem__(self, graph: tf.Graph, value: Any) -> None:
    """Sets the value of a graph."""
    _values_of(graph)[self] = value

  def get(self, graph: tf.Graph, default: Any = None) -> Any:
    """Returns the value of a graph, or the default."""
    return getattr(graph, _ATTRIBUTE, {}).get(self, default)

  def setdefault(self, graph: tf.Graph, value: Any) -> Any:
    """Returns the value of a graph, which is `value` if there was none."""
    return _values_of(graph).setdefault(self, value)

  def for_current_graph(self, make: Callable[[], Any] | None = None) -> Any:
    """Returns the value for the current graph, or for eager execution.

    A function and a branch belong to the graph of their variables. `make` makes
    a missing value; without `make`, a missing value is None.
    """
    with tf.init_scope():
      kept, key = self, tf.compat.v1.get_default_graph()
      if tf.executing_eagerly():
        kept, key = self._eager, None
      if make is not None and key not in kept:
        kept[key] = make()
      return kept.get(key)

  def set_for_current_graph(self, value: Any) -> None:
    """Sets the missing value for the current graph; see `for_current_graph`."""
    self.for_current_graph(lambda: value)


def _values_of(graph: tf.Graph) -> weakref.WeakKeyDictionary[PerGraph, Any]:
  """Returns the values of a graph, by the `PerGraph`s that have them.

  They are part of the graph. Variables among them refer to their graph, so any
  other dictionary, also a weak one, would keep the graph for ever.
  """
  if not hasattr(graph, _ATTRIBUTE):
    setattr(graph, _ATTRIBUTE, weakref.WeakKeyDictionary())
  return getattr(graph, _ATTRIBUTE)


class ContextValue:
  """A value that a `with` changes, such as the current maker of variables."""

  def __init__(self, default: Any):
    """Stores the value outside of all `with`."""
    self._value = contextvars.ContextVar('ContextValue', default=default)

  def get(self) -> Any:
    """Returns the current value."""
    return self._value.get()

  @contextlib.contextmanager
  def set_to(self, value: Any) -> Iterator[None]:
    """Sets the value inside it."""
    token = self._value.set(value)
    try:
      yield
    finally:
      self._value.reset(token)


class Inside:
  """Whether a `with` is active in any replica of a strategy.

  Replicas take turns at a merge call. Inside one, each has entered the `with`,
  and the first one leaves it while the others are still inside.

  Example:
    >>> is_applying = Inside()
    >>> with is_applying:
    ...   bool(is_applying)
    True
    >>> bool(is_applying)
    False
  """

  def __init__(self):
    """Starts outside."""
    self._number = 0

  def __bool__(self) -> bool:
    """Returns whether a replica is inside."""
    return self._number > 0

  def __enter__(self) -> None:
    """Enters in one replica."""
    self._number += 1

  def __exit__(self, *unused_error) -> None:
    """Leaves in one replica."""
    self._number -= 1


# Whether the variables that are made now are shared by all workers. A wrapper
# that keeps the inner optimizer's state on the worker leaves these as they are.
is_shared = ContextValue(False)


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


_graphs = PerGraph()


def of(graph: tf.Graph) -> TrainingGraph:
  """Returns the notes about a graph."""
  return _graphs.setdefault(graph, TrainingGraph())


def current() -> TrainingGraph:
  """Returns the notes about the graph that `PerGraph` chooses."""
  return _graphs.for_current_graph(TrainingGraph)
