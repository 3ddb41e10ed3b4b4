# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a graph has for the figures of a wrapper, for who tells of a training.

As in `step_counts`, a wrapper notes what there is; whoever tells of a training
finds it, and knows no wrapper.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any

# Pairs of variables: this worker's copy, and the centre.
DISTANCE = 'distance'
# Tensors of a training step, alone in a tuple.
STALENESS = 'staleness'

# The graph owns what is noted: a reference to it would keep the graph.
_noted: weakref.WeakKeyDictionary[Hashable, dict[str, list[tuple]]] = (
    weakref.WeakKeyDictionary())


def note(graph: Hashable, name: str, *parts: Any) -> None:
  """Notes what belongs to a figure.

  Args:
    graph: Where the parts are.
    name: One of the names above.
    *parts: See there.
  """
  _noted.setdefault(graph, {}).setdefault(name, []).append(
      tuple(weakref.ref(part) for part in parts))


def of(graph: Hashable, name: str) -> list[tuple]:
  """Returns what was noted for a figure and is still there, each once.

  Args:
    graph: Where the parts are.
    name: One of the names above.
  """
  found = [tuple(part() for part in parts)
           for parts in _noted.get(graph, {}).get(name, ())]
  # By identity: a tensor must not be compared.
  known = {tuple(map(id, parts)): parts for parts in found
           if not any(part is None for part in parts)}
  return list(known.values())
