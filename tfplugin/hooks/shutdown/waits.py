# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Waits at the end of a run, for the last steps of other tasks.

In `train_and_evaluate` a chief waits twice. Both limits count from the last
step of any worker:
  1. Before the last checkpoint, up to half of `finish_limit_secs`
     (`LastSteps`). At the limit it saves all the same.
  2. After it, up to the whole (`wait_or_report`). At the limit it reports for
     the missing workers, so that the parameter servers end.

A parameter server ends when all have reported (`run_parameter_server`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import server_options
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.hooks.shutdown import contact
from tfplugin.hooks.shutdown import lost_peers
from tfplugin.hooks.shutdown import task_records

tf1 = tf.compat.v1


class WaitForWorkersHook(tf1.train.SessionRunHook):
  """At the end of training, waits until every worker has reported its end.

  For the chief: when its training returns, no worker updates the variables any
  more. An export, or the end of the job, may follow. Other tasks do not wait,
  nor does a chief without workers or ps. Every worker needs a
  `ReportFinishedHook`.

  A worker that has not reported at the limit counts as lost. The chief warns
  with its name, and reports for it, so that the parameter servers end. In a run
  that workers may join, the chief waits for the workers that are present.

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
    self._time_limit_secs = time_limit.check(
        'time_limit_secs', time_limit_secs)
    self._task = cluster_task.from_config(config)

  def end(self, session: tf1.Session) -> None:
    """Waits; see the class."""
    del session
    wait_or_report(self._task, self._time_limit_secs)


def others_of_chief(task: cluster_task.ClusterTask) -> list[str]:
  """Returns the other training tasks for the chief; [] in any other task."""
  return task.others if task.is_chief and task.num_ps else []


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
  if not awaits_others(task):
    return
  workers = others_of_chief(task)
  wait = wait_for_present if membership.read().is_open else wait_for_tasks
  with event_log.span('waiting', on=workers):
    wait(task.cluster_spec, workers, task.name, time_limit_secs,
         while_waiting=while_waiting)


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
    task_records.report_finished(task.cluster_spec, *workers)


def wait_for_tasks(cluster_spec: tf.train.ClusterSpec,
                   awaited: Iterable[str],
                   who: str,
                   time_limit_secs: float | None,
                   ps_index: int | None = None,
                   while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits until all the `awaited` tasks are on a list.

  `who` is the waiting task, for the error. `time_limit_secs` None waits without
  limit and without messages. With a `ps_index` only the list of that ps is
  read. With None all lists are read and repaired, and each step of an awaited
  task restarts the limit. `while_waiting` is called between two reads. Raises
  TimeoutError at the limit; the message names the missing tasks.
  """
  awaited = set(awaited)
  patience = time_limit_secs and time_limit.Patience(who, time_limit_secs)
  steps = {}
  with contextlib.closing(
      task_records.TaskRecords(cluster_spec, ps_index)) as lists:
    while awaited - lists.keep():
      if patience:
        if ps_index is None and lists.steps != steps:
          patience.restart()
        steps = dict(lists.steps)
        missing = ', '.join(sorted(awaited - lists.known))
        patience.check(f'the last step of {missing}',
                       'See their logs; if their steps take that long, raise '
                       'the time limit.')
      while_waiting()
      time.sleep(task_records.POLL_SECS)


def wait_for_present(cluster_spec: tf.train.ClusterSpec,
                     expected: Iterable[str], who: str, time_limit_secs: float,
                     while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits until no task is present, in a run that workers may join.

  The tasks `expected` are awaited before they were ever present, too. A
  task whose steps stand still up to the limit counts as left, with a
  warning. `while_waiting` is called between two reads.
  """
  expected = set(expected)
  patience = time_limit.Patience(who, None)
  with contextlib.closing(task_records.TaskRecords(cluster_spec)) as lists:
    while True:
      lists.keep()
      missing = (expected | lists.present) - lists.known
      if not missing:
        return
      lists.drop_still(missing, time_limit_secs)
      patience.check(f'the last step of {", ".join(sorted(missing))}', '')
      while_waiting()
      time.sleep(task_records.POLL_SECS)


class LastSteps:
  """Waits until no other task trains any more, for any reason.

  Saving takes no lock. A checkpoint that is written while workers train may
  hold a variable between its update and its clip. It may be named after another
  step than it holds, and lacks the steps in flight.

  The wait can only delay the save. At its limit the checkpoint is saved all the
  same. A worker may be waiting for the chief, whose session then continues to
  its end. The later wait at the end of training handles a worker that does not
  end.
  """

  def __init__(self, task: cluster_task.ClusterTask, max_steps: int | None,
               time_limit_secs: float,
               has_stopped: Callable[[], bool] = bool):
    """Prepares the wait, for the chief only.

    `max_steps` is the global step at which training ends, or None.
    `time_limit_secs` counts from the last step of any worker. `has_stopped`
    returns whether a signal asks for the end; then there is no wait.
    """
    self._task = task
    self._max_steps = max_steps
    self._time_limit_secs = time_limit_secs
    self._has_stopped = has_stopped

  def comes_after(self, global_step: int) -> bool:
    """Returns whether a checkpoint of this step waits for the end."""
    return (self._max_steps is not None and global_step >= self._max_steps and
            self.awaits_others())

  def awaits_others(self) -> bool:
    """Returns whether this is a chief that trains with others."""
    return awaits_others(self._task)

  def wait(self, while_waiting: Callable[[], None]) -> None:
    """Waits; calls `while_waiting` between two checks.

    Raises LostPeerError if a parameter server has lost its variables meanwhile.
    """

    def look():
      if self._has_stopped():
        raise _StoppedError
      while_waiting()

    try:
      look()
      wait_for_workers(self._task, self._time_limit_secs, look)
    except (tf.errors.AbortedError, tf.errors.UnavailableError,
            tf.errors.FailedPreconditionError) as e:
      raise lost_peers.loss(
          f'{self._task.name} lost a parameter server while it waited for the '
          f'last steps of the workers. Received: {e.message} Restart this '
          'task; it continues from the newest checkpoint.') from e
    except _StoppedError:
      tf1.logging.info('%s does not wait for the workers: a signal stopped it.',
                       self._task.name)
    except TimeoutError as error:
      tf1.logging.warning('%s The checkpoint is saved as it is.', error)


class _StoppedError(Exception):
  """A signal asks for the end."""


def run_parameter_server(config: tf.estimator.RunConfig,
                         time_limit_secs: float | None = None,
                         contact_limit_secs: float | None = 600.0) -> None:
  """Serves until the chief and every worker have reported their end.

  Call it in place of `tf.estimator.train_and_evaluate`, which never returns in
  a parameter server. Chief and workers need a `ReportFinishedHook` each. The
  server lives as long as the process.

  Args:
    config: The Estimator's configuration in a task of type `ps`.
    time_limit_secs: How long to serve at most, in seconds; None: no limit.
    contact_limit_secs: How long to serve, in seconds, while the port of the
      chief is closed: without a chief no task saves, or reports the end. None:
      no limit.

  Raises:
    TypeError: a limit is not a number.
    ValueError: a limit is not positive and finite, or the task is not a `ps`.
    TimeoutError: a limit is reached; the message names the tasks that have not
      reported, or the chief.

  Differences from tf.contrib: there a parameter server never ended.
  """
  time_limit.check('time_limit_secs', time_limit_secs, or_none=True)
  time_limit.check('contact_limit_secs', contact_limit_secs, or_none=True)
  task = cluster_task.from_config(config)
  if task.job != 'ps':
    raise ValueError('`config` must describe a task of type `ps`. Received: '
                     f'{task.job!r}. Call `tf.estimator.train_and_evaluate` in '
                     'the other tasks.')
  # The name keeps the server alive while this function waits.
  server = tf.distribute.Server(
      task.cluster_spec,
      job_name='ps',
      task_index=task.index,
      config=server_options.of_session(config.session_config),
      protocol=config.protocol)
  tf1.logging.info('Serving at %s until the work is done.', server.target)
  if membership.read().is_open:
    task_records.publish(task.cluster_spec, task.index,
                         membership.description(task.cluster_spec))
  chief = contact.Contact(task.cluster_spec, task.training_tasks[0], task.name,
                          contact_limit_secs)
  event_log.write('starting', record.END)
  with event_log.span('waiting', on=task.training_tasks):
    wait_for_tasks(
        task.cluster_spec,
        task.training_tasks,
        task.name,
        time_limit_secs,
        ps_index=task.index,
        while_waiting=chief.check)
