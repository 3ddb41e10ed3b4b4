# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether a task of the cluster is there: whether its port is open.

Every task but the evaluator has a server at its address as long as it lives.
One that is stopped, or busy, has its port open all the same: the kernel answers
for it. A task that is gone may come back, and each wait for it has a limit.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import time_limit

_CONNECT_SECS = 2.0
# From one look to the next, of who waits and of who works meanwhile.
_POLL_SECS = 0.2
_LOOK_SECS = 5.0


def unreachable(cluster_spec: tf.train.ClusterSpec,
                names: Iterable[str]) -> list[str]:
  """Returns those of the tasks whose port is not open, e.g. `ps:1 at h:2222`.

  Args:
    cluster_spec: The cluster.
    names: Of tasks, such as `ps:1`.
  """
  result = []
  for name in names:
    job, _, index = name.partition(':')
    address = cluster_spec.task_address(job, int(index))
    if not _is_open(address):
      result.append(f'{name} at {address}')
  return result


def wait_for_servers(cluster_spec: tf.train.ClusterSpec, who: str,
                     time_limit_secs: Optional[float]) -> None:
  """Waits until every parameter server is there; at once if there is none.

  Args:
    cluster_spec: The cluster.
    who: The name of the task that waits.
    time_limit_secs: The limit in seconds; None waits as long as it takes.

  Raises:
    TimeoutError: The limit is reached; the message names who stays away.
  """
  servers = ([f'ps:{index}' for index in cluster_spec.task_indices('ps')]
             if 'ps' in cluster_spec.jobs else [])
  patience = time_limit.Patience(who, time_limit_secs)
  while True:
    away = unreachable(cluster_spec, servers)
    if not away:
      return
    patience.check(', '.join(away),
                   'Start what is missing again, and then this task.')
    time.sleep(_POLL_SECS)


class Contact:
  """How long another task has been out of reach, for one that needs it."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, name: str, who: str,
               time_limit_secs: Optional[float]):
    """Begins with what there is; nothing is looked at yet.

    Args:
      cluster_spec: The cluster.
      name: The task that is needed.
      who: The task that needs it.
      time_limit_secs: How long to do without it, in seconds; None: for ever.
    """
    self._cluster_spec = cluster_spec
    self._name = name
    self._who = who
    self._limit_secs = time_limit_secs
    self._patience = None
    self._next_look = float('-inf')

  def check(self) -> None:
    """To be called often; looks now and then.

    Raises:
      TimeoutError: The task was out of reach up to the limit; it is named.
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
        f'a sign of {away[0]}', 'It is taken to be gone for good: start the '
        'run again, which goes on from the newest checkpoint.')


def _is_open(address: str) -> bool:
  host, _, port = address.rpartition(':')
  try:
    with socket.create_connection((host.strip('[]'), int(port)),
                                  _CONNECT_SECS) as connection:
      # A port of this machine that nobody listens to may be given to the very
      # connection that looks for it.
      return connection.getsockname() != connection.getpeername()
  except OSError:
    return False
