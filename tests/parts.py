# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tests one of several runs plays that share what is large.

Two runs, on two versions of TensorFlow, share the behaviours of a test. Each
test still meets each version, each version each behaviour, and each test each
behaviour: what is left out is that all three meet. They share the cells, too,
of a test that is marked so (`pytest.mark.shared`), the matrix of faults first.
"""

from __future__ import annotations

import collections
import zlib
from collections.abc import Iterator
from typing import Optional

import pytest

from tfplugin.testing import behaviors

# The variable of the environment that says which part a run plays: `1/2` is the
# first run's half, `2/2` the second's; without it a run plays everything.
PART = 'TEST_PART'


def without_others(items: list, part: str) -> list:
  """Returns the tests that are not another run's.

  Args:
    items: What pytest has collected.
    part: The part, such as `'1/2'`; empty: all.

  Raises:
    pytest.UsageError: `part` is none: a slip would leave tests out unseen.
  """
  number, _, count = (part or '1/1').partition('/')
  if not (number.isdecimal() and count.isdecimal() and
          1 <= int(number) <= int(count)):
    raise pytest.UsageError(
        f'`{PART}` must be a number of parts, such as 1/2. Received: {part!r}')
  runs = zip(items, _runs_of(items, int(count)))
  return [item for item, run in runs if run in (None, int(number) - 1)]


def _runs_of(items, count: int) -> Iterator[Optional[int]]:
  """Yields of each test the number of the only run that plays it, or None.

  A cell is told by its number among those of its test: pytest's versions, and
  Python's, give long and nameless parameters ids of different kinds.
  """
  cells = collections.defaultdict(dict)
  for item in items:
    behavior = _behavior(item)
    if behavior is None and item.get_closest_marker('shared') is None:
      yield None
      continue
    test, words = item.nodeid.partition('[')[0], item.callspec.id.split('-')
    if behavior is not None:
      words.remove(behavior)
    numbers = cells[test]
    place = zlib.crc32(
        f'{test} {numbers.setdefault(tuple(words), len(numbers))}'.encode())
    # The behaviours of a cell follow each other, from a place of its own on.
    turn = 0 if behavior is None else behaviors.BEHAVIORS.index(behavior)
    yield (place + turn) % count


def _behavior(item) -> Optional[str]:
  params = item.callspec.params.values() if hasattr(item, 'callspec') else ()
  return next((value for value in params if isinstance(value, str) and
               value in behaviors.BEHAVIORS), None)
