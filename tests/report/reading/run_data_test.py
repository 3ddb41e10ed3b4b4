# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""All the files of a run are read once."""

import pytest

from tests.report import hand_written
from tfplugin.report.reading import run_data

event = hand_written.event


def test_tasks_are_in_their_order(tmp_path):
  names = ['worker:10', 'evaluator:0', 'ps:0', 'worker:2', 'chief:0']
  hand_written.write_events(tmp_path, *(
      event(secs, task, 'ended') for secs, task in enumerate(names)))
  run = run_data.read(tmp_path)
  assert list(run.events_of) == ['chief:0', 'worker:2', 'worker:10', 'ps:0',
                                 'evaluator:0']
  assert run.training_tasks == ['chief:0', 'worker:2', 'worker:10']
  assert (run.start, run.end - run.start) == (hand_written.START, 4.0)


@pytest.mark.parametrize('options, technique', [
    ({}, None),
    ({'wrapper': 'towers', 'strategy': 'none'}, 'towers'),
    ({'wrapper': 'tower'}, 'towers'),  # Of an earlier version.
    ({'wrapper': 'none', 'strategy': 'drop_stale'}, 'drop_stale')])
def test_the_technique_is_wrapper_or_strategy(tmp_path, options, technique):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  hand_written.write_options(tmp_path, **options)
  assert run_data.read(tmp_path).technique_in(1) == technique


def test_settings_that_are_being_written_are_none(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  (tmp_path / 'train_options.json').write_text('{"wrapper": "to')
  (tmp_path / 'summary.json').write_text('[]')
  run = run_data.read(tmp_path)
  assert (run.options, run.summary) == ({}, {})


def test_a_directory_without_events_is_refused(tmp_path):
  with pytest.raises(ValueError, match=(
      rf'RUN_DIR: no events in {tmp_path}/events.*EventsHook')):
    run_data.read(tmp_path)


def test_warnings_are_counted_without_those_about_deprecation(tmp_path):
  (tmp_path / 'logs').mkdir()
  (tmp_path / 'logs/worker-1.log').write_text('''\
I1122 18:55:53.123456 1 a.py:1] fine
W1122 18:55:53.123456 139 hook.py:12] slow disk
W1122 18:55:54.123456 139 hook.py:12] slow disk
WARNING:tensorflow:From a.py: f is deprecated and will be removed
ERROR:tensorflow:no session
WARNING:tensorflow:=====
WARNING:tensorflow:step 4 after step 3
WARNING:tensorflow:step 19 after step 19
WARNING:tensorflow:step 20 after step 20
2026-11-22 19:02:25.422060: W tensorflow/core/x.cc:182] no GPU
    W is not the beginning of this line
''')
  assert [tuple(warning.values())
          for warning in run_data.read_warnings(tmp_path)] == [
      ('worker:1', 'step 4 after step 3', 3), ('worker:1', 'slow disk', 2),
      ('worker:1', 'no session', 1), ('worker:1', 'no GPU', 1)]


def test_a_run_without_logs_has_no_warnings(tmp_path):
  assert run_data.read_warnings(tmp_path) == []
