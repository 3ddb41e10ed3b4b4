# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tests one of several runs plays that share what is large.

Two runs, on two versions of TensorFlow, share the behaviours of a test. Each
test still meets each version, each version each behaviour, and each test each
behaviour: what is left out is that all three meet. They share the cells, too,
of a test that is marked so (`pytest.mark.shared`), the matrix of faults first.
"""

from __future__ import annotations

import zlib
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
  return [item for item in items
          if _run_of(item, int(count)) in (None, int(number) - 1)]


def _run_of(item, count: int) -> Optional[int]:
  """Returns the number of the only run that plays a test, or None."""
  behavior = _behavior(item)
  if behavior is None:
    if item.get_closest_marker('shared') is None:
      return None
    return zlib.crc32(item.nodeid.encode()) % count
  # The behaviours of a cell follow each other, from a place of its own on.
  words = item.callspec.id.split('-')
  words.remove(behavior)
  cell = '-'.join([item.nodeid.partition('[')[0], *words])
  return (zlib.crc32(cell.encode()) +
          behaviors.BEHAVIORS.index(behavior)) % count


def _behavior(item) -> Optional[str]:
  params = item.callspec.params.values() if hasattr(item, 'callspec') else ()
  return next((value for value in params if isinstance(value, str) and
               value in behaviors.BEHAVIORS), None)
