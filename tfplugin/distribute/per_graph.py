# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a strategy keeps for each graph that it builds."""

from __future__ import annotations

import weakref
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf


class PerGraph(weakref.WeakKeyDictionary):
  """A dictionary from graphs; gone with the graph, and not copied.

  `tf.estimator.train_and_evaluate` makes deep copies of a strategy, and a graph
  cannot be copied: a copied strategy starts with no graph at all.
  """

  def __init__(self):
    """Starts empty."""
    super().__init__()
    self._eager = {}

  def __deepcopy__(self, memo):
    return type(self)()

  def here(self, make: Optional[Callable[[], Any]] = None) -> Any:
    """Returns what is kept for the graph being built, or for eager execution.

    A function and a branch belong to where their variables are.

    Args:
      make: Makes it when there is none; None: then None is returned.
    """
    with tf.init_scope():
      kept, key = self, tf.compat.v1.get_default_graph()
      if tf.executing_eagerly():
        kept, key = self._eager, None
      if make is not None and key not in kept:
        kept[key] = make()
      return kept.get(key)


# How many workers the default moving rate of a graph counts.
COUNTED_WORKERS = PerGraph()
