# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks for the end of a task: a signal, its report, and a refused step."""

from __future__ import annotations

import signal
import threading
from typing import Callable

import tensorflow as tf

from tfplugin.checkpoints import session_closing
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import refused_runs
from tfplugin.distribute.sessions import session_interception
from tfplugin.events import event_log
from tfplugin.hooks.shutdown import task_records

tf1 = tf.compat.v1

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopInOrderHook(tf1.train.SessionRunHook):
  """Ends the training after the current step on SIGTERM or Ctrl-C.

  The session then ends as after its last step: the chief saves a checkpoint.
  `tfplugin.estimator.train_and_evaluate` adds it. In a program that calls
  another function, call `raise_if_stopped` after the training.

  Signals are held back while there is a session. Before it, they act at once,
  as there is no state to save. A second signal acts at once too. A signal that
  the program handles itself is left alone. So are all signals outside the main
  thread, where Python handles none.

  Differences from tf.contrib: there was no such hook. A signal ended the
  process, and all steps since the last checkpoint were lost.

  Example:
    >>> from tfplugin import hooks
    >>> hook = hooks.StopInOrderHook()
    >>> # estimator.train(input_fn, hooks=[hook])
    >>> hook.raise_if_stopped()
  """

  def __init__(self):
    """Prepares the hook; it handles no signal yet."""
    self._number: int | None = None
    self._previous = {}

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Holds the signals back from now on."""
    del session, coord
    if (self._previous or
        threading.current_thread() is not threading.main_thread()):
      return
    for number in _SIGNALS:
      handler = signal.getsignal(number)
      if handler in (signal.SIG_DFL, signal.default_int_handler):
        self._previous[number] = signal.signal(number, self._note)

  def after_run(self, run_context, run_values) -> None:
    """Ends the training after a signal."""
    del run_values
    if self._number is not None:
      run_context.request_stop()

  def has_stopped(self) -> bool:
    """Returns whether a signal has ended the training."""
    return self._number is not None

  def release(self) -> None:
    """Restores the handlers that the signals had before the hook."""
    while self._previous:
      signal.signal(*self._previous.popitem())

  def raise_if_stopped(self) -> None:
    """Restores the handlers, and raises the exception of a received signal.

    Raises:
      KeyboardInterrupt: the signal was SIGINT.
      SystemExit: it was SIGTERM; the status is 143, as in a shell.
    """
    self.release()
    if self._number == signal.SIGINT:
      raise KeyboardInterrupt
    if self._number is not None:
      raise SystemExit(128 + self._number)

  def _note(self, number: int, frame) -> None:
    del frame
    self._number = number
    self.release()
    event_log.write('stopping', signal=signal.Signals(number).name)


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
    self._time_limit_secs = time_limit.check(
        'time_limit_secs', time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._was_stopped = unless
    self._is_open = membership.read().is_open
    self.has_reported = False
    self._report = self._steps = None

  def begin(self) -> None:
    """Prepares the report at the end of the session; see the class."""
    self._report, self.has_reported = None, False
    self._steps = task_records.StepReport(
        self._task.cluster_spec, self._task.name, is_present=self._is_open)
    session_interception.in_place_of_close(self._close)

  def after_run(self, run_context, run_values) -> None:
    """Counts the step, and reports the number at intervals."""
    del run_context, run_values
    self._steps.count()

  def end(self, session: tf1.Session) -> None:
    """Chooses the report: the session does not close because of a failure."""
    del session
    if not self._was_stopped():
      self._report = task_records.report_finished
    elif self._is_open:
      self._report = task_records.report_left

  def _close(self, close: Callable[[], None]) -> None:
    self._steps.close()
    if self._report is not None:
      self.has_reported = self._report is task_records.report_finished
      self._report(self._task.cluster_spec, self._task.name,
                   time_limit_secs=self._time_limit_secs)
      self._report = None
    session_closing.close_in_time(close)


class RefusedStepHook(tf1.train.SessionRunHook):
  """Continues with a new session after a step that waits for ever.

  For the chief and the workers of a cluster with parameter servers;
  `tfplugin.estimator.train_and_evaluate` adds it. The runs of other hooks count
  as steps do: a saver, for example, reads the global step after each step. The
  hook knows the runs of the thread that makes the steps.

  From its 100,000th step on, a server refuses one step of 43,000 as a repeated
  one: TensorFlow draws step ids from 32 bits. Most such steps end with an
  error, and a MonitoredSession continues by itself; with this hook, also if
  TensorFlow chooses a CancelledError by chance. If the worker's own server
  refuses the step, the other servers are not informed, and TensorFlow waits for
  ever. This hook ends that wait after a while, and logs it.

  Differences from tf.contrib: TensorFlow 1.15 draws step ids from 64 bits.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> tf1 = tf.compat.v1
    >>> with tf.Graph().as_default():
    ...   step = tf1.train.get_or_create_global_step()
    ...   train_op = step.assign_add(1)
    ...   with tf1.train.MonitoredTrainingSession(
    ...       hooks=[hooks.RefusedStepHook()]) as session:
    ...     print(session.run(train_op))
    1
  """

  def __init__(self, time_limit_secs: float = refused_runs.LIMIT_SECS):
    """Prepares the limit.

    Args:
      time_limit_secs: The duration in seconds after which a step is checked. It
        is ten times as long for the first step of a session, and doubles each
        time that a step is ended. Slow steps may last longer: the check is
        whether the step has begun.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    self._limit_secs = time_limit.check('time_limit_secs', time_limit_secs)
    self._runs = None

  def begin(self) -> None:
    """Makes the mark that each run writes; see the class."""
    self._runs = refused_runs.RefusedRuns(limit_secs=self._limit_secs)
    session_interception.in_place_of_run(self._runs.watched)

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Starts the watch."""
    self._runs.begin(session, coord)

  def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
    """Notes the thread that makes the step."""
    del run_context
    self._runs.follow_thread()

  def end(self, session: tf1.Session) -> None:
    """Ends the watch."""
    del session
    self._runs.end()
