# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the paths of a run's files."""

import errno
import fcntl
import time

import pytest

from tests.report import hand_written
from tfplugin.bin import run_files
from tfplugin.events import clock


def test_a_model_dir_is_of_one_run_at_a_time(tmp_path):
  with run_files.reserved(tmp_path / 'run'):
    with pytest.raises(RuntimeError, match='model_dir is in use'):
      with run_files.reserved(tmp_path / 'run'):
        pass
  with run_files.reserved(tmp_path / 'run'):
    pass


def test_sessions_are_counted_and_nothing_of_them_is_deleted(tmp_path):
  contents = {}
  for session in (1, 2, 3):
    with run_files.reserved(tmp_path) as number:
      assert number == session
    assert contents == {path: path.read_bytes() for path in contents}
    hand_written.write_events(tmp_path, hand_written.event(
        session, 'worker:1', 'ended')._replace(session=session))
    contents = {path: path.read_bytes() for path in tmp_path.rglob('*')
                if path.suffix == '.jsonl'}
    assert contents


def test_a_session_begins_after_the_last_event_of_the_one_before(
    tmp_path, monkeypatch):
  """The host's clock was set back by an hour since."""
  monkeypatch.setenv(clock.VARIABLE, '')
  last = clock.now() + 3600
  for secs, task in ((0, 'chief:0'), (-5, 'worker:0')):
    hand_written.write_events(tmp_path, hand_written.event(
        0, task, 'ended')._replace(time=last + secs))
  with run_files.reserved(tmp_path) as number:
    assert number == 2
    assert clock.now() == pytest.approx(last, abs=30)
    assert float(clock.variables()[clock.VARIABLE].split()[1]) == (
        pytest.approx(last - time.monotonic(), abs=30))


def test_a_file_system_without_locks_stops_no_launch(tmp_path, monkeypatch):
  def flock(*unused):
    raise OSError(errno.ENOLCK, 'No locks available')

  monkeypatch.setattr(fcntl, 'flock', flock)
  with run_files.reserved(tmp_path) as number:
    assert number == 1


def test_a_new_directory_is_shared_with_no_other_run(tmp_path):
  path = str(tmp_path / 'runs/a')
  assert [run_files.new_dir('logs_dir', path) for _ in range(3)] == [
      path, f'{path}-2', f'{path}-3']
  assert all((tmp_path / 'runs' / name).is_dir() for name in ('a', 'a-3'))


def test_a_new_directory_that_cannot_be_made_is_named(tmp_path):
  (tmp_path / 'runs').touch()
  with pytest.raises(ValueError, match='`logs_dir` must be a directory'):
    run_files.new_dir('logs_dir', str(tmp_path / 'runs/a'))


@pytest.mark.parametrize('argument', ['model_dir', 'logs_dir'])
def test_a_remote_directory_is_not_made_here(tmp_path, monkeypatch, argument):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match=f'`{argument}` must be on a file system '
                     'of this machine. Received: gs://bucket/a'):
    run_files.make_dir(argument, 'gs://bucket/a')
  assert not list(tmp_path.iterdir())
