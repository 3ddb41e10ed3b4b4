# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check that a task of the cluster runs: that its port is open.

Every task except the evaluator has a server at its address as long as it lives.
A task that is stopped or busy still has an open port, as the kernel answers for
it. A task that has ended may restart, and each wait for it has a limit.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import time_limit

_CONNECT_SECS = 2.0
# The intervals of checks: while a task waits, and while it works.
_POLL_SECS = 0.2
_LOOK_SECS = 5.0


def unreachable(cluster_spec: tf.train.ClusterSpec,
                names: Iterable[str]) -> list[str]:
  """Returns the tasks whose ports are closed, e.g. ['ps:1 at h:2222']."""
  result = []
  for name in names:
    job, _, index = name.partition(':')
    address = cluster_spec.task_address(job, int(index))
    try:
      if _is_open(address):
        continue
      why = ''
    except socket.gaierror as e:
      why = f' ({e.strerror})'
    result.append(f'{name} at {address}{why}')
  return result


def wait_for_servers(cluster_spec: tf.train.ClusterSpec, who: str,
                     time_limit_secs: float | None,
                     while_waiting: Callable[[], None] = lambda: None) -> None:
  """Waits until every parameter server runs; returns at once without any.

  `who` is the waiting task. A limit of None waits without limit. Raises
  TimeoutError at the limit; the message names the missing servers.
  `while_waiting` is called between two looks.
  """
  servers = ([f'ps:{index}' for index in cluster_spec.task_indices('ps')]
             if 'ps' in cluster_spec.jobs else [])
  patience = time_limit.Patience(who, time_limit_secs)
  while True:
    away = unreachable(cluster_spec, servers)
    if not away:
      return
    patience.check(', '.join(away),
                   'Restart the missing tasks, then this task.')
    while_waiting()
    time.sleep(_POLL_SECS)


class Contact:
  """The time for which another task has been unreachable."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, name: str, who: str,
               time_limit_secs: float | None):
    """Prepares the checks of the task `name` for the task `who`."""
    self._cluster_spec = cluster_spec
    self._name = name
    self._who = who
    self._limit_secs = time_limit_secs
    self._patience = None
    self._next_look = float('-inf')

  def check(self) -> None:
    """Checks the task at intervals; call it often.

    Raises TimeoutError with the task's name if it was unreachable up to the
    limit.
    """
    now = time.monotonic()
    if self._limit_secs is None or now < self._next_look:
      return
    self._next_look = now + min(_LOOK_SECS, self._limit_secs / 4)
    away = unreachable(self._cluster_spec, [self._name])
    if not away:
      self._patience = None
      return
    self._patience = self._patience or time_limit.Patience(
        self._who, self._limit_secs)
    self._patience.check(
        f'a sign of {away[0]}', 'It counts as lost. Start the run again; it '
        'continues from the newest checkpoint.')


def _is_open(address: str) -> bool:
  host, _, port = address.rpartition(':')
  try:
    with socket.create_connection((host.strip('[]'), int(port)),
                                  _CONNECT_SECS) as connection:
      # An unused port of this machine may become the local port of this very
      # connection, which then connects to itself.
      return connection.getsockname() != connection.getpeername()
  except socket.gaierror:
    raise
  except OSError:
    return False
