# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Barrier with which the tasks of a cluster start together.

Each task has a queue on a parameter server. A task that is ready puts a token
into its queue, and waits until no queue is empty. No task removes a token: all
tokens together show that the tasks have started. A task that starts late, or
restarts, finds all tokens and continues at once. A parameter server that
restarts has lost the variables and the tokens, so all tasks start together
again.
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

# Existing programs use this name for the queues.
QUEUE_NAME = 'variable_init_sync_queue'
POLL_SECS = 0.1


class StartBarrier:
  """Queues of one cluster, as one task's graph sees them.

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
    """Describes the queues on a parameter server's device."""
    self._device = device
    with placement.only_on(device), tf1.control_dependencies(None):
      self._queues = [
          tf.queue.FIFOQueue(
              # A token of a failed task and one of its successor fit in.
              capacity=num_tasks + 1, dtypes=[tf.bool], shapes=[[]],
              shared_name=f'{QUEUE_NAME}{index}', name=f'{QUEUE_NAME}{index}')
          for index in range(num_tasks)]

  def announce(self, task_index: int) -> tf.Operation:
    """Returns an op that marks a task as ready; repeating it is harmless."""
    queue = self._queues[task_index]

    def put():
      with tf.control_dependencies([queue.enqueue(True)]):
        return tf.constant(True)

    with placement.only_on(self._device):
      return tf.group(
          tf1.cond(tf.equal(queue.size(), 0), put, lambda: tf.constant(False)))

  def arrived(self) -> tf.Tensor:
    """Returns a bool tensor of shape [num_tasks]: whether a task is ready."""
    with placement.only_on(self._device):
      return tf.stack([queue.size() > 0 for queue in self._queues])

  def wait(self, task_index: int, time_limit_secs: float) -> tf.Operation:
    """Returns an op that announces a task and ends when all tasks are ready.

    For code without a hook; a hook runs `arrived` repeatedly, with
    `wait_until`. After `time_limit_secs` the op raises an
    `InvalidArgumentError` that names the missing tasks.
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
  """Waits until `look()` is all true; a TimeoutError names missing tasks."""
  patience = time_limit.Patience(_name(task_index), time_limit_secs)
  arrived = look()
  if all(arrived):
    return
  with event_log.span('waiting', on=_tasks(arrived)):
    while not all(arrived):
      patience.check(f'the start of {_missing(arrived)}',
                     'See their logs; if they need that long, raise '
                     '`time_limit_secs`.')
      time.sleep(POLL_SECS)
      arrived = look()


def _missing(arrived) -> str:
  return ', '.join(_name(index) for index, is_there in enumerate(arrived)
                   if not is_there)


def _tasks(arrived) -> list[str]:
  """Returns the names of the missing tasks, for the events."""
  known = dict(enumerate(cluster_task.from_environment().training_tasks))
  return [known.get(index, _name(index))
          for index, is_there in enumerate(arrived) if not is_there]


def _name(task_index: int) -> str:
  return f'the worker with task_index {task_index}'
