# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that starts a worker as soon as the chief has initialised variables."""

from __future__ import annotations

import time
from typing import Optional

import tensorflow as tf

from tfplugin.checkpoints import guarded_graphs
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.events import event_log
from tfplugin.hooks.endings import chief_report

tf1 = tf.compat.v1

_POLL_SECS = 0.1
# Ample time for one check; a check of a stopped server is repeated.
_LOOK_SECS = 20.0


class WaitForChiefHook(tf1.train.SessionRunHook):
  """Waits, before a worker's session is made, for the chief's initialisation.

  TensorFlow's own wait checks every 30 s, and an Estimator has no setting for
  it. A worker that starts a moment before the chief's initialisation would lose
  half a minute. This hook checks ten times a second, and ends before that wait
  begins. It does so before each later session too, after a failure. It logs at
  intervals which variables are missing. Only a worker of a cluster with
  parameter servers waits.

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
    time_limit.check(time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._time_limit_secs = time_limit_secs
    self._model_dir = config.model_dir
    self._chief = ''

  def begin(self) -> None:
    """Waits; see the class."""
    if not self._task.trains or self._task.is_chief or not self._task.num_ps:
      return
    self._chief = self._task.training_tasks[0]
    self._missing = tf1.report_uninitialized_variables(tf1.global_variables())
    self._wait()
    guarded_graphs.before_start(self._wait)

  def _wait(self) -> None:
    with event_log.span('waiting', on=[self._chief]):
      self._wait_for_variables()

  def _wait_for_variables(self) -> None:
    patience = time_limit.Patience(self._task.name, self._time_limit_secs)
    while True:
      missing = self._look()
      if missing is not None and not missing.size:
        return
      if missing is None:
        chief_report.check_joined_run(self._task, self._model_dir)
      patience.check(
          f'{self._chief} to initialise the variables; {_what(missing)}',
          'See its log.')
      time.sleep(_POLL_SECS)

  def _look(self):
    """Returns the names of uninitialised variables; None without contact."""
    config = membership.session_config(self._task, tf1.ConfigProto(
        allow_soft_placement=True,
        device_filters=['/job:ps', self._task.device],
        operation_timeout_in_ms=int(
            min(self._time_limit_secs, _LOOK_SECS) * 1000)))
    try:
      with tf1.Session(self._task.master, config=config) as session:
        return session.run(self._missing)
    except (tf.errors.UnavailableError, tf.errors.AbortedError,
            tf.errors.DeadlineExceededError):
      return None


def _what(missing: Optional[object]) -> str:
  if missing is None:
    return 'its session did not reach every parameter server'
  names = ', '.join(sorted(name.decode() for name in missing))
  return f'these variables have no value yet: {names}'
