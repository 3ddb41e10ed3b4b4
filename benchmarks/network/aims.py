# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What smaller and hidden communications are to bring, and what limits it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import figures

LINK = next(link for link in cells.LINKS if link.mbit == 1000)
_BOTH = cells.elastic(10, 'overlap, float16').name
# Steps per second of the first to those of the second: at least that.
AIMS = (
    (_BOTH, cells.elastic(10, 'plain').name, 2.2),
    (cells.elastic(10, 'overlap, int8').name, _BOTH, 1.0),
    (cells.elastic(cells.HIDING_PERIOD, 'overlap').name, cells.LOCAL, 0.88),
    (cells.IN_HALVES, cells.CROSS_SHARD, 1.8),
)


def lines(results: page_part.Results) -> Iterator[str]:
  """Yields a table of the aims; empty without what they are said of.

  That is, of workers that have come apart, as those of a long training: with
  those that meet a plain exchange is slower, and all is easier to reach.

  Args:
    results: What `make bench-network` wrote.
  """
  if 'come_apart' not in results:
    return
  rows = []
  for first, second, aim in AIMS:
    ours = figures.rounds(results, LINK, first)
    # Local steps are those next to the cell.
    others = (figures.local_rounds(results, LINK, first)
              if second == cells.LOCAL else
              figures.rounds(results, LINK, second))
    if ours and others:
      # From the last one: a cell that was added later has fewer rounds.
      every = [one / other for one, other in zip(ours[::-1], others[::-1])]
      ratio = statistics.median(every)
      rows.append((f'{first}, to {second}', [
          f'{ratio:.4g} ({min(every):.4g} to {max(every):.4g})', f'>= {aim:g}',
          'yes' if ratio >= aim else 'no', *(
              _busy(results, name) for name in (first, second))]))
  if rows:
    yield from ('', f'The aims at {LINK.name}. Measured: steps per second as '
                'a ratio to the other cell in the same round, the median with '
                'the least and the largest. Busy: the part of the time in '
                'which the processors work for the workers and the server.')
    yield from page_part.table(
        'ratio',
        ['measured', 'aim', 'reached', 'busy', 'busy, the other'], rows)


def _busy(results, name):
  """The part of the time of all processors that the hosts have, as text."""
  taken = figures.processors_ms(results, LINK, name)
  if not taken:
    return None
  # Each worker's, and the server's for it.
  secs = (taken[0] + taken[1]) / 1e3 * results['num_worker']
  rate = figures.rate(results, LINK, name)
  return f'{secs * rate / results["about"]["cores"]:.0%}'
