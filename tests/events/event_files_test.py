# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the events of a task and of a run."""

import pytest

from tfplugin.events import event_files
from tfplugin.events import record


def _line(time, task='chief:0', **details):
  return record.encode(
      record.Event(time, 1, task, 'training', 'instant', details))


def test_the_file_of_a_task():
  assert str(event_files.path_of('runs/a', 'worker:11')) == (
      'runs/a/events/worker-11.jsonl')


def test_no_file_has_no_events(tmp_path):
  assert event_files.read_file(tmp_path / 'none') == ((), 0, 0)
  assert event_files.read_run(tmp_path) == ((), 0, 0)


def test_a_directory_without_events_is_named(tmp_path):
  assert str(event_files.no_events(tmp_path / 'none')) == (
      f'RUN_DIR: no such directory: {tmp_path}/none. Give the model_dir of a '
      'run.')
  assert f'no events in {tmp_path}/events.' in str(
      event_files.no_events(tmp_path))


def test_torn_lines_are_skipped_and_counted(tmp_path):
  path = tmp_path / 'events.jsonl'
  whole = _line(1.0, step=5)
  path.write_bytes(whole + whole[:20] + b'\n' + whole
                   + b'{"version": 9}\n' + whole[:-30])
  reading = event_files.read_file(path)
  assert [event.step for event in reading.events] == [5, 5]
  assert (reading.num_torn, reading.num_other) == (2, 1)


def test_a_line_that_is_torn_anywhere_hides_no_other(tmp_path):
  path = tmp_path / 'events.jsonl'
  whole = _line(1.0, step=5, note='a "quoted" note')
  for length in range(1, len(whole)):
    path.write_bytes(whole + whole[:length])
    reading = event_files.read_file(path)
    # Without its newline alone a line is whole.
    is_whole = length == len(whole) - 1
    assert (len(reading.events), reading.num_torn) == (
        (2, 0) if is_whole else (1, 1))


def test_reading_begins_with_a_whole_line(tmp_path):
  path = tmp_path / 'events.jsonl'
  first, second = _line(1.0), _line(2.0)
  path.write_bytes(first + second)
  for start, count in ((0, 2), (1, 1), (len(first), 1), (len(first) + 1, 0)):
    reading = event_files.read_file(path, start)
    assert (len(reading.events), reading.num_torn) == (count, 0), start


def test_settings_that_are_torn_or_missing_are_none(tmp_path):
  assert event_files.read_options(tmp_path) == {}
  path = tmp_path / 'train_options.json'
  for text, options in (('{"steps": 9}', {'steps': 9}), ('{"steps": 9', {}),
                        ('[9]', {})):
    path.write_text(text)
    assert event_files.read_options(tmp_path) == options


def test_the_events_of_a_run_are_ordered_by_time(tmp_path):
  for task, times in (('chief:0', (1.0, 4.0)), ('ps:0', (2.0, 3.0))):
    path = event_files.path_of(tmp_path, task)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b''.join(_line(time, task) for time in times) + b'{')
  reading = event_files.read_run(tmp_path)
  assert [(e.time, e.task) for e in reading.events] == [
      (1.0, 'chief:0'), (2.0, 'ps:0'), (3.0, 'ps:0'), (4.0, 'chief:0')]
  assert reading.num_torn == 2


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path):
  path = tmp_path / 'a.json'
  event_files.write_whole(path, 'one')
  with pytest.raises(UnicodeEncodeError):
    event_files.write_whole(path, 'two \udc80')
  assert path.read_text() == 'one' and list(tmp_path.iterdir()) == [path]
