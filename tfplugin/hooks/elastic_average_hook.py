# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts a worker under elastic averaging from the centre."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_start
from tfplugin.optimizers import elastic_average

tf1 = tf.compat.v1


class ElasticAverageHook(tf1.train.SessionRunHook):
  """Gives a worker's copies the centre's values whenever it gets a session.

  The same as `optimizer.make_session_run_hook`. Every worker needs it, and the
  chief; a worker that comes late, or again after a failure, begins where the
  centre is. With `synchronous=True` the workers then wait for each other, once
  in the life of the parameter servers: who comes later does not wait.

  Raises:
    TimeoutError: from `after_create_session`, when the other workers did not
      come within the limit; the message names them.

  Example:
    >>> with tf.Graph().as_default():
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.1), 1, getter)
    ...   hook = ElasticAverageHook(optimizer, task_index=0)
  """

  def __init__(self, optimizer: elastic_average.ElasticAverageOptimizer,
               task_index: int, time_limit_secs: float =
               elastic_start.DEFAULT_TIME_LIMIT_SECS):
    """Prepares the start.

    Args:
      optimizer: The optimizer that trains the model.
      task_index: This worker, in [0, num_worker); the chief is one of them.
      time_limit_secs: How long to wait for the others, in seconds.

    Raises:
      ValueError: an argument is out of range.
    """
    self._hook = optimizer.make_session_run_hook(
        is_chief=task_index == 0, task_index=task_index,
        time_limit_secs=time_limit_secs)

  def begin(self) -> None:
    """Makes the ops, before the graph is finalized."""
    self._hook.begin()

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Copies the centre, and waits for the others if asked to.

    Args:
      session: A session whose variables are initialised.
      coord: Not used.

    Raises:
      TimeoutError: the others did not come in time.
    """
    self._hook.after_create_session(session, coord)
