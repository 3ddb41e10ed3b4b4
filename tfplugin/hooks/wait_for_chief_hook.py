# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets a worker begin as soon as the chief has initialised the variables."""

from __future__ import annotations

import time
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.events import event_log

tf1 = tf.compat.v1

_POLL_SECS = 0.1


class WaitForChiefHook(tf1.train.SessionRunHook):
  """Waits, before a worker's session is made, for the chief's initialisation.

  TensorFlow's own wait looks every 30 s, with no way to say otherwise through
  an Estimator: a worker that loses the race against the chief by a moment
  begins half a minute late. This hook looks ten times a second and is done
  before that wait begins. Only a worker of a cluster with parameter servers
  waits.

  Raises:
    TimeoutError: from `begin`, when the limit is reached; the message names the
      chief and the variables that lack their initial value.

  Differences from tf.contrib: there was none.

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
      config: The Estimator's configuration, which knows cluster, task and
        master.
      time_limit_secs: The limit in seconds. It has to be longer than the
        chief's start takes, the restoring of a checkpoint included.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(time_limit_secs)
    self._task = cluster_task.from_config(config)
    self._time_limit_secs = time_limit_secs

  def begin(self) -> None:
    """Waits; see the class."""
    if self._task.job != 'worker' or not self._task.num_ps:
      return
    missing_names = tf1.report_uninitialized_variables(tf1.global_variables())
    with event_log.span('waiting', on=['chief:0']):
      self._wait(missing_names)

  def _wait(self, missing_names: tf.Tensor) -> None:
    start = time.monotonic()
    while True:
      missing = self._look(missing_names)
      if missing is not None and not missing.size:
        return
      if time.monotonic() - start > self._time_limit_secs:
        raise TimeoutError(self._message(missing))
      time.sleep(_POLL_SECS)

  def _look(self, missing_names: tf.Tensor):
    """Returns the names of uninitialised variables; None without contact."""
    config = tf1.ConfigProto(
        allow_soft_placement=True,
        device_filters=['/job:ps', self._task.device],
        operation_timeout_in_ms=int(self._time_limit_secs * 1000))
    try:
      with tf1.Session(self._task.master, config=config) as session:
        return session.run(missing_names)
    except (tf.errors.UnavailableError, tf.errors.AbortedError,
            tf.errors.DeadlineExceededError):
      return None

  def _message(self, missing: Optional[object]) -> str:
    what = 'its session reached not every parameter server'
    if missing is not None:
      names = ', '.join(sorted(name.decode() for name in missing))
      what = f'these variables have no value yet: {names}'
    return (f'{self._task.name} waited {self._time_limit_secs:g} s for chief:0 '
            f"to initialise the variables; {what}. Look into the chief's log.")
