# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The trace has the run's spans and marks in the format of Chrome's traces."""

from tests.report import hand_written
from tfplugin.report import contents
from tfplugin.report import trace
from tfplugin.report.reading import run_data


def test_spans_marks_and_counters_of_each_task(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  made = trace.make(contents.measure(run_data.read(tmp_path)))
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
