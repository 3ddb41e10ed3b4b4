# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that ends the wait for a step that the worker's server has refused."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import refused_runs

tf1 = tf.compat.v1


class RefusedStepHook(tf1.train.SessionRunHook):
  """Continues with a new session after a step that waits for ever.

  For the chief and the workers of a cluster with parameter servers;
  `tfplugin.estimator.train_and_evaluate` adds it. Give it as the last hook: the
  time that later hooks wait before a step would count as a part of the step.

  From its 100,000th step on, a server refuses one step of 43,000 as a repeated
  one: TensorFlow draws step ids from 32 bits. Most such steps end with an
  error, and a MonitoredSession continues by itself. If the worker's own server
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
    time_limit.check(time_limit_secs)
    self._limit_secs = time_limit_secs
    self._runs = None

  def begin(self) -> None:
    """Makes the mark that each step writes; see the class."""
    self._runs = refused_runs.RefusedRuns(limit_secs=self._limit_secs)

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Starts the watch."""
    self._runs.begin(session, coord)

  def before_run(self, run_context) -> tf1.train.SessionRunArgs:
    """Adds the mark to the step."""
    del run_context
    self._runs.asked()
    return tf1.train.SessionRunArgs(self._runs.mark)

  def after_run(self, run_context, run_values) -> None:
    """Notes that the step has ended."""
    del run_context
    self._runs.answered(run_values.results)

  def end(self, session: tf1.Session) -> None:
    """Ends the watch."""
    del session
    self._runs.end()
