# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How a worker begins: from the centre, and with the others if asked to."""

from __future__ import annotations

import numbers
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import optimizer_interception
from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import start_barrier
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

DEFAULT_TIME_LIMIT_SECS = 300.0


def check_context() -> None:
  """Raises unless ops go, at the outermost, into a graph without strategy.

  Raises:
    RuntimeError: they are executed, traced for a tf.function or replicated.
  """
  with tf.init_scope():
    is_eager = tf.executing_eagerly()
  if is_eager or optimizer_interception.in_strategy():
    where = 'eager execution or tf.function' if is_eager else 'a strategy'
    raise RuntimeError(
        'ElasticAverageOptimizer works in a graph without a strategy. '
        f'Received: a call in {where}. Use '
        '`tfplugin.distribute.ElasticAverageStrategy` there, with '
        'the bare optimizer.')


def _check_task_index(task_index: int, num_worker: int) -> None:
  """Raises unless `task_index` is that of one of the workers.

  Args:
    task_index: What the user passed.
    num_worker: How many workers there are.

  Raises:
    TypeError: it is not an integer.
    ValueError: it is out of range.
  """
  if isinstance(task_index, bool) or not isinstance(
      task_index, numbers.Integral):
    raise TypeError('`task_index` must be an integer. '
                    f'Received: {task_index!r}. Pass 0 for the chief.')
  if not 0 <= task_index < num_worker:
    raise ValueError(
        f'`task_index` must be in [0, `num_worker`), here [0, {num_worker}). '
        f'Received: {task_index!r}. Count the chief as one of the workers.')


def follow_warm_start(
    pairs: list[elastic_custom_getter.CenteredVariable]) -> None:
  """Gives the centres what a warm start gave the copies.

  To be called before the ops that initialise variables are made.

  Args:
    pairs: The averaged variables.
  """
  for pair in pairs:
    if pair.local.initializer is not pair.initializer:
      _tf_internals.initialize_from(pair.center, pair.local.initializer)


class ElasticStart:
  """How the workers of one optimizer begin."""

  def __init__(self,
               getter: elastic_custom_getter.ElasticAverageCustomGetter,
               local_center_and_center: Callable, num_worker: int,
               synchronous: bool):
    """Remembers what is to start, which need not exist yet.

    Args:
      getter: Knows the averaged variables.
      local_center_and_center: Returns, for one of them, a list of one pair of
        variables, or of none.
      num_worker: How many workers there are.
      synchronous: Whether they start together.
    """
    self._getter = getter
    self._local_center_and_center = local_center_and_center
    self._num_worker = num_worker
    self._synchronous = bool(synchronous)

  def init_op(self, task_index: int, time_limit_secs: float) -> tf.Operation:
    """Returns the op that starts a worker; see `get_init_op`.

    Args:
      task_index: The worker.
      time_limit_secs: The limit of the wait.
    """
    _check_task_index(task_index, self._num_worker)
    time_limit.check(time_limit_secs)
    start = self.copy_from_center()
    barrier = self.make_barrier()
    if barrier is None:
      return start
    with tf1.control_dependencies([start]):
      announced = barrier.announce(task_index)
    with tf1.control_dependencies([announced]):
      return tf.group(barrier.wait(task_index, time_limit_secs))

  def hook(self, task_index: int,
           time_limit_secs: float) -> ElasticInitialization:
    """Returns the hook that starts a worker; see `make_session_run_hook`.

    Args:
      task_index: The worker.
      time_limit_secs: The limit of the wait.
    """
    _check_task_index(task_index, self._num_worker)
    time_limit.check(time_limit_secs)
    return ElasticInitialization(self, task_index, time_limit_secs)

  def copy_from_center(self) -> tf.Operation:
    """Returns an op that gives all local variables their centres' values."""
    updates = []
    pairs = self._getter.model_pairs('get_init_op()')
    follow_warm_start(pairs)
    for pair in pairs:
      value = pair.center.read_value()
      copies = [pair.local,
                *(copy for copy, _ in self._local_center_and_center(pair))]
      updates += [copy.assign(value, read_value=False) for copy in copies]
    return tf.group(*updates)

  def make_barrier(self) -> Optional[start_barrier.StartBarrier]:
    """Returns what the workers wait at, or None."""
    if not self._synchronous:
      return None
    # The first centre of every worker's graph is on the same server.
    device = self._getter.model_pairs('get_init_op()')[0].center.device
    return start_barrier.StartBarrier(self._num_worker, device)


class ElasticInitialization(tf1.train.SessionRunHook):
  """Starts a worker from the centre each time that it gets a session.

  A worker that comes late, or again, thus begins where the others are. With a
  barrier it then says that it is ready, and waits for the others, once in the
  life of the parameter servers.
  """

  def __init__(self, start: ElasticStart, task_index: int,
               time_limit_secs: float):
    """Prepares the start.

    Args:
      start: What to do.
      task_index: This worker.
      time_limit_secs: The limit of the wait, in seconds.
    """
    self._start = start
    self._task_index = task_index
    self._time_limit_secs = time_limit_secs

  def begin(self) -> None:
    """Makes the ops, before the graph is finalized."""
    self._init_op = self._start.copy_from_center()
    barrier = self._start.make_barrier()
    self._arrived = None
    if barrier is not None:
      self._announce = barrier.announce(self._task_index)
      self._arrived = barrier.arrived()

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Copies the centre, and waits for the others if asked to.

    Args:
      session: A session whose variables are initialised.
      coord: Not used.

    Raises:
      TimeoutError: the others did not come in time; the message names them.
    """
    del coord
    session.run(self._init_op)
    if self._arrived is None:
      return
    session.run(self._announce)
    start_barrier.wait_until(lambda: session.run(self._arrived),
                             self._task_index, self._time_limit_secs)
