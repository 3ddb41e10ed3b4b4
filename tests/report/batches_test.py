# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The balance of batches of runs whose batches were counted by hand."""

import pytest

from tests.report import hand_written
from tfplugin.report import batches
from tfplugin.report import speed
from tfplugin.report.reading import run_data

event = hand_written.event


def _training(secs, task, steps, num_steps, unit='batches', **details):
  """The first event of a task's training, one in between, and the last."""
  kinds = ['begin', 'instant', 'end']
  return [event(secs + at, task, 'training', kind, step=step, num_steps=number,
                **{'step_counts': unit} if at == 0 else {}, **details)
          for at, (kind, step, number) in enumerate(
              zip(kinds, steps, num_steps))]


def _balance(run_dir, *events):
  hand_written.write_events(run_dir, *sorted(events, key=lambda e: e.time))
  return speed.measure(run_data.read(run_dir))['batches']


def test_a_killed_worker_s_last_batches_are_what_others_leave(tmp_path):
  begin = event(0, 'chief:0', 'starting', 'end', step=10)
  killed = event(6.5, 'worker:0', 'injecting', fault='kill worker:0 at step 60')
  found = _balance(
      tmp_path, begin, *_training(5, 'chief:0', [11, 40, 110], [1, 20, 60]),
      *_training(5, 'worker:0', [12, 40, 0], [1, 12, 0])[:2], killed,
      event(7.0, 'chief:0', 'dropping', num_dropped=3, num_applied=57))
  # The step rose by 100, and the chief made 57 of these.
  assert found == {
      'unit': 'batches', 'made': {'chief:0': 60, 'worker:0': 12},
      'unreported': 31, 'kept': 100, 'dropped': {'chief:0': 3, 'worker:0': 0},
      'undone': 0, 'lost': {'worker:0': ['kill worker:0 at step 60']}}
  rows = batches.tables(found)[0].rows
  assert [row[1] for row in rows] == ['72', '31', '100', '3', '0', '1']
  assert rows[-1][2] == 'worker:0: kill worker:0 at step 60'


def test_what_a_restore_has_undone_is_seen_in_the_steps_of_the_tasks(tmp_path):
  session = event(6.5, 'chief:0', 'coming_back', what='session', step=20)
  found = _balance(
      tmp_path, event(0, 'chief:0', 'starting', 'end', step=0), session,
      *_training(5, 'chief:0', [1, 30, 100], [1, 20, 80]),
      *_training(5, 'worker:0', [2, 30, 100], [1, 10, 42]))
  # The last event before it was of step 30; 122 were made, 22 undone.
  assert (found['kept'], found['undone'], found['unreported']) == (100, 22, 0)
  assert found['lost'] == {'chief:0': ['session lost']}
  twice = {**found, 'lost': {'chief:0': ['session lost'] * 2}}
  assert (batches.tables(twice)[0].rows[-1][1:] ==
          ('2', 'chief:0: session lost (2 times)'))
  # A task that lost its session tells of its batches later.
  assert [row[2] for row in batches.tables(found)[0].rows[1::4]] == [
      '', 'chief:0: session lost']


def test_after_both_each_is_at_least_what_is_known(tmp_path):
  found = _balance(
      tmp_path, event(0, 'chief:0', 'starting', 'end', step=0),
      event(6.5, 'chief:0', 'coming_back', what='session', step=20),
      *_training(5, 'chief:0', [1, 30, 100], [1, 20, 80]),
      *_training(5, 'worker:0', [2, 30, 100], [1, 10, 42])[:2],
      event(6.9, 'worker:0', 'dying', error='OSError'))
  assert (found['undone'], found['unreported']) == (10, 20)
  assert found['lost']['worker:0'] == ['OSError']


@pytest.mark.parametrize('unit, kept', [('rounds', 200), ('exchanges', 100)])
def test_each_unit_of_the_global_step(tmp_path, unit, kept):
  found = _balance(
      tmp_path, event(0, 'chief:0', 'starting', 'end', step=0),
      *(one for task in ('chief:0', 'worker:0')
        for one in _training(5, task, [1, 50, 100], [1, 50, 100], unit)),
      *(event(8, task, 'exchanging', num_exchanges=50)
        for task in ('chief:0', 'worker:0')))
  assert (found['kept'], sum(found['made'].values())) == (kept, kept)
  assert (found['undone'], found['unreported'], found['lost']) == (0, 0, {})


def _session(number, secs, tasks, begin, end):
  """The events of a session of synchronous tasks."""
  trained = [(0, 'starting', 'end', {'step': begin}),
             (0, 'training', 'begin', {
                 'step': begin + 1, 'num_steps': 1, 'step_counts': 'rounds'}),
             (9, 'training', 'end', {
                 'step': end, 'num_steps': end - begin})]
  return [event(secs + at, task, name, kind, pid=number, **details)._replace(
      session=number) for task in tasks for at, name, kind, details in trained]


_FOUR = ['chief:0', 'worker:0', 'worker:1', 'worker:2']


def test_a_round_has_a_batch_of_each_task_of_its_session(tmp_path):
  found = _balance(tmp_path, *_session(1, 0, _FOUR, 0, 100),
                   *_session(2, 20, _FOUR[:2], 100, 200))
  assert sum(found['made'].values()) == found['kept'] == 400 + 200
  assert (found['undone'], found['unreported']) == (0, 0)


def test_a_session_that_begins_behind_undoes_batches_of_the_one_before(
    tmp_path):
  found = _balance(tmp_path, *_session(1, 0, _FOUR, 0, 100),
                   *_session(2, 20, _FOUR[:2], 80, 200))
  # 80 rounds of four and 120 of two are kept; 20 rounds of four are not.
  assert (found['kept'], found['undone'], found['unreported']) == (560, 80, 0)


def test_steps_that_no_task_reported_are_of_the_session_that_made_them(
    tmp_path):
  found = _balance(tmp_path, *_session(1, 0, _FOUR, 0, 90),
                   *_session(2, 20, _FOUR[:2], 100, 200))
  assert (found['kept'], found['undone'], found['unreported']) == (600, 0, 40)


def test_events_without_the_unit_have_no_balance(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  found = speed.measure(run_data.read(tmp_path))['batches']
  assert found is None and batches.tables(found) == []
