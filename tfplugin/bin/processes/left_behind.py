# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""End of workers that hang after the chief and the parameter servers ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Optional

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import role as role_lib
from tfplugin.bin.processes import stalls
from tfplugin.bin.processes import task_states
from tfplugin.events import record

# How much longer a worker may run that writes no events: it may have trained to
# its end, and do other work.
_WITHOUT_EVENTS = 10
# Time for a process to write its stacks.
_STACKS_SECS = 0.5


class LeftBehindWatch:
  """Supervisor that ends workers which a complete run has left behind.

  The chief reports in the place of a worker without a step, and ends. The
  parameter servers end then, too, and with them the worker's variables: it can
  make no step any more, and no restart would help.
  """

  def __init__(self, states: task_states.TaskStates, limit_secs: float,
               say: Callable[[str], None]):
    """Takes `states`, which the caller keeps up to date.

    `limit_secs` is the time from the last end to the worker's, in seconds.
    """
    self._states = states
    self._limit_secs = limit_secs
    self._say = say
    self._since: Optional[float] = None

  def look(self, cluster: local_cluster.LocalCluster) -> list[role_lib.Role]:
    """Ends the workers whose time is over; returns them."""
    if not _is_complete(cluster):
      self._since = None
      return []
    if self._since is None:
      self._since = time.monotonic()
    left = [role for role in cluster.roles
            if role.task.type == 'worker' and role.is_running and
            time.monotonic() - self._since > self._limit_of(role)]
    for role in left:
      self._end(cluster, role)
    return left

  def _limit_of(self, role: role_lib.Role) -> float:
    """Returns how long a worker may run; no limit if its training has ended."""
    last = self._states.states[role.task.name].last
    if last is None:
      return self._limit_secs * _WITHOUT_EVENTS
    has_trained = role.status is None and last.name in record.LAST_WORDS and (
        last.pid == role.pid)
    return float('inf') if has_trained else self._limit_secs

  def _end(self, cluster: local_cluster.LocalCluster,
           role: role_lib.Role) -> None:
    state = self._states.states[role.task.name].describe(time.time())
    self._say(
        f'{role.task.name} still runs {self._limit_of(role):g} s after the '
        'chief and the parameter servers have ended; it is ended now, and the '
        f'run is complete without it. It {state}. Its log: {role.log_path}')
    if role.status is None:
      stalls.ask_for_stacks(role)
      time.sleep(_STACKS_SECS)
    cluster.give_up(role, 'still ran after the chief and the parameter servers')


def _is_complete(cluster: local_cluster.LocalCluster) -> bool:
  """Returns whether the chief and the parameter servers have ended well."""
  needed = [r for r in cluster.roles if r.task.type in ('chief', 'ps')]
  return {r.task.type for r in needed} == {'chief', 'ps'} and all(
      r.status == 0 and not r.is_running for r in needed)
