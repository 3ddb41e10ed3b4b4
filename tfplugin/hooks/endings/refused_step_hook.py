# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A step that the worker's own server has refused does not wait for ever."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import refused_runs

tf1 = tf.compat.v1


class RefusedStepHook(tf1.train.SessionRunHook):
  """Goes on with a new session after a step that waits for ever.

  For the chief and the workers of a cluster with parameter servers;
  `tfplugin.estimator.train_and_evaluate` brings it. Give it as the last hook:
  what hooks after it wait for before a step would count as a part of the step.

  A server refuses one step of 43,000 as another one that was sent twice, from
  its 100,000th step on, since TensorFlow draws their ids from 32 bits. Most
  such steps end with an error, and a MonitoredSession goes on by itself; where
  the worker's own server refuses, nobody tells the others, and TensorFlow waits
  for ever. This hook ends that wait after a while, and says so.

  Differences from tf.contrib: TensorFlow 1.15 draws them from 64 bits.

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
      time_limit_secs: How long a step lasts at least until it is looked at, in
        seconds, the first one of a session ten times as long; doubles each time
        that a step is ended. Slow steps may last longer: they have begun, which
        is what is looked at.

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
    """Begins to watch."""
    self._runs.begin(session, coord)

  def before_run(self, run_context) -> tf1.train.SessionRunArgs:
    """Lets the step write its mark."""
    del run_context
    self._runs.asked()
    return tf1.train.SessionRunArgs(self._runs.mark)

  def after_run(self, run_context, run_values) -> None:
    """The step has been made."""
    del run_context
    self._runs.answered(run_values.results)

  def end(self, session: tf1.Session) -> None:
    """Ends the watch."""
    del session
    self._runs.end()
