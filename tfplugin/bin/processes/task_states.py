# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Current state of each task of a run, from the run's events."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Iterable
from collections.abc import Mapping

from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import record

# Clocks of machines agree to this; the rest is the way to the reader.
_AGREE_SECS = 30.0
_TELL_FIGURES = ('training', 'exchanging', 'dropping')


def combine(statuses: Iterable[record.Sample]) -> dict[str, float]:
  """Returns the figures of the newest status and the sums of all counts."""
  statuses = sorted(statuses, key=lambda s: s.time)
  combined = dict(statuses[-1].figures) if statuses else {}
  for name in statuses[-1].counts if statuses else ():
    combined[name] = sum(s.counts.get(name, 0) for s in statuses)
  return combined


@dataclasses.dataclass
class State:
  """The known state of a task.

  Attributes:
    step: The newest global step in its events; None before the first.
    details: Its newest figures, e.g. `steps_per_sec`, by name.
    open: Begin events without their end events, by name.
    status: The newest sample of tfplugin-train, with the sums of the session's
      processes; None before the session's first.
    joined: When the chief saw it join a run that workers may join.
    left: When the chief last saw it leave.
    ahead_secs: How far the clock of the task's machine is ahead of this one's.
    faults: The faults that were caused, as texts.
  """

  last: record.Event | None = None
  step: int | None = None
  open: dict[str, record.Event] = dataclasses.field(default_factory=dict)
  details: dict[str, float] = dataclasses.field(default_factory=dict)
  status: record.Sample | None = None
  joined: float | None = None
  left: float | None = None
  ahead_secs: float = 0.0
  faults: list[str] = dataclasses.field(default_factory=list)
  # The last sample, its counts by name, and their sums over the processes.
  _sampled: record.Event | None = None
  _counts: dict[str, int] = dataclasses.field(default_factory=dict)
  _sums: dict[str, int] = dataclasses.field(default_factory=dict)

  def take(self, event: record.Event) -> None:
    """Updates the state with the next event of the task."""
    is_sample = event.name == 'sampling'
    before = self._sampled if is_sample else self.last
    if before is not None and before.session != event.session:
      self.status = self._sampled = None
      self._counts.clear()
      self._sums.clear()
    is_new = before is not None and record.is_new_process(before, event)
    if is_new:
      self._counts.clear()
    if is_sample:
      self._take_sample(event)
    else:
      self._take_other(event, is_new)

  def _take_other(self, event: record.Event, is_new: bool) -> None:
    if is_new:
      self.open.clear()
      self.details.clear()
    self.last = event
    if event.name == 'injecting':
      self.faults.append(event.details['fault'])
    if event.name in _TELL_FIGURES:
      self.details.update(event.details)
    self.step = self.step if event.step is None else event.step
    if event.kind == record.BEGIN:
      self.open[event.name] = event
    elif event.kind == record.END:
      self.open.pop(event.name, None)

  def _take_sample(self, event: record.Event) -> None:
    sample = record.sample_of(event)
    self._sampled = event
    self.status = sample._replace(
        first_time=self.status.first_time if self.status else sample.time,
        num_steps=self._sum('', sample.num_steps),
        counts={name: self._sum(name, count)
                for name, count in sample.counts.items()})

  def _sum(self, name: str, count: int) -> int:
    """Returns the sum; a process whose session was lost counts anew."""
    before = self._counts.get(name, 0)
    added = count - before if count >= before else count
    self._counts[name] = count
    self._sums[name] = self._sums.get(name, 0) + added
    return self._sums[name]

  @property
  def waits_on(self) -> list[str]:
    """The tasks that this task waits for."""
    event = self.open.get('waiting')
    return list(event.details.get('on', ())) if event else []

  @property
  def doing(self) -> str:
    """The newest unfinished activity, or the last event, in words."""
    name = next(reversed(list(self.open)), self.last.name if self.last else '')
    return 'restarting' if name == 'coming_back' else name

  @property
  def end(self) -> str:
    """The end of the task, in words; '' if it has not ended.

    Of a worker that joined, the words tell when it came and left.
    """
    last = self.last
    has_spoken = last is not None and (
        last.name in record.LAST_WORDS or record.is_done(last))
    if self.joined is None:
      return record.describe_end(last) if has_spoken else ''
    if has_spoken and last.time >= self.joined:
      how = (last.details.get('signal') if last.name == 'stopped' else
             record.describe_end(last))
      return f'{self.arrival}, left {_clock(last.time)}: {how}'
    if self.left is not None and (last is None or last.time <= self.left):
      return f'{self.arrival}, left {_clock(self.left)}: died'
    return ''

  @property
  def arrival(self) -> str:
    """When it joined, in words; '' if it did not."""
    return '' if self.joined is None else f'joined {_clock(self.joined)}'

  def describe(self, now: float) -> str:
    """Returns the activity, e.g. 'waits for chief:0 (12 s)', or the end."""
    if self.end:
      return self.end
    if self.last is None:
      return 'has written no events'
    if self.waits_on:
      secs = self.secs_since(self.open['waiting'], now)
      return f'waits for {", ".join(self.waits_on)} ({secs:.0f} s)'
    step = '' if self.step is None else f', step {self.step}'
    return (f'is {self.doing}{step}; its last event came '
            f'{self.secs_since(self.last, now):.0f} s ago')

  def secs_since(self, event: record.Event, now: float) -> float:
    """Returns how long ago an event was; `now` is a time of `clock`."""
    return max(0.0, now + self.ahead_secs - event.time)


def goal(states: Mapping[str, State]) -> int | None:
  """Returns the global step at which the run ends; None if it is not known.

  The newest event counts: a later run may end at another step.
  """
  found = [(state.last.time, state.details['max_steps'])
           for state in states.values() if 'max_steps' in state.details]
  return max(found)[1] if found else None


def describe_stop(states: Mapping[str, State]) -> str:
  """Returns a text about the last steps of a run that stopped on request."""
  stops = [state.last for state in states.values()
           if state.last is not None and state.last.name == 'stopped']
  steps = [event.step for event in stops if event.step is not None]
  saved = [event.details['saved_step'] for event in stops
           if event.details.get('saved_step') is not None]
  return record.describe_stop(max(steps, default=None),
                              max(saved, default=None))


class TaskStates:
  """The states of a run's tasks, by name.

  `moved` is the time of the newest step by `time.monotonic`.
  """

  def __init__(self, model_dir: str | os.PathLike | None,
               tasks: Iterable[str] = (), from_start: bool = False):
    """Skips the events of earlier runs, unless `from_start`.

    Without a `model_dir` all states stay empty. Further tasks that write events
    are added to `tasks`: workers join.
    """
    self.states = {task: State() for task in tasks}
    self.moved = time.monotonic()
    self._is_live = not from_start
    self._dir = None if model_dir is None else event_files.events_dir(model_dir)
    self._read = {} if from_start else {
        path: _size(path) for path in self._paths()}

  def update(self) -> None:
    """Reads the events that were written since the last call."""
    updated = set()
    for path in self._paths():
      events, self._read[path] = event_files.read_on(
          path, self._read.get(path, 0))
      for event in events:
        self._take(event)
        updated.add(event.task)
    for task in updated:
      self._compare_clocks(self.states[task])
    self._is_live = True

  def _compare_clocks(self, state: State) -> None:
    """Compares a task's clock with this one, by an event of just now."""
    if self._is_live and state.last is not None:
      ahead = state.last.time - clock.now()
      state.ahead_secs = ahead if abs(ahead) > _AGREE_SECS else 0.0

  def _paths(self) -> list[pathlib.Path]:
    return [] if self._dir is None else sorted(self._dir.glob('*.jsonl'))

  def _take(self, event: record.Event) -> None:
    self._of(event.task).take(event)
    if event.name == 'training':
      self.moved = time.monotonic()
    if event.name == 'joined':
      worker = self._of(event.details['worker'])
      worker.joined, worker.left = worker.joined or event.time, None
    if event.name == 'left':
      self._of(event.details['worker']).left = event.time

  def _of(self, task: str) -> State:
    return self.states.setdefault(task, State())


def _clock(seconds: float) -> str:
  return time.strftime('%H:%M:%S', time.localtime(seconds))


def _size(path: os.PathLike) -> int:
  try:
    return os.path.getsize(path)
  except OSError:
    return 0
