# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counters begin anew with each process; their sum does not."""

from tests.report import hand_written
from tfplugin.report.sections import totals


def _event(secs, pid, **details):
  return hand_written.event(secs, 'worker:0', 'dropping', pid=pid, **details)


def test_processes_are_added():
  events = [_event(1, 1, n=2), _event(2, 1, n=5), _event(3, 1),
            _event(4, 2, n=0), _event(5, 2, n=4), _event(6, 2, n=1)]
  start = hand_written.START
  # 2, +3; another process +0, +4; and a counter that began anew, +1.
  assert totals.running(events, 'n') == [
      (start + 1, 2), (start + 2, 5), (start + 4, 5), (start + 5, 9),
      (start + 6, 10)]
  assert totals.total(events, 'n') == 10


def test_a_process_that_counts_further_than_the_one_before_adds_all():
  assert totals.total([_event(1, 1, n=3), _event(2, 2, n=8)], 'n') == 11


def test_nothing_counted_is_none():
  assert totals.total([_event(1, 1)], 'n') == 0
