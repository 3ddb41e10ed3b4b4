# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""States and marks of tasks whose events are known."""

import pytest

from tests.report import hand_written
from tfplugin.report import timeline
from tfplugin.report.reading import run_data

event = hand_written.event


def _spans(tmp_path, *events, task='worker:0'):
  hand_written.write_events(tmp_path, *events)
  told = timeline.spans_of(run_data.read(tmp_path))
  return [(s.state, s.start, s.end) for s in told[task]]


def test_a_worker_that_is_killed_and_comes_back(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  section = timeline.measure(run_data.read(tmp_path))
  worker = section['tasks']['worker:0']
  assert [(s['state'], s['start'], s['end']) for s in worker['spans']] == [
      ('starting', 0, 2), ('waiting', 2, 5), ('starting', 5, 7),
      ('training', 7, 13), ('dead', 13, 20), ('starting', 20, 25),
      ('training', 25, 35), ('ending', 35, 36)]
  assert worker['spans'][1]['on'] == ('chief:0',)
  assert [(m['kind'], m['time'], m['step']) for m in worker['marks']] == [
      ('fault', 13, 66), ('restart', 20, 66), ('end', 36, None)]
  assert worker['processes'] == 2
  chief = section['tasks']['chief:0']
  assert [(s['state'], s['start'], s['end']) for s in chief['spans']] == [
      ('starting', 0, 5), ('training', 5, 15), ('saving', 15, 16),
      ('training', 16, 35), ('ending', 35, 40)]
  assert chief['marks'][0] == {'kind': 'checkpoint', 'time': 15, 'step': 80,
                               'text': 'checkpoint of step 80'}
  assert section['wall_secs'] == 40


def test_a_program_with_the_hook_alone_does_not_die_at_its_end(tmp_path):
  trained = [event(0, 'worker:0', 'training', 'begin'),
             event(9, 'worker:0', 'training', 'end', ends_task=True)]
  others = event(40, 'chief:0', 'training')
  assert _spans(tmp_path, *trained, others) == [('training', 0, 9)]
  # The same process trains again, and then another one.
  hand_written.write_events(
      tmp_path, *(one._replace(time=one.time + 15) for one in trained),
      event(29, 'worker:0', 'starting', 'begin', pid=2))
  assert _spans(tmp_path) == [
      ('training', 0, 9), ('ending', 9, 15), ('training', 15, 24),
      ('starting', 29, 40)]


def test_without_a_fault_it_is_dead_from_its_last_word_on(tmp_path):
  assert _spans(
      tmp_path, event(0, 'worker:0', 'training', 'begin'),
      event(5, 'worker:0', 'training'),
      event(9, 'worker:0', 'coming_back', pid=2, what='process'),
      event(9, 'worker:0', 'starting', 'begin', pid=2),
      event(11, 'worker:0', 'dying', pid=2, error='ValueError'),
      event(12, 'worker:0', 'starting', 'begin', pid=3),
      event(13, 'worker:0', 'ended', pid=3)) == [
          ('training', 0, 5), ('dead', 5, 9), ('starting', 9, 11),
          ('dead', 11, 12), ('starting', 12, 13)]


def test_a_session_that_was_lost(tmp_path):
  assert _spans(
      tmp_path, event(0, 'worker:0', 'training', 'begin'),
      event(5, 'worker:0', 'training'),
      event(9, 'worker:0', 'coming_back', what='session', step=3),
      event(14, 'worker:0', 'training', 'end'),
      event(15, 'worker:0', 'ended')) == [
          ('training', 0, 5), ('session lost', 5, 9), ('training', 9, 14),
          ('ending', 14, 15)]


@pytest.mark.parametrize('end, state', [(15, 'training'), (16, 'silent')])
def test_who_tells_nothing_for_long_is_silent(tmp_path, end, state):
  spans = _spans(
      tmp_path, event(-5, 'worker:0', 'training', 'begin'),
      event(0, 'worker:0', 'training'), event(end, 'chief:0', 'ended'))
  assert spans[-1][0] == state and spans[-1][2] == end + 5


def test_a_worker_that_joined_is_dead_until_the_chief_tells_that_it_left(
    tmp_path):
  came = [event(0, 'chief:0', 'joined', worker='worker:0'),
          event(0, 'worker:0', 'training', 'begin'),
          event(5, 'worker:0', 'training')]
  gone = [event(9, 'chief:0', 'left', worker='worker:0'),
          event(50, 'chief:0', 'ended')]
  for name in '12':
    (tmp_path / name).mkdir()
  assert _spans(tmp_path / '1', *came, *gone) == [
      ('training', 0, 5), ('dead', 5, 9)]
  assert _spans(tmp_path / '2', *came, event(6, 'worker:0', 'stopped'),
                *gone) == [('training', 0, 6)]


def test_a_ps_serves_though_it_tells_nothing(tmp_path):
  begin = [event(0, 'ps:0', 'starting', 'begin'),
           event(1, 'ps:0', 'starting', 'end'),
           event(1, 'ps:0', 'waiting', 'begin', on=['chief:0'])]
  assert _spans(tmp_path, *begin, event(99, 'chief:0', 'ended'),
                task='ps:0') == [('starting', 0, 1), ('serving', 1, 99)]


@pytest.mark.parametrize('fault, spans', [
    ('kill ps:0 at step 5', [('serving', 1, 40), ('dead', 40, 50)]),
    ('terminate ps:0 at step 5', [('serving', 1, 40), ('dead', 40, 50)]),
    ('new_address ps:0 at step 5', [('serving', 1, 40), ('dead', 40, 50)]),
    ('upgrade ps:0 to python at step 5',
     [('serving', 1, 40), ('dead', 40, 50)]),
    ('stop ps:0 for 5 s at step 5', [('serving or dead', 1, 50)]),
    ('kill ps:1 at step 5', [('serving or dead', 1, 50)])])
def test_when_a_ps_died_is_known_of_a_fault_alone(tmp_path, fault, spans):
  assert _spans(
      tmp_path, event(0, 'ps:0', 'starting', 'begin'),
      event(1, 'ps:0', 'starting', 'end'),
      event(40, 'chief:0', 'injecting', fault=fault),
      event(50, 'ps:0', 'coming_back', pid=2, what='process'),
      event(50, 'ps:0', 'starting', 'begin', pid=2),
      event(51, 'ps:0', 'starting', 'end', pid=2),
      event(60, 'ps:0', 'ended', pid=2), task='ps:0') == [
          ('starting', 0, 1), *spans, ('starting', 50, 51), ('serving', 51, 60)]


def test_a_fault_is_marked_where_it_met(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'ps:0', 'starting', 'begin'),
      event(2, 'chief:0', 'injecting', fault='stop ps:0 for 2 s at step 5'))
  tasks = timeline.measure(run_data.read(tmp_path))['tasks']
  assert tasks['chief:0']['marks'] == []
  assert tasks['ps:0']['marks'][0]['text'] == 'stop ps:0 for 2 s at step 5'


def test_a_pause_between_runs_is_no_time_of_the_run(tmp_path):
  day = 86400.0
  assert _spans(
      tmp_path, event(0, 'worker:0', 'training', 'begin'),
      event(10, 'worker:0', 'training'),
      event(day, 'worker:0', 'coming_back', pid=2, what='process'),
      event(day, 'worker:0', 'starting', 'begin', pid=2),
      event(day + 5, 'worker:0', 'ended', pid=2)) == [
          ('training', 0, 10), ('starting', day, day + 5)]
