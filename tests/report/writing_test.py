# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The numbers, the trace and the page; the first two without plotly."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.report import hand_written
from tfplugin.report import writing
from tfplugin.report.reading import run_data


def test_all_files_are_written(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  files = writing.write(tmp_path)
  assert {name: str(path) for name, path in files.items()} == {
      name: f'{tmp_path}/report/{name}'
      for name in ('report.json', 'trace.json', 'report.html')}
  report = json.loads(files['report.json'].read_text())
  assert report['speed']['redone_steps'] == 0
  assert '<section id="settings">' in files['report.html'].read_text()


def test_without_plotly_the_numbers_are_written(tmp_path, monkeypatch):
  hand_written.write_chaos_run(tmp_path)
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(RuntimeError, match=r"pip install 'tfplugin\[report\]'"):
    writing.write(tmp_path, tmp_path / 'out')
  assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == [
      'report.json', 'trace.json']


def test_numbers_and_trace_load_no_plotly(tmp_path):
  hand_written.write_run_of_all_panels(tmp_path)
  program = f"""
import sys
sys.modules['plotly'] = None  # An import of it fails.
from tfplugin.report import writing
writing.write_numbers({str(tmp_path)!r})
"""
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120,
                 env={'PYTHONPATH': ':'.join(filter(None, sys.path))})
  assert (tmp_path / 'report' / 'report.json').exists()


def test_each_section_is_json_and_says_what_is_missing(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  report = writing.measure(run_data.read(tmp_path))
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
  json.dumps(writing.measure(run_data.read(tmp_path)), allow_nan=False)


def test_spans_marks_and_counters_of_each_task(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  made = writing.make_trace(writing.measure(run_data.read(tmp_path)))
  events = made['traceEvents']
  names = {e['args']['name']: e['pid'] for e in events
           if e['name'] == 'process_name'}
  assert names == {'chief:0': 1, 'worker:0': 2}
  # Times are in microseconds.
  assert {'ph': 'X', 'pid': 2, 'tid': 1, 'name': 'dead', 'cat': 'state',
          'ts': 13e6, 'dur': 7e6, 'args': {}} in events
  assert [e['args']['on'] for e in events if e['name'] == 'waiting'] == [
      'chief:0']
  fault, = (e for e in events if e['name'] == 'fault')
  assert (fault['ph'], fault['ts'], fault['args']['step']) == ('i', 13e6, 66)
  counters = [(e['ts'], e['args']['global step']) for e in events
              if e['ph'] == 'C' and e['name'] == 'global step'
              and e['pid'] == 1]
  assert counters == [(5e6, 1.0), (35e6, 200.0)]
  # A gap of a curve is no value of a counter.
  assert all(None not in e['args'].values() for e in events
             if e['ph'] == 'C')
