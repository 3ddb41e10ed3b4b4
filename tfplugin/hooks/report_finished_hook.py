# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tells the parameter servers of this task's steps, and of its last one."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfplugin.checkpoints import guarded_graphs
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.hooks import finish_board
from tfplugin.hooks.endings import closing

tf1 = tf.compat.v1


class ReportFinishedHook(tf1.train.SessionRunHook):
  """Tells every parameter server, at the end, that this task is done.

  For the chief and the workers. The parameter servers run
  `run_parameter_server`, which ends when all of them have reported; the chief
  waits for the others by `WaitForWorkersHook`.

  It tells every few seconds how many steps the task has made: the chief waits
  as long as a worker steps. It reports when every hook has ended, and before
  the session is closed, which may take long; a session is given 5 seconds to
  close. A task that finds the work done makes no session and calls no hook.
  Where you can, call `tfplugin.estimator.train_and_evaluate`, which has no such
  caveat.

  Attributes:
    has_reported: Whether the task has.

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
      config: The Estimator's configuration, which knows cluster and task.
      time_limit_secs: How long to try to reach each ps, in seconds.
      unless: Says at the end whether the task was stopped before its last step,
        and may come back.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._time_limit_secs = time_limit_secs
    self._was_stopped = unless
    self._has_ended = self.has_reported = False
    self._steps = None

  def begin(self) -> None:
    """Meets the end of the session; see the class."""
    self._has_ended = self.has_reported = False
    self._steps = finish_board.StepReport(
        self._task.cluster_spec, self._task.name)
    guarded_graphs.in_place_of_close(self._close)

  def after_run(self, run_context, run_values) -> None:
    """Counts the step, and tells of it now and then."""
    del run_context, run_values
    self._steps.count()

  def end(self, session: tf1.Session) -> None:
    """Notes that it is no failure that closes the session."""
    del session
    self._has_ended = not self._was_stopped()

  def _close(self, close: Callable[[], None]) -> None:
    self._steps.close()
    if self._has_ended and not self.has_reported:
      self.has_reported = True
      finish_board.report_finished(
          self._task.cluster_spec, self._task.name,
          time_limit_secs=self._time_limit_secs)
    closing.close_in_time(close)
