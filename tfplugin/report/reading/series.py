# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves with few enough points to be drawn, extremes kept.

The x axis is cut into equal parts. Of each part the first, the last, the least
and the largest point are kept. A line through them covers the same pixels as
one through all points, if there are at least as many parts as pixels.

  Jugel, Jerzak, Hackenbroich and Markl. M4: A visualization-oriented time
  series data aggregation. VLDB 2014.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfplugin.events import record

# The points of one panel, over all of its lines, that a browser draws in a
# second.
_POINTS_OF_A_PANEL = 24000
_LEAST_POINTS = 80
_MOST_POINTS = 4000
# First, last, least, largest, and one that is not finite.
_OF_A_PART = 5


def budget(num_lines: int) -> int:
  """Returns the largest number of points for each of a panel's lines."""
  return min(max(_POINTS_OF_A_PANEL // max(num_lines, 1), _LEAST_POINTS),
             _MOST_POINTS)


def thin(points: Iterable[tuple[float, float]],
         max_points: int) -> dict[str, Any]:
  """Returns a curve of at most `max_points`, as report.json has it.

  `points` are pairs of x, which ascends, and y, which may be NaN or infinity.
  `max_points` is at least 5. The result has `x` and `y` of the kept points; y
  is None where it is not finite.
  `num_points` and `num_nonfinite` count all points.

  Example:
    >>> from tfplugin.report.reading import series
    >>> curve = series.thin(enumerate([0] * 500 + [7] + [0] * 499), 10)
    >>> max(curve['y']), curve['num_points'], len(curve['y']) <= 10
    (7.0, 1000, True)
  """
  x, y = np.fromiter(points, np.dtype((float, 2))).T
  is_finite = np.isfinite(y)
  if len(x) > max_points:
    kept = _kept(x, y, is_finite, max_points // _OF_A_PART)
  else:
    kept = np.arange(len(x))
  return {'x': [round(float(value), 6) for value in x[kept]],
          'y': [float(y[i]) if is_finite[i] else None for i in kept],
          'num_points': len(x),
          'num_nonfinite': int(np.sum(~is_finite))}


def _kept(x: np.ndarray, y: np.ndarray, is_finite: np.ndarray,
          num_parts: int) -> np.ndarray:
  """Returns the indices of the kept points, in order."""
  part_of = ((x - x[0]) / max(x[-1] - x[0], 1e-12) * num_parts).astype(int)
  part_of = np.minimum(part_of, num_parts - 1)
  kept = set()
  edges = np.flatnonzero(np.diff(part_of)) + 1
  for part in np.split(np.arange(len(x)), edges):
    kept.update((part[0], part[-1]))
    good = part[is_finite[part]]
    if len(good):
      kept.update((good[np.argmin(y[good])], good[np.argmax(y[good])]))
    if len(good) < len(part):
      kept.add(part[~is_finite[part]][0])
  return np.array(sorted(kept))


def running(events: Iterable[record.Event],
            key: str) -> list[tuple[float, int]]:
  """Returns the sum over all processes at the time of each event.

  `events` has all events of one task, in the order of writing. `key` is the
  counter; events without it are skipped.
  """
  sums, total = [], 0
  for process in record.by_process(events):
    last = 0
    for event in process:
      count = event.details.get(key)
      if count is None:
        continue
      # A process whose session was lost may count anew.
      total += count if count < last else count - last
      last = count
      sums.append((event.time, total))
  return sums


def total(events: Iterable[record.Event], key: str) -> int:
  """Returns the sum over all processes; 0 without such events."""
  sums = running(events, key)
  return sums[-1][1] if sums else 0
