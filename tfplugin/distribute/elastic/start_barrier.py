# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets the tasks of a cluster start together, and a late one join at once.

Each task has a queue on a parameter server. A task that is ready puts a token
into its own queue, and waits until no queue is empty. Nobody takes a token out:
the tokens say that this generation of the parameter server has been through its
start, and whoever comes later, or comes again, finds all of them and goes on. A
parameter server that restarts has lost the variables and the tokens, and all
tasks start together once more.
"""

from __future__ import annotations

import time
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import prompt_start
from tfplugin.events import event_log

tf1 = tf.compat.v1

# Old programs know the queues by this name.
QUEUE_NAME = 'variable_init_sync_queue'
POLL_SECS = 0.1


class StartBarrier:
  """The queues of one cluster, as one task's graph sees them.

  Example:
    >>> with tf.Graph().as_default():
    ...   barrier = StartBarrier(2, device='')
    ...   arrived = barrier.arrived()
    ...   with tf.compat.v1.Session() as session:
    ...     session.run(barrier.announce(1))
    ...     session.run(arrived).tolist()
    [False, True]
  """

  def __init__(self, num_tasks: int, device: str):
    """Describes the queues; they exist once a session uses them.

    Args:
      num_tasks: How many tasks wait for each other.
      device: Where the queues are, the same for all tasks: on a parameter
        server, never on a worker, whose queues the others do not see.
    """
    self._device = device
    with placement.only_on(device), tf1.control_dependencies(None):
      self._queues = [
          tf.queue.FIFOQueue(
              # A token of a task that died and one of its successor fit in.
              capacity=num_tasks + 1, dtypes=[tf.bool], shapes=[[]],
              shared_name=f'{QUEUE_NAME}{index}', name=f'{QUEUE_NAME}{index}')
          for index in range(num_tasks)]

  def announce(self, task_index: int) -> tf.Operation:
    """Returns an op that says that a task is ready; repeating it is harmless.

    Args:
      task_index: The task, in [0, num_tasks).
    """
    queue = self._queues[task_index]

    def put():
      with tf.control_dependencies([queue.enqueue(True)]):
        return tf.constant(True)

    with placement.only_on(self._device):
      return tf.group(
          tf1.cond(tf.equal(queue.size(), 0), put, lambda: tf.constant(False)))

  def arrived(self) -> tf.Tensor:
    """Returns which tasks are ready: a bool tensor of shape [num_tasks]."""
    with placement.only_on(self._device):
      return tf.stack([queue.size() > 0 for queue in self._queues])

  def wait(self, task_index: int, time_limit_secs: float) -> tf.Operation:
    """Returns an op that announces a task and ends when all tasks are ready.

    For a place that has no hook, which would rather run `arrived` now and then,
    with `wait_until`.

    Args:
      task_index: The task that waits.
      time_limit_secs: After so many seconds the op raises an
        `InvalidArgumentError` that names the tasks that are missing.
    """
    with tf1.control_dependencies([self.announce(task_index)]):
      arrived = prompt_start.poll_while(
          self.arrived, lambda a: tf.logical_not(tf.reduce_all(a)),
          time_limit_secs, who=_name(task_index),
          whom=lambda arrived: f'the start of {_missing(arrived)}',
          tasks=_tasks)
    names = tf.constant([_name(i) for i in range(len(self._queues))])
    missing = tf.boolean_mask(names, tf.logical_not(arrived))
    return tf.debugging.Assert(
        tf.reduce_all(arrived),
        [f'{_name(task_index)} waited {time_limit_secs:g} s for the start of',
         missing], summarize=len(self._queues))


def wait_until(look: Callable, task_index: int,
               time_limit_secs: float) -> None:
  """Waits until `look()` says that all tasks are ready.

  Args:
    look: Returns the value of `StartBarrier.arrived()`.
    task_index: The task that waits.
    time_limit_secs: The limit in seconds.

  Raises:
    TimeoutError: the limit is reached; the message names the missing tasks.
  """
  patience = time_limit.Patience(_name(task_index), time_limit_secs)
  arrived = look()
  if all(arrived):
    return
  with event_log.span('waiting', on=_tasks(arrived)):
    while not all(arrived):
      patience.check(f'the start of {_missing(arrived)}',
                     'Look into their logs; if they need that long, raise '
                     '`time_limit_secs`.')
      time.sleep(POLL_SECS)
      arrived = look()


def _missing(arrived) -> str:
  return ', '.join(_name(index) for index, is_there in enumerate(arrived)
                   if not is_there)


def _tasks(arrived) -> list[str]:
  """Returns the names of those that are missing, for the events."""
  known = dict(enumerate(cluster_task.from_environment().training_tasks))
  return [known.get(index, _name(index))
          for index, is_there in enumerate(arrived) if not is_there]


def _name(task_index: int) -> str:
  return f'the worker with task_index {task_index}'
