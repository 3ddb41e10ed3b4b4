# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks that wait for other tasks: at the start, and for one that has ended."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.checkpoints import run_mark
from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import session_interception
from tfplugin.events import event_log
from tfplugin.hooks.shutdown import chief_report
from tfplugin.hooks.shutdown import contact
from tfplugin.hooks.shutdown import task_records

tf1 = tf.compat.v1

# The wait for the chief: its interval, and ample time for one check; a check of
# a stopped server is repeated.
_POLL_SECS = 0.1
_CHECK_LIMIT_SECS = 20.0
# The interval of checks during the training.
_LOOK_SECS = 5.0
# A process may take this many times as long to start as a step takes.
_CLAIM_TIMES = 5


class WaitForChiefHook(tf1.train.SessionRunHook):
  """Waits, before a worker's session is made, for the chief's initialisation.

  TensorFlow's own wait checks every 30 s, and an Estimator has no setting for
  it. A worker that starts a moment before the chief's initialisation would lose
  half a minute. This hook checks ten times a second, and ends before that wait
  begins. It does so before each later session too, after a failure. It logs at
  intervals which variables are missing. Only a worker of a cluster with
  parameter servers waits. If the chief has a `CheckpointGuardHook`, the wait
  includes the chief's `init_fn`. Before a session it also waits for variables
  that hooks make: the chief needs the same hooks.

  Raises:
    TimeoutError: from `begin`, or when a new session is made, at the limit. The
      message names the chief and the variables without a value.
    RunFinishedError: from the same places, in a worker that joins too late.

  Differences from tf.contrib: there was no such hook.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig(experimental_max_worker_delay_secs=0)
    >>> hook = hooks.WaitForChiefHook(config, time_limit_secs=60.0)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               time_limit_secs: float = 300.0):
    """Prepares the wait.

    Args:
      config: The Estimator's configuration, with cluster, task and master.
      time_limit_secs: The limit in seconds. It must be longer than the chief's
        start takes, including the restoring of a checkpoint.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    self._time_limit_secs = time_limit.check(
        'time_limit_secs', time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._model_dir = config.model_dir
    self._chief = ''

  def begin(self) -> None:
    """Waits; see the class."""
    if not self._task.trains or self._task.is_chief or not self._task.num_ps:
      return
    self._chief = self._task.training_tasks[0]
    self._add_ops(tf1.global_variables())
    self._wait()
    session_interception.on_completion(self._add_variables_of_hooks)
    session_interception.before_start(self._wait)

  def _add_ops(self, variables: Sequence[tf.Variable]) -> None:
    self._num_variables = len(variables)
    self._missing = tf1.report_uninitialized_variables(variables)
    # Read last: initialised variables that an `init_fn` then sets have a mark.
    mark = run_mark.of_graph([self._missing])
    self._mark = tf.constant(0, tf.int64) if mark is None else mark.number

  def _add_variables_of_hooks(self) -> None:
    """Waits for the variables that later hooks have made, too."""
    variables = tf1.global_variables()
    if len(variables) != self._num_variables:
      self._add_ops(variables)

  def _wait(self) -> None:
    patience = time_limit.Patience(self._task.name, self._time_limit_secs)
    with event_log.span('waiting', on=[self._chief]):
      while True:
        missing, mark = self._look()
        if missing is not None and not missing.size and mark >= 0:
          return
        if missing is None:
          chief_report.check_joined_run(self._task, self._model_dir)
        patience.check(
            f'{self._chief} to initialise the variables; {_what(missing)}',
            _remedy(missing))
        time.sleep(_POLL_SECS)

  def _look(self):
    """Returns uninitialised variables and the mark; None, 0 without contact."""
    config = membership.session_config(self._task, tf1.ConfigProto(
        allow_soft_placement=True,
        device_filters=['/job:ps', self._task.device],
        operation_timeout_in_ms=int(
            min(self._time_limit_secs, _CHECK_LIMIT_SECS) * 1000)))
    try:
      with tf1.Session(self._task.master, config=config) as session:
        return session.run([self._missing, self._mark])
    except (tf.errors.UnavailableError, tf.errors.AbortedError,
            tf.errors.DeadlineExceededError):
      return None, 0


def _what(missing: Sequence[bytes] | None) -> str:
  if missing is None:
    return 'its session did not reach every parameter server'
  if not len(missing):
    return 'its `init_fn` has not ended'
  names = ', '.join(sorted(name.decode() for name in missing))
  return f'these variables have no value yet: {names}'


def _remedy(missing: Sequence[bytes] | None) -> str:
  if missing is None or not len(missing):
    return 'See its log.'
  return ('See its log. If it does not make these variables, give it the hook '
          'that makes them, too.')


class KeepContactHook(tf1.train.SessionRunHook):
  """Waits for parameter servers, and ends a worker whose chief is lost.

  For the chief and the workers of a cluster with parameter servers;
  `tfplugin.estimator.train_and_evaluate` adds it. Give it as the first hook.

  * Before each session, also after a failure, it waits until the port of every
    parameter server is open. It logs the missing servers at intervals, and
    gives up at the limit. TensorFlow waits without a message.
  * A worker that joins ends at once if the run has finished meanwhile.
  * A worker whose chief is unreachable up to the limit ends with an error.
    Otherwise it would train on, and no task would save.
  * The chief keeps the reports of workers that have ended, for a parameter
    server that restarts.
  * In a run that workers may join, the chief writes an event when one joins or
    leaves. One that makes no step up to a limit counts as left.

  Raises:
    TimeoutError: from the making of a session or from a step; the message names
      the missing task.
    RunFinishedError: from the same places, in a worker that joins.

  Differences from tf.contrib: there was no such hook.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig()
    >>> hook = hooks.KeepContactHook(config, time_limit_secs=120.0)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               time_limit_secs: float | None = 600.0,
               still_limit_secs: float = 60.0):
    """Prepares the task that `config` describes.

    Args:
      config: The Estimator's configuration, with cluster and task.
      time_limit_secs: How long to wait for an unreachable task, in seconds. It
        must be longer than a restart takes. None waits without limit; use it
        where the ports of tasks cannot be checked.
      still_limit_secs: After how many seconds without a step a worker counts as
        left, where workers may join: longer than a step of the slowest one.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    self._time_limit_secs = time_limit.check(
        'time_limit_secs', time_limit_secs, or_none=True)
    self._still_limit_secs = time_limit.check(
        'still_limit_secs', still_limit_secs)
    self._task = cluster_task.from_config(config)
    self._is_open = membership.read().is_open
    self._check_run = functools.partial(
        chief_report.check_joined_run, self._task, config.model_dir)
    self._present: set[str] = set()
    self._lists = self._chief = None
    self._next_look = float('-inf')

  def begin(self) -> None:
    """Waits for the servers, and prepares the checks; see the class."""
    task = self._task
    if not (task.trains and task.num_ps):
      return
    if self._time_limit_secs is not None:
      if contact.unreachable(task.cluster_spec, [task.name]):
        tf1.logging.warning(
            '%s has no server at its address in `TF_CONFIG`: no session can '
            'reach the other tasks. Start it before the training: `server = '
            'tf.distribute.Server(config.cluster_spec, config.task_type, '
            'config.task_id)`; or use `tfplugin.estimator.train_and_evaluate`.',
            task.name)
      self._wait()
      session_interception.before_start(self._wait)
    if task.is_chief:
      self._lists = task_records.TaskRecords(task.cluster_spec)
    else:
      self._chief = contact.Contact(
          task.cluster_spec, task.training_tasks[0], task.name,
          self._time_limit_secs)

  def before_run(self, run_context) -> None:
    """Checks the chief or the lists at intervals; see the class."""
    del run_context
    if self._chief is not None:
      self._chief.check()
    if self._lists is not None and time.monotonic() >= self._next_look:
      self._lists.keep()
      if self._is_open:
        self._note_present()
      self._next_look = time.monotonic() + _LOOK_SECS

  def _note_present(self) -> None:
    """Writes an event for each worker that has joined or left."""
    lists = self._lists
    lists.drop_still(lists.present, self._still_limit_secs)
    # A process that never began frees its place.
    lists.drop_still(lists.claimed, _CLAIM_TIMES * self._still_limit_secs)
    lists.count_present()
    for name in sorted(lists.present - self._present):
      event_log.write('joined', worker=name)
    for name in sorted(self._present - lists.present):
      event_log.write('left', worker=name)
    self._present = lists.present

  def _wait(self) -> None:
    contact.wait_for_servers(self._task.cluster_spec, self._task.name,
                             self._time_limit_secs, self._check_run)

  def end(self, session: tf1.Session) -> None:
    """Ends the checks."""
    del session
    if self._lists is not None:
      self._lists.close()


class AbsentWorkersHook(tf1.train.SessionRunHook):
  """Warns, in the chief, of a default that absent workers make too small.

  The default moving rate of elastic averaging is 0.9 / period / workers, for
  all workers in the cluster's description. If few of them run, the centre
  hardly follows them. The chief logs one warning, and changes no number.
  """

  def __init__(self, task: cluster_task.ClusterTask, after_secs: float = 60.0):
    """Prepares to count, `after_secs` seconds after the first session is made.

    Workers may start a little later than the chief. Other tasks do not count.
    """
    self._task = task
    self._after_secs = after_secs
    self._timer = None

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Starts a timer thread: some addresses take long to fail."""
    del session, coord
    counted = per_graph.current().counted_workers
    if self._task.is_chief and self._task.num_ps and counted and (
        self._timer is None):
      self._timer = threading.Timer(self._after_secs, self._count, [counted])
      self._timer.daemon = True
      self._timer.start()

  def end(self, session: tf1.Session) -> None:
    """Stops the timer."""
    del session
    if self._timer is not None:
      self._timer.cancel()

  def _count(self, counted: int) -> None:
    others = self._task.others
    away = contact.unreachable(self._task.cluster_spec, others)
    here = len(others) + 1 - len(away)
    if away and here < counted:
      tf1.logging.warning(
          'The default moving rate of elastic averaging is for %d workers, and '
          '%d take part: the centre follows them %.3g times more slowly than '
          'with the rate for their number. Pass `num_worker=%d` or a '
          '`moving_rate` if the others will not start. Missing: '
          '%s.', counted, here, counted / here, here,
          ', '.join(away[:5]) + ', ...' * bool(away[5:]))
