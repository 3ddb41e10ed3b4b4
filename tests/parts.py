# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tests one of several runs plays that share what is large.

Two runs, on two versions of TensorFlow, share the behaviours of a test and the
faults. Each test still meets each version, each version each behaviour, and
each test each behaviour: what is left out is that all three meet.
"""

from __future__ import annotations

import os
import zlib
from typing import Optional

import pytest

from tfplugin.testing import behaviors

# The variable of the environment that says which part a run plays: `1/2` is the
# first run's half, `2/2` the second's; without it a run plays everything.
PART = 'TEST_PART'


def share(things: list, text: Optional[str] = None) -> list:
  """Returns what one of several runs plays of things that they share.

  Args:
    things: All of them, the same in every run.
    text: The part, such as `'1/2'`; empty: all. None: what `PART` says.

  Raises:
    pytest.UsageError: `text` is no part: a slip would leave tests out unseen.
  """
  number, count = _parsed(text)
  return things[number::count]


def without_others(items: list, text: Optional[str] = None) -> list:
  """Returns the tests that are not another run's.

  Of a test that is there for several behaviours each run plays another one. A
  test without is in all runs.

  Args:
    items: What pytest has collected.
    text: As in `share`.

  Raises:
    pytest.UsageError: `text` is no part.
  """
  number, count = _parsed(text)
  return [item for item in items
          if _behavior(item) is None or _place(item) % count == number]


def _parsed(text: Optional[str]) -> tuple[int, int]:
  if text is None:
    text = os.environ.get(PART, '')
  number, _, count = (text or '1/1').partition('/')
  if not (number.isdecimal() and count.isdecimal() and
          1 <= int(number) <= int(count)):
    raise pytest.UsageError(
        f'`{PART}` must be a number of parts, such as 1/2. Received: {text!r}')
  return int(number) - 1, int(count)


def _behavior(item) -> Optional[str]:
  params = item.callspec.params.values() if hasattr(item, 'callspec') else ()
  return next((value for value in params if isinstance(value, str) and
               value in behaviors.BEHAVIORS), None)


def _place(item) -> int:
  """Numbers the behaviours of a test, from a place of its own on."""
  behavior = _behavior(item)
  words = item.callspec.id.split('-')
  words.remove(behavior)
  cell = '-'.join([item.nodeid.partition('[')[0], *words])
  return zlib.crc32(cell.encode()) + behaviors.BEHAVIORS.index(behavior)
