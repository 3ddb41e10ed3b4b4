# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Detection of runs in which no task makes a step."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable
from collections.abc import Sequence

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import role as role_lib
from tfplugin.bin.processes import task_states
from tfplugin.events import process

_TRAINING = ('chief', 'worker')


class StallError(local_cluster.RoleError):
  """Error for a run in which no task made a step for too long."""

  exit_status = restarts.STALLED


class StallWatch:
  """Supervisor that kills or reports stalled tasks."""

  def __init__(self, states: task_states.TaskStates, limit_secs: float,
               policy: restarts.RestartPolicy, say: Callable[[str], None]):
    """Begins to count; the caller keeps `states` up to date.

    `limit_secs` is the longest time without a step in seconds; 0: no limit.
    """
    self._states = states
    self._limit_secs = limit_secs
    self._policy = policy
    self._say = say
    self._since = time.monotonic()

  def look(self, cluster: local_cluster.LocalCluster) -> None:
    """Checks once, and kills stalled tasks that the policy restarts.

    Raises `StallError` if the policy restarts none of them.
    """
    self._since = max(self._since, self._states.moved)
    running = [r for r in cluster.roles if r.status is None]
    is_due = (self._limit_secs and
              time.monotonic() - self._since > self._limit_secs)
    if not is_due or not any(r.task.type in _TRAINING for r in running):
      return
    lines = [f'No task has made a step for {self._limit_secs:g} s:']
    lines += [f'  {r.task.name} {self._describe(r)}' for r in running]
    for role in running:
      ask_for_stacks(role)
    lines.append('  Stack traces, where tasks write them, are in their logs.')
    for line in lines:
      self._say(line)
    # Time for the processes to write their stacks.
    time.sleep(0.5)
    self._act(cluster, running, '\n'.join(lines))
    self._since = time.monotonic()

  def _describe(self, role: role_lib.Role) -> str:
    text = self._states.states[role.task.name].describe(time.time())
    return f'is stopped by a signal; {text}' if is_stopped(role.pid) else text

  def _act(self, cluster: local_cluster.LocalCluster,
           running: Sequence[role_lib.Role], report: str) -> None:
    # Stopped tasks keep the others waiting. If there are none, all training
    # tasks restart; the parameter servers keep the learnt variables.
    chosen = [r for r in running if is_stopped(r.pid)] or [
        r for r in running if r.task.type in _TRAINING]
    chosen = [r for r in chosen if self._policy.delay(
        r.task.type, restarts.STALLED, r.num_restarts) is not None]
    if not chosen:
      raise StallError(report)
    for role in chosen:
      if role.status is None:  # Otherwise it restarts with another role.
        cluster.kill(role, 'made no step')


def ask_for_stacks(role: role_lib.Role) -> None:
  """Asks a process for its stacks, unless the signal would end it."""
  if process.STACKS_SIGNAL in caught_signals(role.pid):
    # Not the group: its other processes may not expect the signal.
    os.kill(role.pid, process.STACKS_SIGNAL)


def caught_signals(pid: int) -> set[int]:
  """Returns the signals that a process handles; none without /proc."""
  mask = int(_status(pid).get('SigCgt', '0'), 16)
  return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def is_stopped(pid: int) -> bool:
  """Returns whether a signal has stopped a process; False without /proc."""
  return _status(pid).get('State', '').startswith('T')


def _status(pid: int) -> dict[str, str]:
  try:
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
  except OSError:
    return {}
  return {name: value.strip() for name, _, value in (
      line.partition(':') for line in text.splitlines())}
