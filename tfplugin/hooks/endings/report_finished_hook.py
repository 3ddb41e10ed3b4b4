# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that reports this task's steps, and its end, to parameter servers."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfplugin.checkpoints import guarded_graphs
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.hooks.endings import task_records

tf1 = tf.compat.v1


class ReportFinishedHook(tf1.train.SessionRunHook):
  """Reports to every parameter server that this task has finished.

  For the chief and the workers. The parameter servers call
  `run_parameter_server`, which ends when all of them have reported. The chief
  waits for the others by `WaitForWorkersHook`.

  Every few seconds it reports the task's number of steps: the chief waits as
  long as a worker makes steps. It reports the end after every hook has ended,
  and before the session is closed. Closing takes 5 seconds at most. A task that
  finds the work done makes no session and calls no hook. In a run that workers
  may join it also reports that the task is present and, after a signal, that it
  has left. Where you can, call
  `tfplugin.estimator.train_and_evaluate`, which reports in that case too.

  Attributes:
    has_reported: Whether the task has reported its end.

  Differences from tf.contrib: there a parameter server never ended.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig()
    >>> hook = hooks.ReportFinishedHook(config)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               time_limit_secs: float = 30.0,
               unless: Callable[[], bool] = bool):
    """Prepares the report of the task that `config` describes.

    Args:
      config: The Estimator's configuration, with cluster and task.
      time_limit_secs: How long to try to reach each ps, in seconds.
      unless: Called at the end; returns whether the task was stopped before its
        last step, and may restart. Then it reports nothing.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._time_limit_secs = time_limit_secs
    self._was_stopped = unless
    self._is_open = membership.read().is_open
    self._has_ended = self._has_left = self.has_reported = False
    self._steps = None

  def begin(self) -> None:
    """Prepares the report at the end of the session; see the class."""
    self._has_ended = self._has_left = self.has_reported = False
    self._steps = task_records.StepReport(
        self._task.cluster_spec, self._task.name, is_present=self._is_open)
    guarded_graphs.in_place_of_close(self._close)

  def after_run(self, run_context, run_values) -> None:
    """Counts the step, and reports the number at intervals."""
    del run_context, run_values
    self._steps.count()

  def end(self, session: tf1.Session) -> None:
    """Notes that the session does not close because of a failure."""
    del session
    self._has_ended = not self._was_stopped()
    self._has_left = self._is_open and not self._has_ended

  def _close(self, close: Callable[[], None]) -> None:
    self._steps.close()
    if self._has_ended and not self.has_reported:
      self.has_reported = True
      task_records.report_finished(
          self._task.cluster_spec, self._task.name,
          time_limit_secs=self._time_limit_secs)
    if self._has_left:
      task_records.report_left(
          self._task.cluster_spec, self._task.name,
          time_limit_secs=self._time_limit_secs)
    guarded_graphs.close_in_time(close)
