# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mapping from graphs to values, which end with their graph."""

from __future__ import annotations

import weakref
from typing import Any
from typing import Callable

import tensorflow as tf

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
