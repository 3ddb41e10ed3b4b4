# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums of counters that begin at 0 with each process."""

from __future__ import annotations

from collections.abc import Iterable

from tfplugin.events import record


def running(events: Iterable[record.Event],
            key: str) -> list[tuple[float, int]]:
  """Returns the sum over all processes at the time of each event.

  The events are of one task, in the order of writing; `key` is the counter, and
  events without it are skipped.
  """
  sums, total, last, pid = [], 0, 0, None
  for event in events:
    count = event.details.get(key)
    if count is None:
      continue
    begins_anew = event.pid != pid or count < last
    total += count if begins_anew else count - last
    last, pid = count, event.pid
    sums.append((event.time, total))
  return sums


def total(events: Iterable[record.Event], key: str) -> int:
  """Returns the sum over all processes; 0 without such events."""
  sums = running(events, key)
  return sums[-1][1] if sums else 0
