# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of following what tasks do."""

import os

import pytest

from tests.report import hand_written
from tfplugin.bin.processes import task_states
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import record


def test_states_follow_the_events_from_now_on(tmp_path):
  log = event_log.EventLog(tmp_path, 'worker:0')
  log.write('training', 'begin', step=500)  # Of an earlier run.
  states = task_states.TaskStates(tmp_path, ['worker:0', 'ps:0'])
  states.update()
  worker, ps = states.states['worker:0'], states.states['ps:0']
  assert (worker.last, worker.step, worker.waits_on) == (None, None, [])
  moved = states.moved
  log.write('starting', 'begin')
  log.write('waiting', 'begin', on=['chief:0', 'ps:0'])
  states.update()
  assert worker.waits_on == ['chief:0', 'ps:0']
  assert (worker.doing, ps.doing) == ('waiting', '')
  assert worker.describe(worker.last.time + 12) == (
      'waits for chief:0, ps:0 (12 s)')
  assert states.moved == moved
  log.write('waiting', 'end')
  log.write('starting', 'end', step=7)
  log.write('training', 'begin', step=8)
  log.write('exchanging', step=8)
  states.update()
  assert states.moved > moved
  assert (worker.step, worker.doing) == (8, 'training')
  assert worker.describe(worker.last.time + 3) == (
      'is training, step 8; its last event came 3 s ago')
  assert ps.describe(0.0) == 'has written no events'


@pytest.mark.parametrize('ahead', [-3600.0, 3600.0])
def test_the_clock_of_another_machine_may_differ(tmp_path, monkeypatch, ahead):
  states = task_states.TaskStates(tmp_path, ['worker:0'])
  now = clock.now()
  with monkeypatch.context() as there:
    there.setattr(clock, 'now', lambda: now + ahead)
    event_log.EventLog(tmp_path, 'worker:0').write('waiting', 'begin',
                                                   on=['chief:0'])
  monkeypatch.setattr(clock, 'now', lambda: now)
  states.update()
  assert states.states['worker:0'].describe(now + 12) == (
      'waits for chief:0 (12 s)')


def test_a_time_to_come_is_now(tmp_path):
  log = event_log.EventLog(tmp_path, 'worker:0')
  log.write('training', step=8)
  states = task_states.TaskStates(tmp_path, ['worker:0'], from_start=True)
  states.update()
  state = states.states['worker:0']
  assert state.describe(state.last.time - 3600) == (
      'is training, step 8; its last event came 0 s ago')


@pytest.mark.parametrize('next_pid', [1, 2])
def test_a_new_process_has_begun_nothing(next_pid):
  state = task_states.State()
  for pid, name, kind in ((1, 'saving', 'begin'),
                          (next_pid, 'starting', 'begin')):
    state.take(record.Event(1.0, pid, 'chief:0', name, kind, {}))
  assert list(state.open) == ['starting']


def test_the_goal_is_what_was_told_last():
  states = {'ps:0': task_states.State(), 'chief:0': task_states.State(),
            'worker:0': task_states.State()}
  assert task_states.goal(states) is None
  for time, pid, task, goal in ((9.0, 1, 'chief:0', 500),
                                (20.0, 3, 'worker:0', 100)):
    states[task].take(record.Event(time, pid, task, 'training', 'begin',
                                   {'max_steps': goal}))
  assert task_states.goal(states) == 100
  # Of a new process nothing is known yet.
  states['worker:0'].take(
      record.Event(30.0, 4, 'worker:0', 'starting', 'begin', {}))
  assert task_states.goal(states) == 500


def test_a_line_in_pieces_is_read_once_it_is_whole(tmp_path):
  path = event_files.path_of(tmp_path, 'ps:0')
  path.parent.mkdir()
  states = task_states.TaskStates(tmp_path, ['ps:0'])
  line = record.encode(record.Event(1.0, os.getpid(), 'ps:0', 'saving',
                                    'instant', {'step': 5}))
  for end in range(0, len(line), 10):
    path.write_bytes(b'torn\n' + line[:end])
    states.update()
    assert states.states['ps:0'].step is None
  path.write_bytes(b'torn\n' + line)
  states.update()
  assert states.states['ps:0'].step == 5


def test_events_that_cannot_be_read_are_read_later(tmp_path):
  states = task_states.TaskStates(tmp_path)
  path = event_files.path_of(tmp_path, 'ps:0')
  path.mkdir(parents=True)  # As good as a file system that is away.
  states.update()
  path.rmdir()
  event_log.EventLog(tmp_path, 'ps:0').write('saving', step=5)
  states.update()
  assert states.states['ps:0'].step == 5


def test_without_a_model_dir_nothing_is_known():
  states = task_states.TaskStates(None, ['ps:0'])
  states.update()
  assert states.states['ps:0'].last is None


def _at(secs, task, name, **details):
  return record.Event(secs, 1, task, name, 'instant', details)


def test_workers_that_join_are_added_with_when_and_how_they_left(tmp_path):
  old = event_log.EventLog(tmp_path, 'worker:9')
  old.write('ended')  # Of an earlier run.
  states = task_states.TaskStates(tmp_path, ['chief:0'])
  path = event_files.path_of(tmp_path, 'worker:0')

  def write(task, *told):
    with open(event_files.path_of(tmp_path, task), 'ab') as file:
      file.writelines(map(record.encode, told))
    states.update()

  time_of = {secs: task_states.State(joined=secs).arrival[-8:]
             for secs in (10.0, 20.0, 30.0)}
  # The chief's file comes first, whatever the times.
  write('chief:0', *(_at(10.0, 'chief:0', 'joined', worker=f'worker:{i}')
                     for i in range(4)))
  for i in range(4):
    write(f'worker:{i}', _at(12.0, f'worker:{i}', 'training', step=5))
  assert list(states.states) == ['chief:0', *(f'worker:{i}' for i in range(4))]
  assert path.exists() and states.states['worker:0'].end == ''
  write('worker:0', _at(20.0, 'worker:0', 'stopped', signal='SIGTERM'))
  write('worker:1', _at(20.0, 'worker:1', 'ended'))
  write('chief:0', *(_at(30.0, 'chief:0', 'left', worker=f'worker:{i}')
                     for i in range(4)))
  came = f'joined {time_of[10.0]}, left'
  assert [states.states[f'worker:{i}'].end for i in range(4)] == [
      f'{came} {time_of[20.0]}: SIGTERM', f'{came} {time_of[20.0]}: done',
      f'{came} {time_of[30.0]}: died', f'{came} {time_of[30.0]}: died']
  # It was only slow.
  write('worker:2', _at(40.0, 'worker:2', 'training', step=9))
  write('chief:0', _at(40.0, 'chief:0', 'joined', worker='worker:2'))
  state = states.states['worker:2']
  assert (state.end, state.arrival) == ('', f'joined {time_of[10.0]}')
  assert states.states['worker:3'].describe(99.0).endswith('died')


def _read(path, task='chief:0'):
  states = task_states.TaskStates(path, [task], from_start=True)
  states.update()
  return states.states[task].status


def _status(time, **kwargs):
  return record.Sample(**{
      'time': time, 'step': 5, 'loss': 0.5, 'figures': {}, 'num_steps': 3,
      'counts': {}, **kwargs})


def _sample(secs, steps, dropped, pid=1, session=1):
  return hand_written.event(
      secs, 'chief:0', 'sampling', pid=pid, step=100, num_steps=steps, loss=1.0,
      figures={}, counts={'dropped': dropped})._replace(session=session)


def test_the_processes_of_a_session_add_up(tmp_path):
  samples = task_states.State()
  told = []
  for sample in (_sample(1, 1, 0), _sample(2, 50, 4),
                 # It was killed, and started again twice.
                 _sample(9, 1, 1, pid=2), _sample(10, 30, 2, pid=2),
                 _sample(20, 5, 1, pid=3)):
    samples.take(sample)
    told.append((samples.status.num_steps, samples.status.counts['dropped']))
  assert told == [(1, 0), (50, 4), (51, 5), (80, 6), (85, 7)]
  assert samples.status.first_time == hand_written.START + 1


def test_a_container_has_the_pid_of_the_one_before(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'),
      _sample(1, 3, 2), hand_written.event(
          9, 'chief:0', 'coming_back', what='process'), _sample(9, 5, 4))
  assert (_read(tmp_path).num_steps, _read(tmp_path).counts) == (
      8, {'dropped': 6})


def test_counts_of_a_session_that_was_lost_add_up():
  """The process goes on: its steps count on, and its drops begin anew."""
  samples = task_states.State()
  for sample in (_sample(1, 10, 4), _sample(2, 50, 9), _sample(5, 60, 2),
                 _sample(6, 70, 3)):
    samples.take(sample)
  assert samples.status.num_steps == 70
  assert samples.status.counts == {'dropped': 12}


def test_a_new_session_begins_at_nought(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'),
      _sample(1, 50, 4), hand_written.event(2, 'chief:0', 'ended'))
  assert _read(tmp_path).num_steps == 50
  hand_written.write_events(tmp_path, hand_written.event(
      9, 'chief:0', 'starting', 'begin', pid=2)._replace(session=2))
  assert _read(tmp_path) is None
  hand_written.write_events(tmp_path, _sample(10, 3, 1, pid=2, session=2))
  assert (_read(tmp_path).num_steps, _read(tmp_path).counts) == (
      3, {'dropped': 1})


def test_counts_add_up_and_figures_are_the_newest():
  combined = task_states.combine([
      _status(3.0, figures={'distance': 0.3}, counts={'dropped': 2}),
      _status(9.0, figures={'distance': 0.9}, counts={'dropped': 5}),
      _status(6.0, figures={'distance': 0.6}, counts={'dropped': 1})])
  assert combined == {'distance': 0.9, 'dropped': 8}
  assert task_states.combine([]) == {}
