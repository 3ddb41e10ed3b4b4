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
  2. The chief reads the list of ps 0 until every worker is on it. Only then it
     writes its own name to every list: it could not read from a ps that left.
  3. A ps reads its own list until the chief and every worker are on it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1

_SHARED_NAME = 'tfplugin_finished_tasks'
_ATTEMPT_MSECS = 5000
POLL_SECS = 0.2


def report_finished(cluster_spec: tf.train.ClusterSpec, task: str,
                    time_limit_secs: float = 30.0) -> None:
  """Writes `task` to the list of every parameter server.

  Without a ps in the cluster there is no list and nothing happens. A ps that
  cannot be reached in time is passed over with a warning: it has ended already.

  Args:
    cluster_spec: The cluster.
    task: The name of a task that has made its last step, e.g. `worker:1`.
    time_limit_secs: How long to try, in seconds, for each ps.
  """
  for ps_index in _ps_indices(cluster_spec):
    board = _Board(cluster_spec, ps_index)
    deadline = time.monotonic() + time_limit_secs
    while board.write(task) is None:
      if time.monotonic() > deadline:
        tf1.logging.warning('%s could not tell ps:%d that it has finished.',
                            task, ps_index)
        break
      time.sleep(POLL_SECS)
    board.close()


def wait_for_tasks(cluster_spec: tf.train.ClusterSpec,
                   awaited: Iterable[str],
                   who: str,
                   time_limit_secs: Optional[float],
                   ps_index: int = 0) -> None:
  """Waits until all the `awaited` tasks are on the list of one ps.

  Args:
    cluster_spec: The cluster.
    awaited: Names of tasks.
    who: The name of the task that waits, for the error.
    time_limit_secs: The limit in seconds; None waits as long as it takes.
    ps_index: Whose list.

  Raises:
    TimeoutError: some are not on it in time; the message names them.
  """
  missing = set(awaited)
  start = time.monotonic()
  board = _Board(cluster_spec, ps_index)
  while missing:
    missing -= board.read() or set()
    if not missing:
      break
    if (time_limit_secs is not None and
        time.monotonic() - start > time_limit_secs):
      raise TimeoutError(
          f'{who} waited {time_limit_secs:g} s for the last step of '
          f'{", ".join(sorted(missing))}. Look into their logs; if their steps '
          'take that long, raise the time limit.')
    time.sleep(POLL_SECS)
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
      self._task = tf1.placeholder(tf.string, [])
      table = tf.raw_ops.MutableHashTableV2(
          key_dtype=tf.string, value_dtype=tf.int64, shared_name=_SHARED_NAME)
      self._insert = tf.raw_ops.LookupTableInsertV2(
          table_handle=table, keys=self._task[tf.newaxis],
          values=tf.constant([1], tf.int64))
      self._names, _ = tf.raw_ops.LookupTableExportV2(
          table_handle=table, Tkeys=tf.string, Tvalues=tf.int64)

  def read(self) -> Optional[set[str]]:
    """Returns the names on the list; None if the server does not answer."""
    names = self._run(self._names, {})
    return None if names is None else {name.decode() for name in names}

  def write(self, task: str) -> Optional[bool]:
    """Adds a name; returns True, or None if the server does not answer."""
    done = self._run([self._insert], {self._task: task})
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
