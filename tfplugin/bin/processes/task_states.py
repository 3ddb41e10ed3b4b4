# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Current state of each task of a run, from the run's events."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Optional
from typing import Union

from tfplugin.bin.processes import status as status_lib
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import record

# Clocks of machines agree to this; the rest is the way to the reader.
_AGREE_SECS = 30.0
_TELL_FIGURES = ('training', 'exchanging', 'dropping')


@dataclasses.dataclass
class State:
  """The known state of a task.

  Attributes:
    step: The newest global step in its events; None before the first.
    details: Its newest figures, e.g. `steps_per_sec`, by name.
    open: Begin events without their end events, by name.
    samples: The figures of tfplugin-train, such as the loss.
    ahead_secs: How far the clock of the task's machine is ahead of this one's.
  """

  last: Optional[record.Event] = None
  step: Optional[int] = None
  open: dict[str, record.Event] = dataclasses.field(default_factory=dict)
  details: dict[str, float] = dataclasses.field(default_factory=dict)
  samples: status_lib.Samples = dataclasses.field(
      default_factory=status_lib.Samples)
  ahead_secs: float = 0.0

  def take(self, event: record.Event) -> None:
    """Updates the state with the next event of the task."""
    if event.name == 'sampling':
      self.samples.take(event)
      return
    if self.last is not None and self.last.session != event.session:
      self.samples.begin_session()
    if self.last is not None and self.last.pid != event.pid:
      self.open.clear()
      self.details.clear()
    self.last = event
    if event.name in _TELL_FIGURES:
      self.details.update(event.details)
    self.step = self.step if event.step is None else event.step
    if event.kind == record.BEGIN:
      self.open[event.name] = event
    elif event.kind == record.END:
      self.open.pop(event.name, None)

  @property
  def status(self) -> Optional[status_lib.Status]:
    """The newest sample; None if this session has none."""
    return self.samples.status

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

  def describe(self, now: float) -> str:
    """Returns the activity, e.g. 'waits for chief:0 (12 s)'.

    `now` is a time of `clock`.
    """
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


def goal(states: Mapping[str, State]) -> Optional[int]:
  """Returns the global step at which the run ends; None if it is not known.

  The newest event counts: a later run may end at another step.
  """
  told = [(state.last.time, state.details['max_steps'])
          for state in states.values() if 'max_steps' in state.details]
  return max(told)[1] if told else None


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

  Attributes:
    moved: The time of the newest step by `time.monotonic`.
  """

  def __init__(self, model_dir: Union[str, os.PathLike, None],
               tasks: Iterable[str], from_start: bool = False):
    """Skips the events of earlier runs, unless `from_start`.

    Without a `model_dir` all states stay empty.
    """
    self.states = {task: State() for task in tasks}
    self.moved = time.monotonic()
    self._is_live = not from_start
    self._paths = {} if model_dir is None else {
        task: event_files.path_of(model_dir, task) for task in self.states}
    self._read = {task: 0 if from_start else _size(path)
                  for task, path in self._paths.items()}

  def update(self) -> None:
    """Reads the events that were written since the last call."""
    for task, path in self._paths.items():
      start, size = self._read[task], _size(path)
      if size <= start:
        continue
      with open(path, 'rb') as file:
        file.seek(start)
        # The text after the last newline is incomplete.
        text = file.read(size - start).rpartition(b'\n')[0]
      self._read[task] += len(text) + bool(text)
      for line in filter(None, text.split(b'\n')):
        self._take(task, line)
      self._compare_clocks(self.states[task])
    self._is_live = True

  def _compare_clocks(self, state: State) -> None:
    """Compares a task's clock with this one, by an event of just now."""
    if self._is_live and state.last is not None:
      ahead = state.last.time - clock.now()
      state.ahead_secs = ahead if abs(ahead) > _AGREE_SECS else 0.0

  def _take(self, task: str, line: bytes) -> None:
    try:
      event = record.decode(line)
    except ValueError:  # Cut off when its process was killed.
      return
    if event is not None:
      self.states[task].take(event)
      if event.name == 'training':
        self.moved = time.monotonic()


def _size(path: os.PathLike) -> int:
  try:
    return os.path.getsize(path)
  except OSError:
    return 0
