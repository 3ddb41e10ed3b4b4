# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Content of the files of a run, read once, with the warnings of its logs."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.distribute import cluster_config
from tfplugin.events import event_files
from tfplugin.events import record
from tfplugin.events import wrapper_names
from tfplugin.report.reading import scalars as scalars_lib

# A longer pause between two sessions is shortened to a few seconds. The curves
# of a run that continues a day later would otherwise have no width.
_LONG_SECS = 120.0
_SHOWN_SECS = 10.0
# absl: 'W1122 18:55:53.1 22 file.py:12] text'; TensorFlow: 'WARNING:...: text'.
_LINE = re.compile(r'^(?:[WE]\d{4} [\d:.]+\s+\d+ [^\]]*\] |'
                   r'(?:WARNING|ERROR):\w+:|'
                   r'\d{4}-\d\d-\d\d [\d:.]+: [WE] \S+\] )(.*)')
_LETTER, _NUMBER = re.compile('[a-zA-Z]'), re.compile(r'\d+')
# The part at the end of each log that is read.
_TAIL_BYTES = 4 << 20
_MAX_CHARS = 300
_MAX_WARNINGS = 50


@dataclasses.dataclass(frozen=True)
class RunData:
  """The content of the files of a run.

  `reading` has the events of all tasks, without the samples, which are in
  `samples` by task. `scalars` has the curves of TensorBoard by tag, by
  directory. `options` are the settings of `tfplugin-train`, empty for another
  program. `earlier_options` has the options of earlier sessions that differ, by
  the last session with them. `summary` is the result of `tfplugin-train`
  and `tfplugin-launch`. `pauses` between sessions have their end and the
  seconds that are cut out of all times, in order.
  """

  run_dir: str
  reading: event_files.Reading
  samples: Mapping[str, list[record.Sample]]
  scalars: Mapping[str, Mapping[str, scalars_lib.Curve]]
  options: Mapping[str, Any]
  earlier_options: Mapping[int, Mapping[str, Any]]
  summary: Mapping[str, Any]
  warnings: Sequence[Mapping[str, Any]]
  pauses: Sequence[tuple[float, float]]

  @property
  def start(self) -> float:
    """The time of the first event, in seconds since the epoch."""
    return self.reading.events[0].time

  @property
  def end(self) -> float:
    """The time of the last event."""
    return self.reading.events[-1].time

  def date_of(self, event: record.Event) -> float:
    """Returns the time of an event with the pauses put back, for its date."""
    date = event.time
    for end, cut in self.pauses:
      date += cut if date + cut >= end else 0.0
    return date

  @functools.cached_property
  def events_of(self) -> dict[str, list[record.Event]]:
    """The events of each task, in the order of writing; tasks are sorted."""
    found = {}
    for event in self.reading.events:
      found.setdefault(event.task, []).append(event)
    return {task: found[task] for task in sorted(found, key=_order)}

  def sessions_of(self, task: str) -> dict[int, list[record.Event]]:
    """Returns the events of a task by the number of their session."""
    return _by_session(self.events_of[task])

  @property
  def training_tasks(self) -> list[str]:
    """The tasks that train."""
    return [task for task in self.events_of
            if task.partition(':')[0] in cluster_config.TRAINING_JOBS]

  def points(self, tags: Sequence[str],
             figure: str) -> dict[str, list[tuple[float, float]]]:
    """Returns times and values by task; samples replace scalars.

    `tags` are names of the figure in TensorBoard, the preferred one first. The
    times are in seconds since the first event.
    """
    found = {}
    for tag in tags:
      for task, curve in scalars_lib.by_task(self.scalars, tag).items():
        found.setdefault(task, list(zip(curve.times, curve.values)))
    for task, samples in self.samples.items():
      pairs = [(sample.time, sample.figures[figure]) for sample in samples
               if figure in sample.figures]
      if pairs:
        found[task] = pairs
    return {task: [(time - self.start, value) for time, value in found[task]]
            for task in sorted(found)}

  def technique_in(self, session: float) -> str | None:
    """Returns the wrapper or strategy of `tfplugin-train`; None if unknown."""
    options = self.options_in(session)
    strategy = options.get('strategy', 'none')
    return wrapper_names.current(
        options.get('wrapper') if strategy == 'none' else strategy)

  @functools.cached_property
  def sessions(self) -> dict[int, list[record.Event]]:
    """The events of each session, by number, in order."""
    return dict(sorted(_by_session(self.reading.events).items()))

  def options_of(self, technique: str) -> list[Mapping[str, Any]]:
    """Returns the `options` of each session with a wrapper or strategy."""
    return [self.options_in(session) for session in self.sessions
            if self.technique_in(session) == technique]

  def options_in(self, session: float) -> Mapping[str, Any]:
    """Returns the `options` of a session; infinity is the newest."""
    last = min((n for n in self.earlier_options if n >= session), default=None)
    return self.options if last is None else self.earlier_options[last]


def _by_session(
    events: Iterable[record.Event]) -> dict[int, list[record.Event]]:
  found = {}
  for event in events:
    found.setdefault(event.session, []).append(event)
  return found


def common(values: Iterable[Any]) -> Any | None:
  """Returns the value that all sessions have; None if they differ."""
  found = set(values)
  return found.pop() if len(found) == 1 else None


def read(run_dir: str | os.PathLike) -> RunData:
  """Reads the files of a run, which may still be running.

  Raises ValueError if `run_dir` has no events.
  """
  path = pathlib.Path(run_dir)
  reading = event_files.read_run(path)
  if not reading.events:
    raise event_files.no_events(path)
  pauses = _pauses(reading.events)
  events = [e._replace(time=_without(pauses, e.time)) for e in reading.events]
  others = tuple(e for e in events if e.name != 'sampling')
  scalars = {directory: {tag: curve._replace(times=[
      _without(pauses, time) for time in curve.times])
                         for tag, curve in curves.items()}
             for directory, curves in scalars_lib.read_tree(path).items()}
  return RunData(
      str(path), reading._replace(events=others), record.samples_of(events),
      scalars, event_files.read_options(path),
      event_files.earlier_options(path),
      event_files.read_object(path / 'summary.json'),
      read_warnings(path), pauses)


def _pauses(events: Sequence[record.Event]) -> list[tuple[float, float]]:
  """Returns the ends of long pauses between sessions, and seconds to cut."""
  found, latest = [], None
  for event in events:
    is_new = latest is not None and event.session > latest.session
    if is_new and event.time - latest.time > _LONG_SECS:
      found.append((event.time, event.time - latest.time - _SHOWN_SECS))
    latest = event
  return found


def _without(pauses: Sequence[tuple[float, float]], time: float) -> float:
  return time - sum(cut for end, cut in pauses if time >= end)


def _order(task: str) -> tuple[int, str, int]:
  job, _, index = task.partition(':')
  jobs = (*cluster_config.TRAINING_JOBS, 'ps', 'evaluator')
  rank = jobs.index(job) if job in jobs else len(jobs)
  return rank, job, int(index) if index.isdigit() else 0


def read_warnings(run_dir: str | os.PathLike) -> list[dict[str, Any]]:
  """Returns the warnings and errors in `logs/<task>.log`, by frequency.

  Warnings that differ in numbers alone are one. Warnings of deprecation are
  left out: they are for the author of the model.
  """
  counts, texts = collections.Counter(), {}
  for path in sorted(pathlib.Path(run_dir, 'logs').glob('*-*.log')):
    job, _, index = path.stem.rpartition('-')
    with open(path, 'rb') as file:
      file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
      lines = file.read().decode(errors='replace').splitlines()
    for match in map(_LINE.match, lines):
      # A line without a letter only separates others.
      if match and _LETTER.search(match[1]) and 'deprecated' not in match[1]:
        kind = f'{job}:{index}', _NUMBER.sub('0', match[1])
        texts.setdefault(kind, match[1][:_MAX_CHARS])
        counts[kind] += 1
  return [{'task': kind[0], 'text': texts[kind], 'count': count}
          for kind, count in counts.most_common(_MAX_WARNINGS)]
