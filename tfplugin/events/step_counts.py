# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which variables of a graph count what a wrapper does, for who tells of it.

A wrapper notes its counters; whoever tells of a training finds them, and knows
no wrapper.
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
  """What a variable counts.

  Attributes:
    name: One of the names above.
    every: How far the variable moves while one is counted.
  """

  name: str
  every: int = 1


# By the name of the variable's op: a variable would keep its graph.
_counts: weakref.WeakKeyDictionary[Hashable, dict[str, Count]] = (
    weakref.WeakKeyDictionary())


def note(graph: Hashable, variable: str, name: str, every: int = 1) -> None:
  """Notes that a variable counts.

  Args:
    graph: Where the variable is.
    variable: The name of its op.
    name: See `Count`.
    every: See `Count`.
  """
  _counts.setdefault(graph, {})[variable] = Count(name, every)


def of(graph: Hashable) -> Mapping[str, Count]:
  """Returns what the variables of a graph count, by the names of their ops."""
  return _counts.get(graph, {})
