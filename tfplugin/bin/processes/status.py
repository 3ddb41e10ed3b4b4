# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A role's status: the events `sampling`, and the hook that writes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple
from typing import Optional
from typing import Union

import tensorflow as tf

from tfplugin.events import event_log
from tfplugin.events import record

tf1 = tf.compat.v1

_EVERY_SECS = 0.5


class Status(NamedTuple):
  """The state of a role at one moment.

  Attributes:
    time: Seconds since the epoch.
    first_step_time: The end of its first step, likewise.
    local_steps: Steps of this role in this session.
    loss: The loss of its last batch.
    counts: By name; shown as the sums over all roles.
  """

  time: float
  first_step_time: float
  global_step: int
  local_steps: int
  loss: float
  figures: dict
  counts: dict


class StatusHook(tf1.train.SessionRunHook):
  """Hook that writes an event twice a second, and at the end.

  The first step has an event, too.
  """

  def __init__(self, log: event_log.EventLog, loss: tf.Tensor,
               figures: Mapping[str, tf.Tensor],
               counts: Mapping[str, Union[tf.Tensor,
                                          Callable[[], tf.Tensor]]]):
    """Stores the scalar tensors of the events by their names.

    If the task has an event log already, this one takes the place of `log`. A
    function in `counts` finds its tensor once the graph is complete.
    """
    self._log = log
    self._tensors = {'loss': loss}
    self._figures = {'figures': dict(figures), 'counts': dict(counts)}
    self._last_figures = {'figures': {}, 'counts': {}}
    self._is_due = False
    self._local_steps = 0
    self._last_time = float('-inf')
    self._last_values = None

  def begin(self) -> None:
    """Finds the log, the global step and the tensors of the counts."""
    self._log = event_log.current() or self._log
    self._tensors['global_step'] = tf1.train.get_global_step()
    self._figures['counts'] = {
        name: count() if callable(count) else count
        for name, count in self._figures['counts'].items()}

  def before_run(self, run_context) -> tf1.train.SessionRunArgs:
    """Requests step and loss, and the figures if an event is due."""
    del run_context
    self._is_due = time.monotonic() - self._last_time >= _EVERY_SECS
    return tf1.train.SessionRunArgs(
        {**self._tensors, **(self._figures if self._is_due else {})})

  def after_run(self, run_context, run_values) -> None:
    """Counts the step; writes an event if one is due."""
    del run_context
    self._local_steps += 1
    self._last_values = run_values.results
    if self._is_due:
      self._last_figures = run_values.results
      self._write()

  def end(self, session: tf1.Session) -> None:
    """Writes the last event."""
    if self._last_values is not None:
      # Counts can be read at any time; figures belong to a step.
      counts = session.run(self._figures['counts'])
      self._last_figures = {**self._last_figures, 'counts': counts}
      self._write()

  def _write(self) -> None:
    self._last_time = time.monotonic()
    values = {**self._last_figures, **self._last_values}
    self._log.write(
        'sampling', step=int(values['global_step']),
        num_steps=self._local_steps, loss=_for_json(values['loss']),
        figures={k: _for_json(v) for k, v in values['figures'].items()},
        counts={k: int(v) for k, v in values['counts'].items()})


class Samples:
  """The samples of a task; one session's processes add up.

  Attributes:
    status: The newest; None before the first step of its session.
  """

  def __init__(self):
    self.status: Optional[Status] = None
    self._last: Optional[record.Event] = None
    # The last status of the session's earlier processes.
    self._gone: Optional[Status] = None

  def begin_session(self) -> None:
    """Forgets the previous session."""
    self.__init__()

  def take(self, event: record.Event) -> None:
    """Adds the next event `sampling` of the task."""
    steps = event.details['num_steps']
    if self._last and event.session != self._last.session:
      self.begin_session()
    if self._last and (event.pid != self._last.pid or
                       steps < self._last.details['num_steps']):
      self._gone = self.status
    gone = self._gone
    self.status = Status(
        time=event.time,
        first_step_time=self.status.first_step_time if self.status
        else event.time,
        global_step=event.step,
        local_steps=steps + (gone.local_steps if gone else 0),
        loss=from_json(event.details['loss']),
        figures={name: from_json(value)
                 for name, value in event.details['figures'].items()},
        counts={name: count + (gone.counts.get(name, 0) if gone else 0)
                for name, count in event.details['counts'].items()})
    self._last = event


def _for_json(value: float) -> Optional[float]:
  """Returns a number for JSON; None for NaN and infinity."""
  return float(value) if math.isfinite(value) else None


def from_json(value: Optional[float]) -> float:
  """Returns the number of a sample; NaN if it was not finite."""
  return math.nan if value is None else value


def combine(statuses: Iterable[Status]) -> dict[str, float]:
  """Returns the figures of the newest status and the sums of all counts."""
  statuses = sorted(statuses, key=lambda s: s.time)
  combined = dict(statuses[-1].figures) if statuses else {}
  for name in statuses[-1].counts if statuses else ():
    combined[name] = sum(s.counts.get(name, 0) for s in statuses)
  return combined
