# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Start of a worker with an `ElasticAverageOptimizer`, by a session hook."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.elastic.values import first_values
from tfplugin.distribute.elastic.values import unaveraged_values
from tfplugin.distribute.sessions import prompt_start
from tfplugin.distribute.sessions import session_interception

tf1 = tf.compat.v1


class ElasticInitialization(separate_run.ExchangeThreads):
  """Hook that starts a worker from the centre whenever it gets a session.

  So a worker that starts late, or restarts, begins where the others are. With a
  barrier it then announces itself and waits for the others, once in the life of
  the parameter servers. It runs the exchanges.
  """

  def __init__(
      self, optimizer: Any, task_index: int,
      time_limit_secs: float = elastic_start.DEFAULT_TIME_LIMIT_SECS, *,
      is_chief: bool = False):
    """Prepares the start.

    Args:
      optimizer: The `ElasticAverageOptimizer` that trains the model.
      task_index: This worker, in [0, num_worker); the chief is one of them.
      time_limit_secs: How long to wait for the others, in seconds.
      is_chief: Whether the other workers start from the values that this worker
        writes before the first step. They always do with the first worker.

    Raises:
      TypeError: `task_index` is no integer.
      ValueError: An argument is out of range.
    """
    elastic_start.check_start(task_index, optimizer.num_worker, time_limit_secs)
    super().__init__(optimizer.runs)
    self._optimizer = optimizer
    self._task_index = task_index
    self._time_limit_secs = time_limit_secs
    self._waits = bool(task_index and not is_chief)

  def begin(self) -> None:
    """Adds the ops, before the graph is finalized."""
    self._init_op, barrier, pairs = self._optimizer.start_from_center()
    super().begin()  # The exchanges are complete.
    if self._waits:
      prompt_start.check_chief_initializes(pairs[0].local.device)
    self._first = self._make_first_values(pairs)
    tf1.logging.info('Elastic averaging: %s.', unaveraged_values.describe(
        pairs, [values.unaveraged for values in self._optimizer.unaveraged],
        ()))  # The getter makes all state local.
    self._arrived = barrier and barrier.arrived()
    self._announce = barrier and barrier.announce(self._task_index)
    if self._waits:
      with tf1.device(pairs[0].local.device):
        prompt_start.add_ready_op(next(iter(
            cluster_task.from_environment().training_tasks), 'the chief'))

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Copies the centre; a TimeoutError names workers that did not start."""
    self._first.after_create_session(session, coord)
    session.run(self._init_op)
    if not self._waits:
      self._first.note(session)
    if self._arrived is not None:
      session.run(self._announce)
      elastic_start.wait_until(
          lambda: session.run(self._arrived), self._task_index,
          self._time_limit_secs)
    super().after_create_session(session, coord)

  def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
    """Copies, before the first step, the values that other hooks wrote."""
    self._first.before_run(run_context)
    super().before_run(run_context)

  def end(self, session: tf1.Session) -> None:
    """Ends the exchanges; warns if no step has reached the centre."""
    self._first.end(session)
    super().end(session)

  def _make_first_values(self, pairs) -> tf1.train.SessionRunHook:
    """Returns the first part of this hook: it shares what the chief writes."""
    server, device = pairs[0].center.device, pairs[0].local.device
    signal = None
    if server and server != device:
      signal = first_values.create_signal(
          server, not self._waits, is_awaited=False)
    if not self._waits:
      hook = first_values.FirstValues(pairs, device, signal)
      hook.begin()
      session_interception.in_place_of_init_fn(hook.hand_on)
      return hook
    if signal is None:
      return tf1.train.SessionRunHook()
    return first_values.FollowFirstValues(
        (), signal, 'the chief', f'Worker {self._task_index}',
        self._time_limit_secs)
