# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The list, on each parameter server, of the tasks that have ended their work.

It is a hash table that the parameter server holds as a resource: not a
variable, so that it needs no initialisation and reaches no checkpoint, and not
a queue, so that reading consumes nothing and a task that is restarted may
report again. It is read and written through sessions of its own, straight to
the server, which work whatever state the training session is in. A second table
holds how many steps a worker has made so far.

Protocol:
  1. A worker writes its steps now and then, and its name to the list of every
     ps when it has ended.
  2. The chief reads the lists until every worker is on one, or until no worker
     has made a step for so long that a limit is reached: it may be gone for
     good. Only then it writes all names, and its own, to every list: it could
     not read from a ps that left.
  3. A ps reads its own list until the chief and every worker are on it.
  4. A ps that is started again has an empty list. The chief, which looks at all
     lists while it trains, writes to it what it has seen before.
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
  """Writes `tasks` to the list of every parameter server.

  Without a ps in the cluster there is no list and nothing happens. A ps that
  cannot be reached in time is passed over with a warning: it has ended already.

  Args:
    cluster_spec: The cluster.
    *tasks: The names of tasks that have made their last step, e.g. `worker:1`.
    time_limit_secs: How long to try, in seconds, for each ps.
  """
  for ps_index in _ps_indices(cluster_spec):
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

  Args:
    cluster_spec: The cluster.
    awaited: Names of tasks.
    who: The name of the task that waits, for the error.
    time_limit_secs: The limit in seconds; None waits, in silence, as long as
      it takes.
    ps_index: Whose list; None: of any ps. All lists are mended meanwhile, and
      the limit begins anew with each step that an awaited task makes.
    while_waiting: Called between two looks.

  Raises:
    TimeoutError: some are not on it in time; the message names them.
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
  """The lists of one ps or of all, and what was seen on any of them.

  A ps that is started again has an empty list. Who has seen the names mends it.

  Attributes:
    known: The names that were seen.
    steps: How many steps each other task was last seen to have made.
  """

  def __init__(self, cluster_spec: tf.train.ClusterSpec,
               ps_index: Optional[int] = None):
    """Opens nothing yet.

    Args:
      cluster_spec: The cluster.
      ps_index: Whose list; None: of every ps.
    """
    indices = _ps_indices(cluster_spec) if ps_index is None else [ps_index]
    self._boards = [_Board(cluster_spec, index) for index in indices]
    self.known: set[str] = set()
    self.steps: dict[str, int] = {}

  def keep(self) -> set[str]:
    """Reads the lists; writes to each what another one has, or had.

    Returns:
      All names that were ever seen.
    """
    seen = [(board, board.read()) for board in self._boards]
    self.known.update(*(names for _, names in seen if names))
    for board in self._boards:
      self.steps.update(board.steps)
    for board, names in seen:
      if names is not None and self.known - names:
        board.write(sorted(self.known - names))
    return self.known

  def close(self) -> None:
    """Ends the sessions."""
    for board in self._boards:
      board.close()


class StepReport:
  """Writes a task's steps to a parameter server, every few seconds."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, task: str):
    """Opens nothing yet."""
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
    """Ends the session."""
    if self._board is not None:
      self._board.close()


def _ps_indices(cluster_spec: tf.train.ClusterSpec) -> list[int]:
  if 'ps' not in cluster_spec.jobs:
    return []
  return cluster_spec.task_indices('ps')


class _Board:
  """The two tables of one parameter server.

  Attributes:
    steps: The steps of tasks, as they were read last.
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
    """Writes how many steps `task` has made, if the server answers."""
    self._run([self._insert_steps],
              {self._tasks: [task], self._values: [num_steps]})

  def close(self) -> None:
    """Ends the session."""
    if self._session is not None:
      # The server may have gone meanwhile, and then there is nothing to end.
      with contextlib.suppress(tf.errors.OpError):
        self._session.close()
    self._session = None

  def _run(self, fetches, feeds):
    # The filter: without it a session waits for every task of the cluster.
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
  """A table of numbers by the names of tasks, in the graph being built."""

  def __init__(self, shared_name: str):
    self._table = tf.raw_ops.MutableHashTableV2(
        key_dtype=tf.string, value_dtype=tf.int64, shared_name=shared_name)
    self.contents = tuple(tf.raw_ops.LookupTableExportV2(
        table_handle=self._table, Tkeys=tf.string, Tvalues=tf.int64))

  def insert(self, tasks: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    return tf.raw_ops.LookupTableInsertV2(
        table_handle=self._table, keys=tasks, values=values)
