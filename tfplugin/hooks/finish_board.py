# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The list, on each parameter server, of the tasks that have ended their work.

It is a hash table that the parameter server holds as a resource: not a
variable, so that it needs no initialisation and reaches no checkpoint, and not
a queue, so that reading consumes nothing and a task that is restarted may
report again. It is read and written through sessions of its own, straight to
the server, which work whatever state the training session is in.

Protocol:
  1. A worker writes its name to the list of every ps when it has ended.
  2. The chief reads the lists until every worker is on one, or a limit is
     reached: a worker may be gone for good. Only then it writes all names, and
     its own, to every list: it could not read from a ps that left.
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

_SHARED_NAME = 'tfplugin_finished_tasks'
_ATTEMPT_MSECS = 5000
POLL_SECS = 0.2


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
    ps_index: Whose list; None: of any ps, and all lists are mended meanwhile.
    while_waiting: Called between two looks.

  Raises:
    TimeoutError: some are not on it in time; the message names them.
  """
  awaited = set(awaited)
  lists = Lists(cluster_spec, ps_index)
  patience = time_limit_secs and time_limit.Patience(who, time_limit_secs)
  try:
    while awaited - lists.keep():
      if patience:
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
    self.known = set()

  def keep(self) -> set[str]:
    """Reads the lists; writes to each what another one has, or had.

    Returns:
      All names that were ever seen.
    """
    seen = [(board, board.read()) for board in self._boards]
    self.known.update(*(names for _, names in seen if names))
    for board, names in seen:
      if names is not None and self.known - names:
        board.write(sorted(self.known - names))
    return self.known

  def close(self) -> None:
    """Ends the sessions."""
    for board in self._boards:
      board.close()


def _ps_indices(cluster_spec: tf.train.ClusterSpec) -> list[int]:
  if 'ps' not in cluster_spec.jobs:
    return []
  return cluster_spec.task_indices('ps')


class _Board:
  """The list of one parameter server."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, ps_index: int):
    self._target = f'grpc://{cluster_spec.task_address("ps", ps_index)}'
    self._device = f'/job:ps/task:{ps_index}'
    self._session = None
    with tf.Graph().as_default() as self._graph, tf1.device(self._device):
      self._tasks = tf1.placeholder(tf.string, [None])
      table = tf.raw_ops.MutableHashTableV2(
          key_dtype=tf.string, value_dtype=tf.int64, shared_name=_SHARED_NAME)
      self._insert = tf.raw_ops.LookupTableInsertV2(
          table_handle=table, keys=self._tasks,
          values=tf.ones_like(self._tasks, tf.int64))
      self._names, _ = tf.raw_ops.LookupTableExportV2(
          table_handle=table, Tkeys=tf.string, Tvalues=tf.int64)

  def read(self) -> Optional[set[str]]:
    """Returns the names on the list; None if the server does not answer."""
    names = self._run(self._names, {})
    return None if names is None else {name.decode() for name in names}

  def write(self, tasks: Sequence[str]) -> Optional[bool]:
    """Adds names; returns True, or None if the server does not answer."""
    done = self._run([self._insert], {self._tasks: tasks})
    return None if done is None else True

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
