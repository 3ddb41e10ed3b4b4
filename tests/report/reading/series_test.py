# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Thinned curves keep their extremes, and what is not a number."""

import math

import numpy as np

from tests.report import hand_written
from tfplugin.report.reading import series


def test_few_points_stay_as_they_are():
  assert series.thin([(1, 5), (2, math.inf), (4, 7)], 80) == {
      'x': [1.0, 2.0, 4.0], 'y': [5.0, None, 7.0], 'num_points': 3,
      'num_nonfinite': 1}
  assert series.thin([], 80) == {
      'x': [], 'y': [], 'num_points': 0, 'num_nonfinite': 0}


def test_extremes_ends_and_gaps_of_a_million_points_stay():
  y = np.sin(np.arange(1_000_000) / 1e4)
  y[123_456], y[654_321], y[400_001] = 9.0, -9.0, math.nan
  curve = series.thin(enumerate(y), 2000)
  points = dict(zip(curve['x'], curve['y']))
  assert len(points) <= 2000 and curve['num_points'] == 1_000_000
  assert (points[123_456.0], points[654_321.0]) == (9.0, -9.0)
  assert points[400_001.0] is None and curve['num_nonfinite'] == 1
  assert {0.0, 999_999.0} <= set(points)
  assert curve['x'] == sorted(curve['x'])


def test_each_part_keeps_first_last_least_and_largest():
  # Two parts of five points: x below 5, and from 5 on.
  curve = series.thin(enumerate([3, 1, 2, 9, 4, 5, 5, 8, 0, 6]), 10)
  assert curve['x'] == list(range(10))
  curve = series.thin(enumerate([3, 1, 2, 9, 4, 4, 5, 5, 5, 8, 0, 6]), 10)
  # Of the first part 2 and 4 at x = 4, of the second 5 at 7 and at 8 go.
  assert curve['x'] == [0, 1, 3, 5, 6, 9, 10, 11]


def test_points_at_one_x_are_one_part():
  curve = series.thin([(2.0, y) for y in range(100)], 10)
  assert (curve['x'], curve['y']) == ([2.0, 2.0], [0.0, 99.0])


def test_the_lines_of_a_panel_share_its_points():
  assert [series.budget(n) for n in (0, 1, 6, 50, 10_000)] == [
      4000, 4000, 4000, 480, 80]


def _event(secs, pid, **details):
  return hand_written.event(secs, 'worker:0', 'dropping', pid=pid, **details)


def test_processes_are_added():
  events = [_event(1, 1, n=2), _event(2, 1, n=5), _event(3, 1),
            _event(4, 2, n=0), _event(5, 2, n=4), _event(6, 2, n=1)]
  start = hand_written.START
  # 2, +3; another process +0, +4; and a counter that began anew, +1.
  assert series.running(events, 'n') == [
      (start + 1, 2), (start + 2, 5), (start + 4, 5), (start + 5, 9),
      (start + 6, 10)]
  assert series.total(events, 'n') == 10


def test_a_process_that_counts_further_than_the_one_before_adds_all():
  assert series.total([_event(1, 1, n=3), _event(2, 2, n=8)], 'n') == 11


def test_a_container_has_the_pid_of_the_one_before():
  killed = hand_written.event(3, 'worker:0', 'coming_back', what='process')
  assert series.total([_event(1, 1, n=3), killed, _event(4, 1, n=8)], 'n') == 11


def test_nothing_counted_is_none():
  assert series.total([_event(1, 1)], 'n') == 0
