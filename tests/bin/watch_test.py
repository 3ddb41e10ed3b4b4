# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program shows a run that is over, and ends."""

from __future__ import annotations

import io

import pytest
from absl import app
from absl.testing import flagsaver
from rich import console

from tests.report import hand_written
from tfplugin.bin import run_files
from tfplugin.bin import watch

event = hand_written.event
START = hand_written.START


def test_a_run_that_is_over_is_shown_once(tmp_path, capsys):
  hand_written.write_chaos_run(tmp_path)
  watch.main(['program', str(tmp_path)])
  assert capsys.readouterr().out.splitlines() == [
      'task      step  steps/s  figures                     state',
      'chief:0   200   6.0      staleness 1, dropped 0.0%   done',
      'worker:0  200   2.0      staleness 1, dropped 25.0%  done']


def test_a_run_that_goes_on_is_shown_once_if_asked(tmp_path, capsys):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'worker:0', 'waiting', 'begin',
                                   on=['chief:0']))
  with flagsaver.flagsaver(once=True):
    watch.main(['program', str(tmp_path)])
  assert 'waits for chief:0' in capsys.readouterr().out


@pytest.mark.parametrize('paths', [(), ('a', 'b')])
def test_one_path_is_needed(paths):
  with pytest.raises(app.UsageError, match='one path, RUN_DIR'):
    watch.main(['program', *paths])


def test_rows_follow_the_events(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=1),
      event(5, 'chief:0', 'training', step=51, steps_per_sec=10.04),
      event(5, 'chief:0', 'exchanging', step=51, num_exchanges=5,
            distance=0.25))
  shown = watch.Watch(str(tmp_path))
  assert watch.rows(shown.states, START + 8) == [
      ('chief:0', '51', '10.0', 'distance 0.25, exchanges 5',
       'is training, step 51; its last event came 3 s ago')]
  hand_written.write_events(
      tmp_path, event(9, 'worker:0', 'dying', error='ValueError',
                      message='why\nmore'))
  shown.update()
  assert watch.rows(shown.states, START + 9)[1] == (
      'worker:0', '', '', '', 'failed: ValueError: why')
  assert not shown.is_over(START + 9)


def test_a_run_is_over_when_all_that_train_have_ended(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'ps:0', 'starting', 'begin'),
                            event(5, 'chief:0', 'ended'))
  assert watch.Watch(str(tmp_path)).is_over(START + 9)


@pytest.mark.parametrize('end', [
    ('training', dict(step=7)), ('dying', dict(error='E', message='m'))])
def test_a_task_is_lost_that_is_silent_when_the_chief_is_done(tmp_path, end):
  name, details = end
  hand_written.write_events(tmp_path, event(5, 'worker:0', name, **details),
                            event(5, 'worker:1', 'ended'),
                            event(5, 'chief:0', 'training', step=7))
  shown = watch.Watch(str(tmp_path))
  assert not shown.is_over(START + 99)
  hand_written.write_events(tmp_path, event(6, 'chief:0', 'ended'))
  shown = watch.Watch(str(tmp_path))
  assert not shown.is_over(START + 7)
  assert shown.is_over(START + 25)


def _over(run_dir, secs):
  return watch.Watch(str(run_dir)).is_over(START + secs)


def test_a_server_that_starts_first_is_no_run_that_is_over(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'ps:0', 'starting', 'begin'))
  assert not watch.Watch(str(tmp_path)).is_over(START + 99)


def test_a_program_with_the_hook_alone_ends_with_its_training(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=1),
      event(9, 'chief:0', 'training', 'end', step=7, ends_task=True))
  assert watch.rows(watch.Watch(str(tmp_path)).states, START + 9)[0][-1] == (
      'done')
  # It may train again.
  assert not _over(tmp_path, 10)
  assert _over(tmp_path, 99)
  hand_written.write_events(
      tmp_path, event(50, 'chief:0', 'starting', 'begin'))
  assert not _over(tmp_path, 99)


def test_the_ends_of_an_earlier_session_are_none_of_a_launch(
    tmp_path, monkeypatch):
  old = [event(5, task, 'ended') for task in ('chief:0', 'worker:0')]
  hand_written.write_events(tmp_path, *old)
  monkeypatch.setattr(run_files.clock, 'now', lambda: START + 60)
  monkeypatch.setattr(run_files.clock, 'not_before', lambda time: None)
  with run_files.reserved(tmp_path):
    assert not _over(tmp_path, 99)
    hand_written.write_events(
        tmp_path, event(70, 'worker:0', 'ended')._replace(session=2))
    assert not _over(tmp_path, 99)
    hand_written.write_events(
        tmp_path, event(70, 'chief:0', 'ended')._replace(session=2))
    assert _over(tmp_path, 99)


def test_a_launch_that_ends_early_leaves_the_earlier_ends(tmp_path):
  hand_written.write_events(tmp_path, event(5, 'chief:0', 'ended'))
  with pytest.raises(ValueError, match='no logs'):
    with run_files.reserved(tmp_path):
      raise ValueError('no logs')
  assert _over(tmp_path, 99)


def test_a_launch_that_failed_is_over(tmp_path, monkeypatch):
  hand_written.write_events(
      tmp_path, event(5, 'worker:0', 'training', step=7),
      event(5, 'chief:0', 'dying', error='E', message='m'))
  # Something else may restart the chief.
  assert not _over(tmp_path, 99)
  monkeypatch.setattr(run_files.clock, 'not_before', lambda time: None)
  monkeypatch.setattr(run_files.clock, 'now', lambda: START)
  with run_files.reserved(tmp_path):
    assert not _over(tmp_path, 99)
  assert _over(tmp_path, 99)


def test_a_run_that_was_stopped_is_over_and_nobody_has_died(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'ps:0', 'waiting', 'begin', on=['chief:0']),
      event(5, 'ps:0', 'stopped', signal='SIGTERM'),
      event(5, 'chief:0', 'stopped', signal='SIGTERM', step=7, saved_step=7))
  shown = watch.Watch(str(tmp_path))
  assert shown.is_over(START + 9)
  assert [row[-1] for row in watch.rows(shown.states, START + 9)] == [
      'stopped on request at step 7, saved model.ckpt-7, the same command '
      'continues', 'stopped on request']


@pytest.mark.parametrize('width, heading', [
    (20, 'task     step state'),
    (120, 'task     step steps/s staleness dropped   loss state')])
def test_a_terminal_has_a_table_that_fits(tmp_path, width, heading):
  hand_written.write_chaos_run(tmp_path)
  out = io.StringIO()
  watch.follow_live(
      watch.Watch(str(tmp_path)),
      console.Console(file=out, force_terminal=True, width=width,
                      color_system=None))
  # The last one stays.
  lines = [line.rstrip() for line in out.getvalue().split('\033[2K')[-1].split(
      '\n')]
  assert lines[1] == heading
  assert lines[2].startswith('chief:0   200') and lines[2].endswith('done')


def test_the_last_table_has_the_whole_end(tmp_path):
  hand_written.write_events(tmp_path, event(
      5, 'chief:0', 'stopped', signal='SIGTERM', step=7, saved_step=7))
  out = io.StringIO()
  watch.follow_live(watch.Watch(str(tmp_path)), console.Console(
      file=out, force_terminal=True, width=40, color_system=None))
  _, _, first, *others = out.getvalue().split('\033[2K')[-1].splitlines()
  said = ' '.join([first.removeprefix('chief:0'), *others]).split()
  assert ('stopped on request at step 7, saved model.ckpt-7, the same command '
          'continues') in ' '.join(said)


def test_the_last_step_is_that_of_the_settings(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  shown = watch.Watch(str(tmp_path))
  assert shown.steps is None
  hand_written.write_options(tmp_path, steps=300)
  assert shown.steps == 300
  # The second sample of each.
  assert {task: (last.step, last.figures)
          for task, last in ((task, state.status) for task, state
                             in shown.states.items())} == {
              'chief:0': (180, {'staleness': 1}),
              'worker:0': (185, {'staleness': 1})}


def test_settings_in_pieces_are_read_once_they_are_whole(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  (tmp_path / 'train_options.json').write_text('{"steps": 3')
  shown = watch.Watch(str(tmp_path))
  assert shown.steps is None
  hand_written.write_options(tmp_path, steps=300)
  assert shown.steps == 300


def test_a_program_of_ones_own_has_no_settings(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'starting', 'begin'))
  shown = watch.Watch(str(tmp_path))
  assert shown.steps is None and shown.states['chief:0'].status is None
  # It tells its last step with its first one.
  hand_written.write_events(
      tmp_path, event(1, 'chief:0', 'training', 'begin', step=1, max_steps=70))
  shown.update()
  assert shown.steps == 70


@pytest.mark.parametrize('details, told', [
    (dict(num_dropped=1, num_applied=3, staleness=2), 'staleness 2, '
     'dropped 25.0%'),
    (dict(num_dropped=0, num_applied=0), ''),
    (dict(num_exchanges=7), 'exchanges 7')])
def test_what_a_wrapper_tells(tmp_path, details, told):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'dropping', step=1, **details))
  row, = watch.rows(watch.Watch(str(tmp_path)).states, START)
  assert row[3] == told


@pytest.mark.parametrize('once, name', [(True, '.'), (False, 'none')])
def test_a_directory_without_a_run_is_refused(tmp_path, once, name):
  with flagsaver.flagsaver(once=once):
    with pytest.raises(ValueError, match='RUN_DIR: no '):
      watch.main(['program', str(tmp_path / name)])


def test_a_run_that_has_just_started_is_waited_for(
    tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(watch.time, 'sleep',
                      lambda secs: hand_written.write_chaos_run(tmp_path))
  watch.main(['program', str(tmp_path)])
  said, headings, *_ = capsys.readouterr().out.splitlines()
  assert said.startswith('RUN_DIR: no events in ')
  assert said.endswith('Waits for the first event; Ctrl-C ends the program.')
  assert headings.startswith('task ')


def test_ctrl_c_says_that_the_run_goes_on(tmp_path, monkeypatch):
  def interrupt(unused_secs):
    raise KeyboardInterrupt

  monkeypatch.setattr(watch.time, 'sleep', interrupt)
  with pytest.raises(KeyboardInterrupt, match='ended, not the run'):
    watch.main(['program', str(tmp_path)])


def test_a_worker_that_joined_and_died_does_not_keep_it_waiting(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'joined', worker='worker:3'),
      event(1, 'worker:3', 'training', step=4), event(5, 'chief:0', 'ended'))
  shown = watch.Watch(str(tmp_path))
  assert not shown.is_over(START + 9)
  hand_written.write_events(
      tmp_path, event(6, 'chief:0', 'left', worker='worker:3'),
      event(7, 'chief:0', 'ended'))
  shown.update()
  assert shown.is_over(START + 9)
  assert watch.rows(shown.states, START + 9)[1][-1].endswith('died')
