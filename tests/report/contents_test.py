# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""report.json has a section for each panel, and says what it lacks."""

import json

from tests.report import hand_written
from tfplugin.report import contents
from tfplugin.report.reading import run_data


def test_each_section_is_json_and_says_what_is_missing(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  report = contents.measure(run_data.read(tmp_path))
  assert report['version'] == 1 and report['run_dir'] == str(tmp_path)
  assert list(report)[2:] == [
      'outcome', 'timeline', 'speed', 'staleness', 'elastic', 'losses',
      'traffic', 'clipping', 'settings']
  assert all(isinstance(report[name]['missing'], list)
             for name in list(report)[3:])
  json.dumps(report, allow_nan=False)


def test_one_event_is_enough(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'))
  json.dumps(contents.measure(run_data.read(tmp_path)), allow_nan=False)
