# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files with the events and the settings of a run, and their readers.

A process that is killed while it writes leaves a torn line. Readers skip torn
lines and return their number. A file may be read while others write to it.
"""

from __future__ import annotations

import heapq
import json
import os
import pathlib
from typing import Any
from typing import NamedTuple

from tfplugin.events import record

# The settings of a run of tfplugin-train, in its model_dir.
OPTIONS_NAME = 'train_options.json'

# The size of the part at the end of a file that `last_events` reads.
_TAIL_BYTES = 65536


class Reading(NamedTuple):
  """The events that were read, and the numbers of skipped lines.

  Attributes:
    events: Sorted by time; the events of one task are in the order of writing.
    num_torn: How many lines are torn or hold no event.
    num_other: How many lines are of another version of the format.
  """

  events: tuple[record.Event, ...]
  num_torn: int = 0
  num_other: int = 0


def events_dir(model_dir: str | os.PathLike) -> pathlib.Path:
  """Returns the directory of a run's events."""
  return pathlib.Path(model_dir) / 'events'


def no_events(model_dir: str | os.PathLike) -> ValueError:
  """Returns the error about a directory that has no events of a run."""
  if not os.path.isdir(model_dir):
    return ValueError(f'RUN_DIR: no such directory: {model_dir}. Give the '
                      'model_dir of a run.')
  return ValueError(
      f'RUN_DIR: no events in {os.path.join(model_dir, "events")}. Give the '
      'model_dir of a run. tfplugin-train and '
      'tfplugin.estimator.train_and_evaluate write events from their start on. '
      'A program that calls another function must pass '
      'tfplugin.hooks.EventsHook to each task that trains.')


def path_of(model_dir: str | os.PathLike, task: str) -> pathlib.Path:
  """Returns the file of a task, e.g. `worker:0`."""
  return events_dir(model_dir) / f'{task.replace(":", "-")}.jsonl'


def tasks_in(model_dir: str | os.PathLike) -> list[str]:
  """Returns the tasks that have written events, e.g. `worker:0`."""
  return [':'.join(path.stem.rsplit('-', 1))
          for path in events_dir(model_dir).glob('*-*.jsonl')]


def read_file(path: str | os.PathLike, start: int = 0) -> Reading:
  """Reads the events of one task.

  Args:
    path: The file; a missing file has no events.
    start: The byte offset at which to begin; the rest of a line there is
      skipped.

  Returns:
    The task's events, in the order of writing.

  Example:
    >>> import tempfile
    >>> from tfplugin import events
    >>> model_dir = tempfile.mkdtemp()
    >>> events.EventLog(model_dir, 'worker:0').write('training', step=7)
    >>> reading = events.read_file(f'{model_dir}/events/worker-0.jsonl')
    >>> [(e.task, e.name, e.kind, e.step) for e in reading.events]
    [('worker:0', 'training', 'instant', 7)]
  """
  try:
    with open(path, 'rb') as file:
      file.seek(max(start - 1, 0))
      text = file.read()
  except FileNotFoundError:
    return Reading(())
  return _decoded(text.partition(b'\n')[2] if start > 0 else text)


def read_on(path: str | os.PathLike,
            start: int) -> tuple[tuple[record.Event, ...], int]:
  """Returns the events in whole lines from byte `start` on, and their end."""
  try:
    if os.path.getsize(path) <= start:
      return (), start
    with open(path, 'rb') as file:
      file.seek(start)
      # The text after the last newline is incomplete.
      text = file.read().rpartition(b'\n')[0]
  except OSError:  # A network file system may be away for a while.
    return (), start
  return _decoded(text).events, start + len(text) + bool(text)


def _decoded(text: bytes) -> Reading:
  events, num_torn, num_other = [], 0, 0
  for line in filter(None, text.split(b'\n')):
    try:
      event = record.decode(line)
    except ValueError:
      num_torn += 1
      continue
    if event is None:
      num_other += 1
    else:
      events.append(event)
  return Reading(tuple(events), num_torn, num_other)


def read_run(model_dir: str | os.PathLike) -> Reading:
  """Reads the events of all tasks of a run.

  Args:
    model_dir: The run's directory; one without events gives an empty result.
  """
  readings = [read_file(path)
              for path in sorted(events_dir(model_dir).glob('*.jsonl'))]
  return Reading(
      tuple(heapq.merge(*(r.events for r in readings), key=lambda e: e.time)),
      sum(r.num_torn for r in readings), sum(r.num_other for r in readings))


def last_events(path: str | os.PathLike) -> tuple[record.Event, ...]:
  """Returns the events in the last 64 KB of a file; () without access."""
  try:
    return read_file(
        path, max(os.path.getsize(path) - _TAIL_BYTES, 0)).events
  except OSError:
    return ()


def last_of_tasks(model_dir: str | os.PathLike) -> list[record.Event]:
  """Returns the last event of each task of a run."""
  ends = [last_events(path) for path in events_dir(model_dir).glob('*.jsonl')]
  return [events[-1] for events in ends if events]


def read_options(model_dir: str | os.PathLike) -> dict[str, Any]:
  """Returns the settings of `tfplugin-train`; empty for another program."""
  return read_object(pathlib.Path(model_dir, OPTIONS_NAME))


def earlier_options(model_dir: str | os.PathLike) -> dict[int, dict[str, Any]]:
  """Returns other settings of earlier sessions, by the last session of each."""
  stem, suffix = OPTIONS_NAME.split('.')
  return {int(path.stem.rpartition('-')[2]): read_object(path)
          for path in pathlib.Path(model_dir).glob(f'{stem}-*.{suffix}')}


def read_object(path: str | os.PathLike) -> dict[str, Any]:
  """Returns the JSON object in a file; empty if it is missing or torn."""
  try:
    value = json.loads(pathlib.Path(path).read_text())
  except (OSError, ValueError):
    return {}
  return value if isinstance(value, dict) else {}


def write_whole(path: str | os.PathLike, text: str) -> None:
  """Writes a file; an OSError, as on a full disk, leaves it as it was."""
  path = pathlib.Path(path)
  new = path.with_suffix('.tmp')
  try:
    new.write_text(text)
    new.replace(path)
  finally:
    new.unlink(missing_ok=True)
