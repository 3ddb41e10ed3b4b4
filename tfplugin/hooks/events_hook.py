# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes a training's start, speed and counts to the run's events."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.events import event_log
from tfplugin.events import process
from tfplugin.events import record
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1


class EventsHook(telemetry_hook.TelemetryHook):
  """Writes a task's training progress to `model_dir/events/<task>.jsonl`.

  `tfplugin.estimator.train_and_evaluate` adds it. In a program that calls
  another function, give it to every task that trains. docs/events.md lists the
  events. Once in `every_secs` it reads the global step, the counters and the
  figures of wrappers. In other steps it only reads the clock.

  Differences from tf.contrib: there was no such hook.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> hook = hooks.EventsHook(tf.estimator.RunConfig(model_dir='a_model_dir'))
  """

  def __init__(self, config: tf.estimator.RunConfig, every_secs: float = 5.0,
               max_steps: int | None = None):
    """Prepares the hook; the first event opens the file.

    Args:
      config: The Estimator's configuration, with task and model_dir.
      every_secs: Seconds between two reports during training.
      max_steps: The global step at which the training ends, for the time left;
        None: not reported.

    Raises:
      TypeError: `every_secs` is not a number.
      ValueError: it is not positive, or not finite; or `config` names no
        model_dir.
    """
    super().__init__(EventsSink(config, max_steps), every_secs=every_secs)
    telemetry_hook.check_model_dir(config)


class EventsSink(telemetry_hook.Sink):
  """Writer of reports as events of the task."""

  def __init__(self, config: tf.estimator.RunConfig,
               max_steps: int | None = None):
    """Stores the settings of `EventsHook`."""
    self._config = config
    self._first = {} if max_steps is None else {'max_steps': int(max_steps)}
    self._end: Mapping[str, bool] = {}
    self._log: event_log.EventLog | None = None
    self._step: tf.Variable | None = None
    self._distance: telemetry_hook.Distance | None = None
    self._staleness: telemetry_hook.Staleness | None = None
    self._has_started = False
    self._has_trained = False

  def begin(self) -> None:
    """Finds the log, the step and the figures of the graph."""
    self._log = event_log.current()
    if self._log is None:
      self._end = {record.ENDS_TASK: True}
      self._log = event_log.EventLog(
          self._config.model_dir, task_name(self._config))
      self._log.write('starting', record.BEGIN, **process.describe())
    self._step = tf1.train.get_global_step()
    self._first['step_counts'] = (
        'exchanges' if per_graph.current().step_counts_exchanges else
        'batches' if cluster_task.from_config(self._config).num_ps else
        'rounds')
    self._distance = telemetry_hook.Distance()
    self._staleness = telemetry_hook.Staleness()

  def begin_session(self, session: tf1.Session) -> None:
    """Writes that the session is ready, or that there is a new one."""
    step = int(session.run(self._step))
    if self._has_started:
      self._log.write('coming_back', what='session', step=step)
    else:
      self._log.write('starting', record.END, step=step)
    self._has_started = True

  def fetches(self, asked: Any, is_due: bool) -> list[tf.Tensor] | None:
    """Returns the staleness, if a report is due and the step computes it."""
    return self._staleness.of_step(asked) or None if is_due else None

  def write(self, report: telemetry_hook.Report,
            fetched: list[int] | None) -> None:
    """Writes a report as events."""
    kind = record.INSTANT if self._has_trained else record.BEGIN
    self._write(report, kind, telemetry_hook.most_stale(fetched))
    self._has_trained = True

  def end(self, report: telemetry_hook.Report) -> None:
    """Writes the last report, unless there was no step."""
    if self._has_trained:
      self._write(report, record.END)
    self._has_trained = False

  def _write(self, report: telemetry_hook.Report, kind: str,
             figures: Mapping[str, int] = types.MappingProxyType({})) -> None:
    figures = {**report.values, **figures}
    step = figures.pop(telemetry_hook.STEP)
    if kind != record.END:
      self._write_training(report, kind, step)
    exchanges = figures.pop(per_graph.EXCHANGES, None)
    if exchanges is not None:
      self._log.write('exchanging', step=step, num_exchanges=exchanges,
                      **self._distance.read(report.session))
    if figures:
      self._log.write('dropping', step=step, **figures)
    # The end is the last event: the process may begin another training.
    if kind == record.END:
      self._write_training(report, kind, step)

  def _write_training(self, report: telemetry_hook.Report, kind: str,
                      step: int) -> None:
    self._log.write(
        'training', kind, step=step, num_steps=report.num_steps,
        **(self._first if kind == record.BEGIN else
           {'steps_per_sec': round(report.steps_per_sec, 3)}),
        **(self._end if kind == record.END else {}))


def task_name(config: tf.estimator.RunConfig) -> str:
  """Returns the task of a process for events; `chief:0` without a cluster."""
  task = cluster_task.from_config(config)
  # An evaluator also has no cluster.
  is_alone = task.is_alone and task.job == 'worker'
  return 'chief:0' if is_alone else task.name
