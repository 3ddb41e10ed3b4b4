# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that keeps the chief until the workers have made their last step."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.events import event_log
from tfplugin.hooks import finish_board

tf1 = tf.compat.v1


class WaitForWorkersHook(tf1.train.SessionRunHook):
  """At the end of training, waits until every worker has reported its end.

  For the chief: when its training returns, no worker updates the variables any
  more. An export, or the end of the job, may follow. Other tasks do not wait,
  nor does a chief without workers or ps. Every worker needs a
  `ReportFinishedHook`.

  A worker that has not reported at the limit counts as lost. The chief warns
  with its name, and reports for it, so that the parameter servers end. In a run
  that workers may join, the chief waits for those that are present.

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
      config: The Estimator's configuration, with cluster and task.
      time_limit_secs: How long to wait, in seconds, while no worker makes a
        step. It must be longer than a step of the slowest worker takes,
        including its start.

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
  """Returns the other training tasks for the chief; [] in any other task."""
  if not (task.is_chief and task.num_ps):
    return []
  return [name for name in task.training_tasks if name != task.name]


def awaits_others(task: cluster_task.ClusterTask) -> bool:
  """Returns whether the task is a chief that trains with others."""
  return bool(others_of_chief(task)) or bool(
      task.is_chief and task.num_ps and membership.read().is_open)


def wait_for_workers(task: cluster_task.ClusterTask, time_limit_secs: float,
                     while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits, in the chief, until every worker has reported its end.

  `time_limit_secs` counts from the last step of any worker. `while_waiting` is
  called between two reads of the lists. Raises TimeoutError at the limit; the
  message names the workers.
  """
  workers = others_of_chief(task)
  if membership.read().is_open and awaits_others(task):
    with event_log.span('waiting', on=workers):
      finish_board.wait_for_present(task.cluster_spec, workers, task.name,
                                    time_limit_secs, while_waiting)
    return
  if not workers:
    return
  with event_log.span('waiting', on=workers):
    finish_board.wait_for_tasks(task.cluster_spec, workers, task.name,
                                time_limit_secs, while_waiting=while_waiting)


def wait_or_report(task: cluster_task.ClusterTask,
                   time_limit_secs: float) -> None:
  """Calls `wait_for_workers`; at the limit, reports for the missing workers."""
  try:
    wait_for_workers(task, time_limit_secs)
  except TimeoutError as error:
    tf1.logging.warning('%s The training is complete without them.', error)
  workers = others_of_chief(task)
  if workers:
    # Also for a ps that restarted, and has an empty list.
    finish_board.report_finished(task.cluster_spec, *workers)
