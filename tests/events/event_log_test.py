# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of writing events."""

import json
import logging
import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import event_log


def _events(model_dir, task='worker:0'):
  return event_files.read_file(event_files.path_of(model_dir, task)).events


def _told(model_dir, task='worker:0'):
  return [(e.name, e.kind) for e in _events(model_dir, task)]


def test_an_event_is_in_the_file_at_once(tmp_path):
  log = event_log.EventLog(tmp_path, 'worker:0')
  log.write('training', 'begin', step=3)
  event, = _events(tmp_path)
  assert event[1:] == (os.getpid(), 'worker:0', 'training', 'begin',
                       {'step': 3}, 1)
  assert log.last_step == 3
  log.write('dying')
  assert len(_events(tmp_path)) == 2
  log.close()


def test_a_task_that_ends(tmp_path):
  with event_log.recording(tmp_path, 'worker:0') as log:
    assert event_log.current() is log
    with event_log.span('waiting', on=['chief:0']):
      pass
    event_log.write('training', step=8)
  assert event_log.current() is None
  assert _told(tmp_path) == [
      ('starting', 'begin'), ('waiting', 'begin'), ('waiting', 'end'),
      ('training', 'instant'), ('ended', 'instant')]
  assert _events(tmp_path)[1].details == {'on': ['chief:0']}
  assert _events(tmp_path)[-1].step == 8


def test_a_task_that_dies_and_comes_back_and_runs_again(tmp_path):
  with pytest.raises(ZeroDivisionError), \
      event_log.recording(tmp_path, 'worker:0'):
    event_log.write('training', step=8)
    event_log.write('saving', 'end')
    raise ZeroDivisionError('too small')
  assert _events(tmp_path)[-1].details == {
      'error': 'ZeroDivisionError', 'message': 'too small', 'step': 8}
  for _ in range(2):
    with event_log.recording(tmp_path, 'worker:0'):
      pass
  assert _told(tmp_path)[4:] == [
      ('coming_back', 'instant'), ('starting', 'begin'), ('ended', 'instant'),
      # Another run of the same task, whose work was done.
      ('starting', 'begin'), ('ended', 'instant')]
  back = _events(tmp_path)[4].details
  assert back['what'] == 'process' and back['step'] == 8
  assert 0 <= back['away_secs'] < 300


def _sessions(model_dir):
  return [event.session for event in _events(model_dir)
          if (event.name, event.kind) == ('starting', 'begin')]


def test_a_task_that_was_lost_goes_on_with_its_session(tmp_path):
  for _ in range(2):
    with event_log.recording(tmp_path, 'worker:0'):
      pass
  for _ in range(2):  # Killed: without a last word.
    event_log.EventLog(tmp_path, 'worker:0').write('starting', 'begin')
  with event_log.recording(tmp_path, 'worker:0'):
    pass
  with event_log.recording(tmp_path, 'worker:0'):
    pass
  assert _sessions(tmp_path) == [1, 2, 3, 3, 3, 4]


def test_the_launcher_knows_the_session(tmp_path, monkeypatch):
  for number in ('7', '7', '8'):
    monkeypatch.setenv(event_log.SESSION_VARIABLE, number)
    with event_log.recording(tmp_path, 'worker:0'):
      pass
  assert _sessions(tmp_path) == [7, 7, 8]
  assert [e.session for e in event_files.last_of_tasks(tmp_path)] == [8]
  assert event_files.last_of_tasks(tmp_path / 'none') == []


def test_a_process_begins_after_the_events_of_the_one_before(
    tmp_path, monkeypatch):
  """The host's clock was set back by an hour since."""
  monkeypatch.setenv(clock.VARIABLE, '')
  before = clock.now() + 3600
  with monkeypatch.context() as there:
    there.setattr(clock, 'now', lambda: before)
    event_log.EventLog(tmp_path, 'worker:0').write('starting', 'begin')
  with event_log.recording(tmp_path, 'worker:0'):
    pass
  times = [e.time for e in _events(tmp_path)]
  assert times == sorted(times)
  assert times[-1] == pytest.approx(before, abs=30)


@pytest.mark.parametrize('error, signal_name', [
    (KeyboardInterrupt(), 'SIGINT'), (SystemExit(143), 'SIGTERM')])
def test_a_task_that_is_told_to_end_does_not_die(tmp_path, error, signal_name):
  with pytest.raises(type(error)), event_log.recording(tmp_path, 'worker:0'):
    event_log.write('stopping', signal=signal_name)
    with event_log.span('saving', step=2239):
      pass
    event_log.write('training', 'end', step=2240)
    raise error
  last = _events(tmp_path)[-1]
  assert (last.name, last.details) == ('stopped', {
      'signal': signal_name, 'step': 2240, 'saved_step': 2239})
  # The next process continues, and does not come back from the dead.
  with event_log.recording(tmp_path, 'worker:0'):
    pass
  assert _sessions(tmp_path) == [1, 2]
  assert 'coming_back' not in [name for name, _ in _told(tmp_path)]


def test_a_task_that_was_stopped_alone_comes_back(tmp_path, monkeypatch):
  for number in ('1', '1', '2'):
    monkeypatch.setenv(event_log.SESSION_VARIABLE, number)
    with pytest.raises(SystemExit), event_log.recording(tmp_path, 'worker:0'):
      event_log.write('stopping', signal='SIGTERM')
      raise SystemExit(143)
  assert [(e.name, e.session) for e in _events(tmp_path)
          if e.name == 'coming_back'] == [('coming_back', 1)]


def test_an_exit_that_nobody_asked_for_is_a_death(tmp_path):
  with pytest.raises(SystemExit), event_log.recording(tmp_path, 'worker:0'):
    raise SystemExit(3)
  assert _told(tmp_path)[-1] == ('dying', 'instant')


def test_outside_of_a_recording_nothing_is_written():
  event_log.write('training', step=1)
  with event_log.span('waiting', on=[]):
    assert event_log.current() is None


def test_a_torn_line_of_a_killed_process_spoils_no_other(tmp_path):
  path = event_files.path_of(tmp_path, 'worker:0')
  path.parent.mkdir()
  path.write_bytes(b'{"version": 1, "ti')
  event_log.EventLog(tmp_path, 'worker:0').write('ended')
  reading = event_files.read_file(path)
  assert [e.name for e in reading.events] == ['ended']
  assert reading.num_torn == 1


def test_a_process_killed_while_it_writes_tears_one_line_at_most(tmp_path):
  program = textwrap.dedent('''
      import sys
      from tfplugin.events import event_log
      log = event_log.EventLog(sys.argv[1], 'worker:0')
      step = 0
      while True:
        step += 1
        log.write('training', step=step)
        if step == 100:
          print('writing', flush=True)
      ''')
  writer = subprocess.Popen([sys.executable, '-c', program, str(tmp_path)],
                            stdout=subprocess.PIPE)
  assert writer.stdout.readline() == b'writing\n'
  writer.send_signal(signal.SIGKILL)
  writer.wait(60)
  reading = event_files.read_file(event_files.path_of(tmp_path, 'worker:0'))
  assert reading.num_torn <= 1
  steps = [event.step for event in reading.events]
  assert len(steps) >= 100 and steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize('model_dir', ['gs://bucket/model', 'hdfs://a/b'])
def test_a_remote_model_dir_is_warned_of_once(tmp_path, monkeypatch, caplog,
                                              model_dir):
  monkeypatch.chdir(tmp_path)
  with caplog.at_level(logging.WARNING):
    with event_log.recording(model_dir, 'worker:0') as log:
      log.write('training', step=1)
  assert [r.getMessage() for r in caplog.records] == [
      f'The events of worker:0 cannot be written to {model_dir}: it is no '
      'directory of this machine. Training continues without them.']
  assert not list(tmp_path.iterdir())
  assert log.last_step == 1


def test_without_a_model_dir_nothing_is_written_or_said(caplog):
  with event_log.recording(None, 'chief:0'):
    event_log.write('training', step=1)
  assert not caplog.records


def test_a_directory_that_cannot_be_made_is_warned_of_once(tmp_path, caplog):
  (tmp_path / 'events').write_text('a file')
  with caplog.at_level(logging.WARNING):
    with event_log.recording(tmp_path, 'worker:0') as log:
      log.write('training', step=1)
  record, = caplog.records
  assert 'File exists' in record.getMessage()


def test_a_full_disk_is_warned_of_and_writing_goes_on_later(tmp_path, caplog):
  path = event_files.path_of(tmp_path, 'worker:0')
  log = event_log.EventLog(tmp_path, 'worker:0')
  log.write('training', step=1)
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  try:
    # Ten bytes are left, and then none.
    resource.setrlimit(resource.RLIMIT_FSIZE,
                       (path.stat().st_size + 10, limits[1]))
    with caplog.at_level(logging.WARNING):
      log.write('training', step=2)
      log.write('training', step=3)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, ignored)
  log.write('training', step=4)
  reading = event_files.read_file(path)
  assert [event.step for event in reading.events] == [1, 4]
  assert reading.num_torn == 1
  record, = caplog.records
  assert 'no space is left' in record.getMessage()


def test_what_json_does_not_know_is_written_as_text(tmp_path):
  event_log.EventLog(tmp_path, 'worker:0').write('dying', error=KeyError('a'))
  line, = event_files.path_of(tmp_path, 'worker:0').read_text().splitlines()
  assert json.loads(line)['error'] == "'a'"
