# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dictionary of a strategy's values for each graph that it builds."""

from __future__ import annotations

import weakref
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf


class PerGraph(weakref.WeakKeyDictionary):
  """A dictionary from graphs; an entry is deleted with its graph.

  `tf.estimator.train_and_evaluate` makes deep copies of a strategy, and a graph
  cannot be copied. So a copied dictionary is empty.
  """

  def __init__(self):
    """Starts empty."""
    super().__init__()
    self._eager = {}

  def __deepcopy__(self, memo):
    return type(self)()

  def here(self, make: Optional[Callable[[], Any]] = None) -> Any:
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


# The number of workers that the default moving rate of a graph assumes.
COUNTED_WORKERS = PerGraph()
