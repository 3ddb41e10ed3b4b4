# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sample of the tests that `make test` runs; `make test-all` runs all of them.

A cell of a test is one combination of its parameters. Each cell runs under one
of TensorFlow's behaviours; cells alternate, so that half of the sample has
either. Of a test that takes long, marked `pytest.mark.sampled(n)`, one cell of
n runs, and more until each value of each parameter that has at most 12 has run.
The samples 0 to 2 n - 1 hold everything together.
"""

from __future__ import annotations

import collections
import zlib
from collections.abc import Sequence

import pytest

from tfplugin.testing import behaviors

# Environment variable: the number of a sample; `all`, or unset: everything.
SAMPLE = 'TEST_SAMPLE'
# A parameter with more values, a table of programs, runs over several samples.
_ALL_VALUES = 12


def sample(items: Sequence, number: str) -> list:
  """Returns the tests of a sample, in their order.

  Raises:
    pytest.UsageError: `number` is none: a slip would leave tests out unseen.
  """
  if number in ('', 'all'):
    return list(items)
  if not number.isdecimal():
    raise pytest.UsageError(f'`{SAMPLE}` must be `all` or a number, such as 0. '
                            f'Received: {number!r}')
  tests = collections.defaultdict(list)
  for item in items:
    tests[item.nodeid.partition('[')[0]].append(item)
  chosen = {id(item) for name, cells in tests.items()
            for item in _sample_of_test(name, cells, int(number))}
  return [item for item in items if id(item) in chosen]


def _sample_of_test(name, items, number):
  """Returns some cells of one test, each under one of its behaviours."""
  marker = items[0].get_closest_marker('sampled')
  cells = _cells(items)
  count = marker.args[0] if marker else 1
  # Numbers, since versions of pytest give long parameters different ids.
  ranked = sorted(cells, key=lambda cell: zlib.crc32(f'{name} {cell}'.encode()))
  places = {cell: zlib.crc32(name.encode()) + rank
            for rank, cell in enumerate(ranked)}
  chosen = [cell for cell in ranked if (places[cell] - number) % count == 0]
  chosen += _with_missing_values(ranked, chosen)
  return [cells[cell][(places[cell] // count + number // count)
                      % len(cells[cell])] for cell in chosen]


def _with_missing_values(cells, chosen):
  """Returns cells that have the values of parameters that `chosen` lacks."""
  # A parameter that differs in every cell would take all of them.
  names = [name for name, values in _values(cells).items()
           if len(values) < min(len(cells), _ALL_VALUES + 1)]
  seen = {(name, value) for cell in chosen for name, value in cell}
  added = []
  for cell in cells:
    new = {pair for pair in cell if pair[0] in names} - seen
    if new:
      added.append(cell)
      seen |= new
  return added


def _values(cells):
  values = collections.defaultdict(set)
  for cell in cells:
    for name, value in cell:
      values[name].add(value)
  return values


def _cells(items):
  """Returns lists of items that differ in their behaviour alone.

  The key has a number for each parameter's value. Values are told by identity,
  since pytest's versions give long and nameless ones ids of different kinds.
  """
  numbers = collections.defaultdict(dict)
  seen = collections.Counter()
  cells = collections.defaultdict(list)
  for item in items:
    params = item.callspec.params if hasattr(item, 'callspec') else {}
    cell = tuple(
        (name, numbers[name].setdefault(id(value), len(numbers[name])))
        for name, value in sorted(params.items())
        if str(value) not in behaviors.BEHAVIORS)
    behavior = [value for value in params.values()
                if str(value) in behaviors.BEHAVIORS]
    # Rows of a table may be alike.
    row = (*cell, *behavior)
    seen[row] += 1
    cells[(*cell, ('row', seen[row]))].append(item)
  return cells
