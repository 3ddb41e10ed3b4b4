# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes a training's start, speed and counts to the run's events."""

from __future__ import annotations

import time
import types
from collections.abc import Mapping
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.distribute import time_limit
from tfplugin.events import event_log
from tfplugin.events import process
from tfplugin.events import record
from tfplugin.hooks import graph_numbers

tf1 = tf.compat.v1


class EventsHook(tf1.train.SessionRunHook):
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
               max_steps: Optional[int] = None):
    """Prepares the hook; the first event opens the file.

    Args:
      config: The Estimator's configuration, with task and model_dir.
      every_secs: Seconds between two reports during training.
      max_steps: The global step at which the training ends, for the time left;
        None: not reported.

    Raises:
      TypeError: `every_secs` is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(every_secs)
    self._config = config
    self._goal = {} if max_steps is None else {'max_steps': int(max_steps)}
    self._every_secs = every_secs
    self._log: Optional[event_log.EventLog] = None
    self._fetches = {}
    self._distance: Optional[graph_numbers.Distance] = None
    self._staleness: Optional[graph_numbers.Staleness] = None
    self._has_started = False
    self._has_trained = False
    self._num_steps = 0
    self._reported = (0.0, 0)
    self._due = float('-inf')
    self._is_due = False

  def begin(self) -> None:
    """Finds the step, the counters and the figures of the graph."""
    self._log = event_log.current()
    if self._log is None:
      self._log = event_log.EventLog(
          self._config.model_dir, task_name(self._config))
      self._log.write('starting', record.BEGIN, **process.describe())
    self._fetches = graph_numbers.fetches()
    self._distance = graph_numbers.Distance()
    self._staleness = graph_numbers.Staleness()

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Reports the session, as the first one or as a new one."""
    del coord
    step = int(session.run(self._fetches[graph_numbers.STEP]))
    if self._has_started:
      self._log.write('coming_back', what='session', step=step)
    else:
      self._log.write('starting', record.END, step=step)
    self._has_started = True

  def before_run(self, run_context) -> Optional[tf1.train.SessionRunArgs]:
    """Fetches the staleness, if a report is due and the step computes it."""
    self._is_due = time.monotonic() >= self._due
    if not self._is_due:
      return None
    wanted = self._staleness.of_step(run_context.original_args.fetches)
    return tf1.train.SessionRunArgs(wanted) if wanted else None

  def after_run(self, run_context, run_values) -> None:
    """Reports, if a report is due."""
    self._num_steps += 1
    if self._is_due:
      now = time.monotonic()
      self._due = now + self._every_secs
      self._report(run_context.session, now,
                   record.INSTANT if self._has_trained else record.BEGIN,
                   graph_numbers.told(run_values.results))
      self._has_trained = True

  def end(self, session: tf1.Session) -> None:
    """Writes the last report."""
    if self._has_trained:
      self._report(session, time.monotonic(), record.END)
    self._has_trained = False

  def _report(self, session: tf1.Session, now: float, kind: str,
              figures: Mapping[str, int] = types.MappingProxyType({})) -> None:
    values = graph_numbers.read(session, self._fetches)
    step = values.pop(graph_numbers.STEP)
    then, num_steps = self._reported
    self._reported = (now, self._num_steps)
    rate = (self._num_steps - num_steps) / max(now - then, 1e-3)
    self._log.write(
        'training', kind, step=step, num_steps=self._num_steps,
        **(self._goal if kind == record.BEGIN else
           {'steps_per_sec': round(rate, 3)}))
    exchanges = values.pop(per_graph.EXCHANGES, None)
    if exchanges is not None:
      self._log.write('exchanging', step=step, num_exchanges=exchanges,
                      **self._distance.told(session))
    dropping = {**values, **figures}
    if dropping:
      self._log.write('dropping', step=step, **dropping)


def task_name(config: tf.estimator.RunConfig) -> str:
  """Returns the task of a process for events; `chief:0` without a cluster."""
  task = cluster_task.from_config(config)
  # An evaluator also has no cluster.
  is_alone = task.is_alone and task.job == 'worker'
  return 'chief:0' if is_alone else task.name
