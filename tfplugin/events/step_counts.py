# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registry of a graph's counter variables, read by reporting hooks.

Wrappers register their counters. Hooks find them without knowing the wrappers.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from collections.abc import Mapping
from typing import NamedTuple

EXCHANGES = 'num_exchanges'
DROPPED = 'num_dropped'
APPLIED = 'num_applied'


class Count(NamedTuple):
  """A counter: its name, and how far the variable moves for each count."""

  name: str
  every: int = 1


# By the name of the op: a reference to the variable would keep the graph.
_counts: weakref.WeakKeyDictionary[Hashable, dict[str, Count]] = (
    weakref.WeakKeyDictionary())


def note(graph: Hashable, variable: str, name: str, every: int = 1) -> None:
  """Registers the variable with op name `variable` as a counter of `graph`."""
  _counts.setdefault(graph, {})[variable] = Count(name, every)


def of(graph: Hashable) -> Mapping[str, Count]:
  """Returns the counters of a graph, by the names of their variables' ops."""
  return _counts.get(graph, {})
