# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A line for each task says what matters most, however narrow it is."""

import io

import pytest
from rich import console

from tests.report import hand_written
from tfplugin.bin.processes import task_states
from tfplugin.bin.results import task_table
from tfplugin.events import record

event = hand_written.event
NOW = hand_written.START + 100


def _state(*events):
  state = task_states.State()
  for one in events:
    state.take(one)
  return state


def _told(secs, step, figures=None, counts=None):
  return record.Sample(hand_written.START + secs, step, 0.5, figures or {},
                        step, counts or {})


_TRAINING = event(90, 'chief:0', 'training', 'begin', step=50,
                  steps_per_sec=12.34)


def _line(task, *events, status=None, **kwargs):
  state = _state(*events)
  state.status = status
  line, = task_table.make_lines({task: state}, NOW, **kwargs)
  return line


@pytest.mark.parametrize('task, events, does', [
    ('chief:0', [], 'no events yet'),
    ('chief:0', [_TRAINING], 'training'),
    ('chief:0', [event(85, 'chief:0', 'training', 'begin')],
     'training, silent for 15 s'),
    ('chief:0', [_TRAINING, event(95, 'chief:0', 'saving', 'begin')], 'saving'),
    ('worker:1', [event(88, 'worker:1', 'waiting', 'begin', on=['chief:0'])],
     'waits for chief:0 (12 s)'),
    ('worker:1', [event(99, 'worker:1', 'coming_back', what='process')],
     'restarting'),
    ('worker:1', [event(9, 'worker:1', 'dying', error='OSError',
                        message='full\nof it')], 'failed: OSError: full'),
    ('worker:1', [event(9, 'worker:1', 'ended')], 'done'),
    ('chief:0', [event(9, 'chief:0', 'stopped', step=2240, saved_step=2239)],
     'stopped on request at step 2,240, saved model.ckpt-2239, the same command'
     ' continues'),
    ('ps:0', [event(1, 'ps:0', 'waiting', 'begin', on=['chief:0']),
              event(9, 'ps:0', 'stopped')], 'stopped on request'),
    ('ps:0', [event(1, 'ps:0', 'starting', 'begin')], 'starting'),
    ('ps:0', [event(1, 'ps:0', 'starting', 'begin'),
              event(2, 'ps:0', 'starting', 'end'),
              event(2, 'ps:0', 'waiting', 'begin', on=['chief:0'])], 'serving'),
    ('evaluator:0', [event(1, 'evaluator:0', 'starting', 'begin'),
                     event(2, 'evaluator:0', 'starting', 'end')], 'evaluating'),
])
def test_what_a_task_does_is_said_in_few_words(task, events, does):
  assert _line(task, *events).does == does


def test_how_a_process_ended_goes_before_what_it_told():
  assert _line('chief:0', _TRAINING, ends={
      'chief:0': 'was ended by SIGKILL'}).does == 'was ended by SIGKILL'


@pytest.mark.parametrize('secs, step', [(95, '60'), (85, '50')])
def test_the_newer_of_event_and_status_tells_the_step(secs, step):
  line = _line('chief:0', _TRAINING,
               status=_told(secs, 60))
  assert line.numbers['step'] == step
  assert task_table.step_of([line]) == int(step)


def test_figures_come_before_counts_and_the_loss():
  line = _line(
      'chief:0', _TRAINING,
      event(91, 'chief:0', 'dropping', num_dropped=5, num_applied=5),
      status=_told(95, 60, {'staleness': 2}, {'dropped': 6, 'applied': 18}))
  # The counts of the status are newer: 6 of 24.
  assert list(line.numbers.items()) == [
      ('step', '60'), ('steps/s', '12.3'), ('staleness', '2'),
      ('dropped', '25.0%'), ('loss', '0.5000')]
  told = _line('chief:0', _TRAINING, event(
      92, 'chief:0', 'exchanging', num_exchanges=4),
               status=_told(95, 60, {'elastic distance': 0.12345})).numbers
  assert (told['distance'], told['exchanges']) == ('0.123', '4')


def test_events_alone_tell_figures_and_a_status_tells_newer_ones():
  events = (_TRAINING, event(91, 'chief:0', 'dropping', num_dropped=5,
                             num_applied=15, staleness=3),
            event(91, 'chief:0', 'exchanging', num_exchanges=2, distance=0.25))
  assert list(_line('chief:0', *events).numbers.items()) == [
      ('step', '50'), ('steps/s', '12.3'), ('staleness', '3'),
      ('distance', '0.25'), ('dropped', '25.0%'), ('exchanges', '2')]
  told = _line('chief:0', *events, status=_told(
      95, 60, {'elastic distance': 0.5})).numbers
  assert (told['staleness'], told['distance']) == ('3', '0.5')


def test_before_the_first_step_there_are_no_numbers():
  line = _line('chief:0')
  assert not any(line.numbers.values())
  assert task_table.step_of([line]) == task_table.step_of([]) == 0


def _drawn(lines, width, height=20):
  out = io.StringIO()
  console.Console(file=out, width=width).print(
      task_table.draw(lines, width, height))
  drawn = [line.rstrip() for line in out.getvalue().splitlines()]
  assert all(len(line) <= width for line in drawn)
  return drawn


_LINES = [task_table.Line('worker:0', {
    'step': '12345', 'steps/s': '102.3', 'staleness': '3', 'dropped': '25.0%',
    'loss': '0.1234'}, 'waits for chief:0 (12 s)')]


@pytest.mark.parametrize('width, drawn', [
    (120, ['task      step steps/s staleness dropped   loss state',
           'worker:0 12345   102.3         3   25.0% 0.1234 '
           'waits for chief:0 (12 s)']),
    (40, ['task      step steps/s staleness state',
          'worker:0 12345   102.3         3 waits …']),
    (30, ['task      step steps/s state', 'worker:0 12345   102.3 waits …']),
    (18, ['task     state', 'worker:0 waits fo…'])])
def test_a_narrow_table_leaves_out_what_is_least_needed(width, drawn):
  assert _drawn(_LINES, width) == drawn


@pytest.mark.parametrize('height, shown', [(6, 5), (5, 3), (3, 1), (1, 0)])
def test_lines_that_do_not_fit_are_counted(height, shown):
  lines = [task_table.Line(f'worker:{i}', {}, 'training') for i in range(5)]
  drawn = _drawn(lines, 40, height)
  assert drawn[1:1 + shown] == [
      f'worker:{i} training' for i in range(shown)]
  assert drawn[1 + shown:] == ([] if shown == 5 else [f'{5 - shown} more'])
