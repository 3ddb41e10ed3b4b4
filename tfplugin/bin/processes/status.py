# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A role's status: the events `sampling`, and the hook that writes them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1

_EVERY_SECS = 0.5


def make_hook(log: event_log.EventLog, loss: tf.Tensor,
              figures: Mapping[str, tf.Tensor],
              counts: Mapping[str, tf.Tensor | Callable[[], tf.Tensor]],
              ) -> telemetry_hook.TelemetryHook:
  """Returns the hook that writes an event twice a second, and at the end.

  The first step has an event, too. An event has scalar tensors by their names.
  If the task has an event log already, this one takes the place of `log`. A
  function in `counts` finds its tensor once the graph is complete.
  """
  return telemetry_hook.TelemetryHook(
      _StatusSink(log, loss, figures, counts), every_secs=_EVERY_SECS)


class _StatusSink(telemetry_hook.Sink):
  """Writer of the events; the last one has the loss of the last step."""

  fetches_each_step = True

  def __init__(self, log: event_log.EventLog, loss: tf.Tensor,
               figures: Mapping[str, tf.Tensor], counts: Mapping):
    self._log = log
    self._tensors = {'loss': loss}
    self._figures = {'figures': dict(figures), 'counts': dict(counts)}
    self._last = {}

  def begin(self) -> None:
    """Finds the log, the global step and the tensors of the counts."""
    self._log = event_log.current() or self._log
    self._tensors['step'] = tf1.train.get_global_step()
    self._figures['counts'] = {
        name: count() if callable(count) else count
        for name, count in self._figures['counts'].items()}

  def fetches(self, asked: Any, is_due: bool) -> dict:
    """Returns step and loss, and the figures if an event is due."""
    del asked
    return {**self._tensors, **(self._figures if is_due else {})}

  def end_step(self, fetched: dict) -> None:
    """Keeps the newest values."""
    self._last.update(fetched)

  def write(self, report: telemetry_hook.Report, fetched: dict) -> None:
    """Writes an event."""
    del fetched
    self._log.write('sampling', **record.sample_details(
        num_steps=report.num_steps, **self._last))

  def end(self, report: telemetry_hook.Report) -> None:
    """Writes the last event, if there was a step."""
    if self._last:
      # Counts can be read at any time; figures belong to a step.
      self._last['counts'] = report.session.run(self._figures['counts'])
      self.write(report, {})


class StatusOfTask:
  """Status of a task, from its samples; one session's processes add up.

  A process whose session was lost counts anew, too. `status` is the newest
  sample, with the steps and counts of the session of the run; None before the
  first step of that session.
  """

  def __init__(self):
    self.status: record.Sample | None = None
    self._last: record.Event | None = None
    # The last count of each name, and the sum over the processes.
    self._counts: dict[str, int] = {}
    self._sums: dict[str, int] = {}

  def begin_session(self) -> None:
    """Forgets the previous session."""
    self.__init__()

  def begin_process(self) -> None:
    """Adds the counts of the next process to those of the previous one."""
    self._counts.clear()

  def take(self, event: record.Event) -> None:
    """Adds the next event `sampling` of the task."""
    sample = record.sample_of(event)
    if self._last and event.session != self._last.session:
      self.begin_session()
    if self._last and record.is_new_process(self._last, event):
      self.begin_process()
    self._last = event
    self.status = sample._replace(
        first_time=self.status.first_time if self.status else sample.time,
        num_steps=self._sum('', sample.num_steps),
        counts={name: self._sum(name, count)
                for name, count in sample.counts.items()})

  def _sum(self, name: str, count: int) -> int:
    before = self._counts.get(name, 0)
    added = count - before if count >= before else count
    self._counts[name] = count
    self._sums[name] = self._sums.get(name, 0) + added
    return self._sums[name]


def combine(statuses: Iterable[record.Sample]) -> dict[str, float]:
  """Returns the figures of the newest status and the sums of all counts."""
  statuses = sorted(statuses, key=lambda s: s.time)
  combined = dict(statuses[-1].figures) if statuses else {}
  for name in statuses[-1].counts if statuses else ():
    combined[name] = sum(s.counts.get(name, 0) for s in statuses)
  return combined
