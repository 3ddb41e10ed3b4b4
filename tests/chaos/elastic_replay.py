# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replay, in numpy, of a run of elastic averaging that workers join and leave.

Each worker notes the value of its copy after each step. A step adds 1, and each
`period`-th one exchanges with the centre:

    d = 0.9 / period / workers * (copy + 1 - centre)
    copy += 1 - d;  centre += d

Nobody notes the centre: it is the sum of the differences. A value that an
exchange has read must be the sum of all differences that had arrived, and of
some of those on their way: the workers note the times. The sums have many
digits, so that a wrong one does not fit by chance.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

_BETA = 0.9
# Of sums of some 10,000 float64 values of up to 10,000.
_TOLERANCE = 1e-9
# How long the message of a killed worker may take to arrive.
_ARRIVAL_SECS = 1.0
# The chief writes the number of workers, and then its events.
_COUNT_SECS = 1.0
# As many exchanges tell what a killed worker moved.
_FOLLOWING = 20


class Exchange(NamedTuple):
  """An exchange of one worker.

  Attributes:
    begin: A time before it read the centre.
    end: A time at which the centre had its difference.
    local: The copy before.
    difference: What it moved; None: a killed worker did not note it.
    task: Whose it is.
  """

  begin: float
  end: float
  local: float
  difference: float | None
  task: str


class Count(NamedTuple):
  """The number of workers from a time on."""

  time: float
  workers: int


def exchanges_of(record: Mapping, period: int,
                 killed_at: float | None = None) -> list[Exchange]:
  """Returns the exchanges of a worker, and one that a kill may have hidden.

  Raises AssertionError if a step between two exchanges did not add 1.
  """
  steps, task = record['steps'], record['task']
  found = []
  for number in range(1, len(steps)):
    begin, end, value = steps[number]
    before = steps[number - 1][2] + 1.0
    if (number + 1) % period == 0:
      found.append(Exchange(begin, end, before, before - value, task))
    elif abs(value - before) > _TOLERANCE:
      raise AssertionError(f'Step {number + 1} of {task} must make {before}. '
                           f'Received: {value}')
  if killed_at is not None and (len(steps) + 1) % period == 0:
    found.append(Exchange(steps[-1][1], killed_at + _ARRIVAL_SECS,
                          steps[-1][2] + 1.0, None, task))
  return found


def replay(records: Iterable[Mapping], period: int,
           killed_at: Mapping[str, float], counts: Sequence[Count],
           final: float) -> list[Exchange]:
  """Returns the exchanges of a run that ended with the centre `final`.

  `killed_at` is by task; `counts` has how many workers there were, in order.
  Raises AssertionError if a value does not follow.
  """
  found = [exchange for record in records for exchange in
           exchanges_of(record, period, killed_at.get(record['task']))]
  seen = _Centers([e for e in found if e.difference is not None])
  hidden = sorted(e for e in found if e.difference is None)
  ends = []
  for centers in _revealed(hidden, seen, period, counts):
    ends.append(centers.total)
    if _is_near(final, ends[-1:]):
      break
  else:
    raise AssertionError(f'The centre must be one of {ends} at the end. '
                         f'Received: {final}')
  for exchange in centers.exchanges:
    if not _is_explained(exchange, centers, period, counts):
      raise AssertionError(
          f'{exchange} must follow from the centre and the number of workers. '
          'Received: neither of the centres '
          f'{sorted(set(centers.between(exchange.begin, exchange.end)))[:20]}')
  for record in records:
    start = record['steps'][0][2] - 1.0
    if not _is_near(start, centers.between(record['created'],
                                           record['steps'][0][1])):
      raise AssertionError(f'{record["task"]} must start from the centre. '
                           f'Received: {start}')
  return centers.exchanges


def _revealed(hidden: Sequence[Exchange], centers: _Centers, period: int,
              counts: Sequence[Count]) -> Iterator[_Centers]:
  """Yields the centres for each way in which hidden exchanges may have gone.

  What a killed worker moved, or that it did not, must explain the next ones.
  """
  if not hidden:
    yield centers
    return
  first, *rest = hidden
  last = min([e.begin for e in rest], default=float('inf'))
  following = [e for e in centers.exchanges
               if first.begin < e.end < last][:_FOLLOWING]
  values = {rate * (first.local - center)
            for rate in _rates(first, period, counts)
            for center in centers.between(first.begin, first.end)}
  for known in (centers, *(  # It has not arrived, or it has.
      centers.with_one(first._replace(difference=value))
      for value in sorted(values))):
    if all(_is_explained(e, known, period, counts) for e in following):
      yield from _revealed(rest, known, period, counts)


def _is_explained(exchange: Exchange, centers: _Centers, period: int,
                  counts: Sequence[Count]) -> bool:
  read = [exchange.local - exchange.difference / rate
          for rate in _rates(exchange, period, counts)]
  return any(_is_near(center, read) for center in centers.between(
      exchange.begin, exchange.end, exchange))


def _rates(exchange: Exchange, period: int,
           counts: Sequence[Count]) -> list[float]:
  """Returns the rates of the numbers of workers around an exchange."""
  before = [c for c in counts if c.time <= exchange.begin - _COUNT_SECS][-1:]
  return [_BETA / period / workers for workers in {count.workers for count in (
      *before, *(c for c in counts if exchange.begin - _COUNT_SECS < c.time <
                 exchange.end + _COUNT_SECS))}]


def _is_near(value: float, others: Iterable[float]) -> bool:
  return any(abs(value - other) < 20 * _TOLERANCE for other in others)


class _Centers:
  """The values that the centre had, of exchanges whose ends are known.

  Attributes:
    exchanges: In the order of their ends.
  """

  def __init__(self, exchanges: Iterable[Exchange]):
    self.exchanges = sorted(exchanges, key=lambda e: e.end)
    self._ends = [e.end for e in self.exchanges]
    self._times = sorted([*self._ends, *(e.begin for e in self.exchanges)])
    self._sums = [0.0, *itertools.accumulate(
        e.difference for e in self.exchanges)]
    self._longest = max((e.end - e.begin for e in self.exchanges), default=0.0)

  @property
  def total(self) -> float:
    """The last value."""
    return self._sums[-1]

  def with_one(self, exchange: Exchange) -> _Centers:
    """Returns the values with one exchange more."""
    return _Centers([*self.exchanges, exchange])

  def between(self, begin: float, end: float,
              but: Exchange | None = None) -> Iterator[float]:
    """Yields each value that it can have had, with and without late ones.

    An exchange that is on its way may have arrived or not; `but` has not.
    """
    times = self._times[bisect.bisect_left(self._times, begin):
                        bisect.bisect_right(self._times, end)]
    for time in (begin, *times):
      first = bisect.bisect_right(self._ends, time)
      way = []
      last = bisect.bisect_right(self._ends, time + self._longest)
      for exchange in self.exchanges[first:last]:
        if exchange.begin <= time and exchange is not but:
          way.append(exchange.difference)
      for taken in itertools.product((0.0, 1.0), repeat=len(way)):
        yield self._sums[first] + sum(
            d * each for d, each in zip(way, taken))
