# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists, on each parameter server, of the tasks that have ended their work.

A list is a hash table that the parameter server holds as a resource. It is not
a variable: it needs no initialisation and is in no checkpoint. It is not a
queue: reading consumes nothing, and a task that restarts may report again.
Separate sessions, straight to the server, read and write it. They work in any
state of the training session. A second table holds the number of steps of each
worker.

Protocol:
  1. A worker writes its steps at intervals. When it has ended, it writes its
     name to the list of every ps.
  2. The chief reads the lists until every worker is on one, or until no worker
     has made a step for the time limit: a worker may be lost. Only then does it
     write all names, and its own, to every list: a ps that has ended cannot be
     read.
  3. A ps reads its own list until the chief and every worker are on it.
  4. A ps that restarts has an empty list. The chief reads all lists while it
     trains, and writes the names that it has read before to the empty list.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import time_limit

tf1 = tf.compat.v1

_FINISHED = 'tfplugin_finished_tasks'
_STEPS = 'tfplugin_steps_of_tasks'
_ATTEMPT_MSECS = 5000
POLL_SECS = 0.2
_REPORT_SECS = 2.0


def report_finished(cluster_spec: tf.train.ClusterSpec, *tasks: str,
                    time_limit_secs: float = 30.0) -> None:
  """Writes the names of finished tasks to the list of every parameter server.

  The last name is the reporting task's. Without a name or a ps there is nothing
  to write. Each ps gets `time_limit_secs` seconds. One
  that cannot be reached has ended already, and is skipped with a warning.
  """
  for ps_index in _ps_indices(cluster_spec) if tasks else ():
    board = _Board(cluster_spec, ps_index)
    deadline = time.monotonic() + time_limit_secs
    while board.write(tasks) is None:
      if time.monotonic() > deadline:
        tf1.logging.warning('%s could not tell ps:%d that it has finished.',
                            tasks[-1], ps_index)
        break
      time.sleep(POLL_SECS)
    board.close()


def wait_for_tasks(cluster_spec: tf.train.ClusterSpec,
                   awaited: Iterable[str],
                   who: str,
                   time_limit_secs: Optional[float],
                   ps_index: Optional[int] = None,
                   while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits until all the `awaited` tasks are on a list.

  `who` is the waiting task, for the error. `time_limit_secs` None waits without
  limit and without messages. With a `ps_index` only the list of that ps is
  read. With None all lists are read and repaired, and each step of an awaited
  task restarts the limit. `while_waiting` is called between two reads. Raises
  TimeoutError at the limit; the message names the missing tasks.
  """
  awaited = set(awaited)
  lists = Lists(cluster_spec, ps_index)
  patience = time_limit_secs and time_limit.Patience(who, time_limit_secs)
  steps = {}
  try:
    while awaited - lists.keep():
      if patience:
        if ps_index is None and lists.steps != steps:
          patience.restart()
        steps = dict(lists.steps)
        missing = ', '.join(sorted(awaited - lists.known))
        patience.check(f'the last step of {missing}',
                       'Look into their logs; if their steps take that long, '
                       'raise the time limit.')
      while_waiting()
      time.sleep(POLL_SECS)
  finally:
    lists.close()


class Lists:
  """The lists of one ps or of all, and the names read from any of them.

  A ps that restarts has an empty list, and `keep` fills it again.

  Attributes:
    known: All names read so far.
    steps: The last known number of steps of each other task.
  """

  def __init__(self, cluster_spec: tf.train.ClusterSpec,
               ps_index: Optional[int] = None):
    """Prepares the lists of one ps, or of every ps if `ps_index` is None."""
    indices = _ps_indices(cluster_spec) if ps_index is None else [ps_index]
    self._boards = [_Board(cluster_spec, index) for index in indices]
    self.known: set[str] = set()
    self.steps: dict[str, int] = {}

  def keep(self) -> set[str]:
    """Reads the lists, writes all known names to each, and returns them."""
    seen = [(board, board.read()) for board in self._boards]
    self.known.update(*(names for _, names in seen if names))
    for board in self._boards:
      self.steps.update(board.steps)
    for board, names in seen:
      if names is not None and self.known - names:
        board.write(sorted(self.known - names))
    return self.known

  def close(self) -> None:
    """Closes the sessions."""
    for board in self._boards:
      board.close()


class StepReport:
  """Writes a task's steps to a parameter server, every few seconds."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, task: str):
    """Prepares the report; the first step opens the session."""
    index = next(iter(_ps_indices(cluster_spec)), None)
    self._board = None if index is None else _Board(cluster_spec, index)
    self._task = task
    self._num_steps = 0
    self._next = float('-inf')

  def count(self) -> None:
    """Counts a step of the task."""
    self._num_steps += 1
    now = time.monotonic()
    if self._board is not None and now >= self._next:
      self._next = now + _REPORT_SECS
      self._board.write_steps(self._task, self._num_steps)

  def close(self) -> None:
    """Closes the session."""
    if self._board is not None:
      self._board.close()


def _ps_indices(cluster_spec: tf.train.ClusterSpec) -> list[int]:
  if 'ps' not in cluster_spec.jobs:
    return []
  return cluster_spec.task_indices('ps')


class _Board:
  """The two tables of one parameter server.

  Attributes:
    steps: The steps of the tasks at the last read.
  """

  def __init__(self, cluster_spec: tf.train.ClusterSpec, ps_index: int):
    self.steps: dict[str, int] = {}
    self._target = f'grpc://{cluster_spec.task_address("ps", ps_index)}'
    self._device = f'/job:ps/task:{ps_index}'
    self._session = None
    with tf.Graph().as_default() as self._graph, tf1.device(self._device):
      self._tasks = tf1.placeholder(tf.string, [None])
      self._values = tf1.placeholder(tf.int64, [None])
      self._finished, self._steps = _Table(_FINISHED), _Table(_STEPS)
      self._insert = self._finished.insert(
          self._tasks, tf.ones_like(self._tasks, tf.int64))
      self._insert_steps = self._steps.insert(self._tasks, self._values)

  def read(self) -> Optional[set[str]]:
    """Returns the names on the list; None if the server does not answer."""
    seen = self._run([self._finished.contents, self._steps.contents], {})
    if seen is None:
      return None
    (names, _), steps = seen
    self.steps = {name.decode(): int(value) for name, value in zip(*steps)}
    return {name.decode() for name in names}

  def write(self, tasks: Sequence[str]) -> Optional[bool]:
    """Adds names; returns True, or None if the server does not answer."""
    done = self._run([self._insert], {self._tasks: tasks})
    return None if done is None else True

  def write_steps(self, task: str, num_steps: int) -> None:
    """Writes the number of steps of `task`, if the server answers."""
    self._run([self._insert_steps],
              {self._tasks: [task], self._values: [num_steps]})

  def close(self) -> None:
    """Closes the session."""
    if self._session is not None:
      # The server may have ended meanwhile, and the session with it.
      with contextlib.suppress(tf.errors.OpError):
        self._session.close()
    self._session = None

  def _run(self, fetches, feeds):
    # Without the filter, a session waits for every task of the cluster.
    config = tf1.ConfigProto(device_filters=[self._device],
                             operation_timeout_in_ms=_ATTEMPT_MSECS)
    try:
      if self._session is None:
        self._session = tf1.Session(self._target, self._graph, config)
      return self._session.run(fetches, feeds)
    except tf.errors.OpError as e:
      tf1.logging.info('No answer from %s: %s', self._device, e.message)
      self.close()
      return None


class _Table:
  """A table from names of tasks to numbers, in the current graph."""

  def __init__(self, shared_name: str):
    self._table = tf.raw_ops.MutableHashTableV2(
        key_dtype=tf.string, value_dtype=tf.int64, shared_name=shared_name)
    self.contents = tuple(tf.raw_ops.LookupTableExportV2(
        table_handle=self._table, Tkeys=tf.string, Tvalues=tf.int64))

  def insert(self, tasks: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    return tf.raw_ops.LookupTableInsertV2(
        table_handle=self._table, keys=tasks, values=values)
