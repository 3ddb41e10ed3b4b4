# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the run's tasks on one parameter server: marks, steps, cluster.

A table is a hash table that the parameter server holds as a resource. It is not
a variable: it needs no initialisation and is in no checkpoint. It is not a
queue: reading consumes nothing. Separate sessions, straight to the server, read
and write the tables. They work in any state of the training session.

A task's mark is a number, 4 * arrivals + state. It only grows. So the larger of
two marks is the later one, and a late copy of an old mark does no harm. The
name of a task that joins is CLAIMED by its launcher, until the task itself
writes that it is PRESENT.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin.distribute.sessions import membership

tf1 = tf.compat.v1

CLAIMED, PRESENT, LEFT, FINISHED = 0, 1, 2, 3
_NUM_STATES = 4

MARKS = 'tfplugin_finished_tasks'
_STEPS = 'tfplugin_steps_of_tasks'
_CLUSTER = 'tfplugin_cluster'
_ATTEMPT_MSECS = 5000


def state_of(mark: int) -> int:
  """Returns the state of the mark of a known task."""
  return mark % _NUM_STATES


def in_state(mark, state):
  """Returns the mark of the same arrival with another state."""
  return mark - mark % _NUM_STATES + state


class Board:
  """The tables of one parameter server.

  Every method but `close` returns None if the server does not answer.

  Attributes:
    steps: The steps of the tasks at the last read.
  """

  def __init__(self, address: str, device: str = ''):
    """Prepares sessions to the server at `address`.

    `device` is the server's, e.g. `/job:ps/task:0`; empty: not known.
    """
    self.steps: dict[str, int] = {}
    self._name = device or address
    self._target = f'grpc://{address}'
    # Without a filter, a session waits for every task of the cluster. The
    # server itself passes every filter.
    self._filter = device or '/job:none'
    self._session = None
    with tf.Graph().as_default() as self._graph, tf1.device(device or None):
      self._build()

  def _build(self) -> None:
    self._tasks = tf1.placeholder(tf.string, [None])
    self._numbers = tf1.placeholder(tf.int64, [None])
    self._most = tf1.placeholder(tf.int64, [])
    self._text = tf1.placeholder(tf.string, [])
    self._marks = membership.Table(MARKS)
    self._steps = membership.Table(_STEPS)
    self._cluster = membership.Table(_CLUSTER)
    self._read = [self._marks.contents(), self._steps.contents()]
    self._describe = self._cluster.contents()
    self._lock = tf.CriticalSection(shared_name='tfplugin_task_tables')
    self._insert_steps = self._steps.insert(self._tasks, self._numbers)
    with tf1.control_dependencies([self._insert_steps]):
      self._mark_now = self._marks.find(self._tasks)
    self._merge = self._changed(
        lambda held: tf.maximum(held, self._numbers))
    self._end = self._changed(
        lambda held: in_state(held, self._numbers))
    self._count = membership.write_present(self._most)
    self._arrive = self._changed(
        lambda held: in_state(held, _NUM_STATES + PRESENT))
    self._claim = self._changed(self._claimed)
    # TensorFlow has no table from text to text: the text is the only key.
    self._publish = self._cluster.insert(
        self._text[None], tf.ones([1], tf.int64))

  def read(self) -> dict[str, int] | None:
    """Returns the marks by task, and takes over the steps."""
    seen = self._run(self._read, {})
    if seen is None:
      return None
    marks, steps = (
        {name.decode(): int(value) for name, value in zip(*table)}
        for table in seen)
    self.steps = steps
    # A claim that fails leaves a 0.
    return {name: mark for name, mark in marks.items() if mark}

  def merge(self, marks: Mapping[str, int]) -> bool | None:
    """Adds marks; of two marks of a task the larger one remains."""
    return self._change(self._merge, list(marks), list(marks.values()))

  def end(self, tasks: Sequence[str], state: int) -> bool | None:
    """Gives tasks the state LEFT or FINISHED."""
    return self._change(self._end, tasks, [state] * len(tasks))

  def arrive(self, task: str) -> bool | None:
    """Gives a task the state PRESENT, also after it has left."""
    return self._change(self._arrive, [task], [])

  def claim(self, task: str, most: int) -> bool | None:
    """Gives a new task the state CLAIMED, and returns whether it did.

    It does not if the task has a mark, or if `most` tasks are claimed or
    present.
    """
    seen = self._run(self._claim, {self._tasks: [task], self._most: most})
    return None if seen is None else bool(seen[0] != seen[1])

  def write_steps(self, task: str, num_steps: int) -> int | None:
    """Writes the number of steps of `task`; returns its mark."""
    seen = self._run(self._mark_now, {
        self._tasks: [task], self._numbers: [num_steps]})
    return None if seen is None else int(seen[0])

  def count_present(self, number: int) -> bool | None:
    """Writes how many workers train now, the chief included."""
    done = self._run([self._count], {self._most: number})
    return None if done is None else True

  def publish(self, description: str) -> bool | None:
    """Writes the description of the cluster, for tasks that join."""
    done = self._run([self._publish], {self._text: description})
    return None if done is None else True

  def description(self) -> str | None:
    """Returns the description of the cluster; '' if there is none."""
    seen = self._run(self._describe, {})
    if seen is None:
      return None
    return ''.join(text.decode() for text in seen[0])

  def close(self) -> None:
    """Closes the session."""
    if self._session is not None:
      # The server may have ended meanwhile, and the session with it.
      with contextlib.suppress(tf.errors.OpError):
        self._session.close()
    self._session = None

  def _changed(self, new: Callable[[tf.Tensor], tf.Tensor]) -> list[tf.Tensor]:
    """Returns marks before and after a change that no other one interrupts."""

    def change():
      held = self._marks.find(self._tasks)
      marks = new(held)
      with tf1.control_dependencies([self._marks.insert(self._tasks, marks)]):
        return [tf.identity(held), tf.identity(marks)]

    return self._lock.execute(change)

  def _claimed(self, held: tf.Tensor) -> tf.Tensor:
    marks = self._marks.contents()[1]
    is_here = (marks > 0) & (marks % _NUM_STATES <= PRESENT)
    may = tf.reduce_sum(tf.cast(is_here, tf.int64)) < self._most
    return tf.where(tf.equal(held, 0) & may,
                    in_state(held, _NUM_STATES + CLAIMED), held)

  def _change(self, change: list[tf.Tensor], tasks: Sequence[str],
              numbers: Sequence[int]) -> bool | None:
    done = self._run(change, {self._tasks: list(tasks),
                              self._numbers: list(numbers)})
    return None if done is None else True

  def _run(self, fetches, feeds):
    config = tf1.ConfigProto(device_filters=[self._filter],
                             operation_timeout_in_ms=_ATTEMPT_MSECS)
    try:
      if self._session is None:
        self._session = tf1.Session(self._target, self._graph, config)
      return self._session.run(fetches, feeds)
    except tf.errors.OpError as e:
      tf1.logging.info('No answer from %s: %s', self._name, e.message)
      self.close()
      return None
