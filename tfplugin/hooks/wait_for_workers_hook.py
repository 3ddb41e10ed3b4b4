# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets the chief stay until the workers have made their last step."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.events import event_log
from tfplugin.hooks import finish_board

tf1 = tf.compat.v1


class WaitForWorkersHook(tf1.train.SessionRunHook):
  """At the end of training, waits until every worker has reported its end.

  For the chief: an export, or the end of the job, after its training then finds
  that nobody still updates the variables. Another task does not wait, nor does
  a chief without workers or ps. Every worker needs a `ReportFinishedHook`.

  A worker that has not reported when the limit is reached is taken to be gone
  for good: the chief warns of it by name, and reports for it, so that the
  parameter servers end.

  Differences from tf.contrib: there the chief left while workers still ran.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig()
    >>> hook = hooks.WaitForWorkersHook(config, time_limit_secs=60.0)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               time_limit_secs: float = 120.0):
    """Prepares the wait.

    Args:
      config: The Estimator's configuration, which knows cluster and task.
      time_limit_secs: How long to wait, in seconds, while no worker makes a
        step. It has to be longer than a step of the slowest worker takes, its
        start included.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._time_limit_secs = time_limit_secs

  def end(self, session: tf1.Session) -> None:
    """Waits; see the class."""
    del session
    wait_or_report(self._task, self._time_limit_secs)


def others_of_chief(task: cluster_task.ClusterTask) -> list[str]:
  """Returns the tasks whose last step the chief waits for.

  Args:
    task: This process; another than the chief waits for nobody.
  """
  if not (task.is_chief and task.num_ps):
    return []
  return [name for name in task.training_tasks if name != task.name]


def wait_for_workers(task: cluster_task.ClusterTask, time_limit_secs: float,
                     while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits, in the chief, until every worker has reported its end.

  Args:
    task: This process; another than the chief does not wait.
    time_limit_secs: How long to wait, in seconds, while no worker makes a step.
    while_waiting: Called between two looks.

  Raises:
    TimeoutError: the limit is reached; the message names the workers.
  """
  workers = others_of_chief(task)
  if not workers:
    return
  with event_log.span('waiting', on=workers):
    finish_board.wait_for_tasks(task.cluster_spec, workers, task.name,
                                time_limit_secs, while_waiting=while_waiting)


def wait_or_report(task: cluster_task.ClusterTask,
                   time_limit_secs: float) -> None:
  """As `wait_for_workers`; at the limit, reports for those that are missing.

  Args:
    task: This process; another than the chief does not wait.
    time_limit_secs: The limit in seconds.
  """
  try:
    wait_for_workers(task, time_limit_secs)
  except TimeoutError as error:
    tf1.logging.warning('%s The training is complete without them.', error)
  workers = others_of_chief(task)
  if workers:
    # Also for a ps that was started again, and knows of nobody.
    finish_board.report_finished(task.cluster_spec, *workers)
