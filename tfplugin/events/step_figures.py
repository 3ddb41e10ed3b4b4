# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registry of a graph's tensors and variables for figures of wrappers.

As in `step_counts`, wrappers register them, and reporting hooks find them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any

# Tuples of two variables: the worker copy and the centre.
DISTANCE = 'distance'
# Tuples of one tensor, computed by a training step.
STALENESS = 'staleness'

# Weak references: a reference to a tensor would keep its graph.
_noted: weakref.WeakKeyDictionary[Hashable, dict[str, list[tuple]]] = (
    weakref.WeakKeyDictionary())


def note(graph: Hashable, name: str, *parts: Any) -> None:
  """Registers tensors or variables for the figure `name`, as listed above."""
  _noted.setdefault(graph, {}).setdefault(name, []).append(
      tuple(weakref.ref(part) for part in parts))


def of(graph: Hashable, name: str) -> list[tuple]:
  """Returns the registered tuples of a figure that still exist, each once."""
  found = [tuple(part() for part in parts)
           for parts in _noted.get(graph, {}).get(name, ())]
  # By identity: tensors have no plain equality.
  known = {tuple(map(id, parts)): parts for parts in found
           if not any(part is None for part in parts)}
  return list(known.values())
