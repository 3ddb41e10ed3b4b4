# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchanges and saves whose times are known."""

import pytest

from tests.report import hand_written
from tfplugin.report import traffic
from tfplugin.report.reading import run_data

event = hand_written.event


def test_exchanges_and_the_times_of_saves(tmp_path):
  saves = [(0, 1), (10, 12), (20, 26)]
  hand_written.write_events(
      tmp_path, *(event(secs, 'chief:0', 'saving', kind) for save in saves
                  for secs, kind in zip(save, ('begin', 'end'))),
      event(30, 'worker:0', 'exchanging', num_exchanges=3),
      event(35, 'worker:0', 'exchanging', num_exchanges=7))
  section = traffic.measure(run_data.read(tmp_path))
  assert section['num_exchanges'] == 7
  assert section['exchanges']['worker:0']['count']['y'] == [3, 7]
  # 1, 2 and 6 s: the middle one; 0.9 of the way from it to the last.
  assert section['saves'] == {
      'num': 3, 'p50_secs': 2.0, 'p95_secs': pytest.approx(2 + 0.9 * 4),
      'max_secs': 6.0}


def test_what_is_missing_is_said(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  section = traffic.measure(run_data.read(tmp_path))
  assert section['saves']['p50_secs'] is None
  assert 'ProfilerHook' in section['missing'][1]
