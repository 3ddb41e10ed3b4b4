# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run was told, on what it ran, and what went wrong."""

import json

from tests.report import hand_written
from tfplugin.report import settings
from tfplugin.report import timeline
from tfplugin.report.reading import run_data

event = hand_written.event


def test_all_that_is_told(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  hand_written.write_events(tmp_path, event(
      41, 'ps:0', 'dying', error='ValueError', message='why'))
  (tmp_path / 'summary.json').write_text(json.dumps({
      'error': 'ps:0 failed', 'tasks': [{
          'task': 'ps:0', 'status': 'failed', 'restarts': 1,
          'reasons': ['ended with status 1']}]}))
  with open(tmp_path / 'events/ps-0.jsonl', 'a') as file:
    file.write('{"version": 1, "ti')
  section = settings.measure(run_data.read(tmp_path))
  assert section['cluster'] == {'chief': 1, 'worker': 1, 'ps': 1}
  assert section['versions'] == {'tfplugin': ['0.0']}
  assert section['hosts'] == {'here': ['chief:0']}
  assert section['faults'] == ['kill worker:0 at step 66']
  assert section['deaths'] == [{'task': 'ps:0', 'time': 41.0,
                                'error': 'ValueError', 'message': 'why'}]
  assert section['error'] == 'ps:0 failed'
  assert section['ends']['ps:0']['restarts'] == 1
  assert section['settings']['staleness'] == 2
  assert section['num_torn_lines'] == 1 and section['missing'] == []


def test_a_stop_on_request_is_no_death(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=1),
      event(4, 'chief:0', 'stopping', signal='SIGTERM'),
      event(5, 'chief:0', 'stopped', signal='SIGTERM', step=9, saved_step=8))
  text = ('stopped on request at step 9, saved model.ckpt-8, the same command '
          'continues')
  (tmp_path / 'summary.json').write_text(json.dumps(
      {'error': text, 'tasks': []}))
  run = run_data.read(tmp_path)
  section = settings.measure(run)
  assert section['deaths'] == []
  assert settings.draw(section).missing[0] == f'The run was {text}.'
  told = timeline.measure(run)['tasks']['chief:0']
  assert [span['state'] for span in told['spans']] == ['training']
  assert [(mark['kind'], mark['text']) for mark in told['marks']] == [
      ('stop', 'asked to stop by SIGTERM'), ('stop', text)]


def test_a_join_and_a_leave_are_marks_of_the_worker(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=1),
      event(1, 'worker:7', 'training', 'begin', step=1),
      event(2, 'chief:0', 'joined', worker='worker:7'),
      event(3, 'chief:0', 'left', worker='worker:7'),
      # A worker without events of its own.
      event(4, 'chief:0', 'joined', worker='worker:8'))
  told = timeline.measure(run_data.read(tmp_path))['tasks']
  assert {task: [(mark['kind'], mark['text']) for mark in one['marks']]
          for task, one in told.items()} == {
              'chief:0': [('join', 'worker:8 is present')],
              'worker:7': [('join', 'worker:7 is present'),
                           ('leave', 'worker:7 is no longer present')]}


def test_what_is_missing_is_said(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  section = settings.measure(run_data.read(tmp_path))
  assert len(section['missing']) == 1
