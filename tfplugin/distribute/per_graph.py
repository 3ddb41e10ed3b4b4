# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a strategy keeps for each graph that it builds."""

from __future__ import annotations

import weakref


class PerGraph(weakref.WeakKeyDictionary):
  """A dictionary from graphs; gone with the graph, and not copied.

  `tf.estimator.train_and_evaluate` makes deep copies of a strategy, and a graph
  cannot be copied: a copied strategy starts with no graph at all.
  """

  def __deepcopy__(self, memo):
    return type(self)()
