# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Watches of a run: for stalled tasks, and for workers left behind."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable
from collections.abc import Sequence

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import role_process
from tfplugin.bin.processes import task_states
from tfplugin.events import clock
from tfplugin.events import process
from tfplugin.events import record

# How much longer a worker may run that writes no events: it may have trained to
# its end, and do other work.
_WITHOUT_EVENTS = 10
# Time for a process to write its stacks.
_STACKS_SECS = 0.5


class StallError(local_cluster.RoleError):
  """Error for a run in which no task made a step for too long."""

  exit_status = restarts.STALLED


class StallWatch:
  """Supervisor that kills or reports stalled tasks."""

  def __init__(self, states: task_states.TaskStates, limit_secs: float,
               policy: restarts.RestartPolicy, say: Callable[[str], None]):
    """Begins to count; the caller updates `states`. A limit of 0 is none."""
    self._states = states
    self._limit_secs = limit_secs
    self._policy = policy
    self._say = say
    self._since = time.monotonic()

  def look(self, cluster: local_cluster.LocalCluster) -> None:
    """Kills stalled tasks that restart; or raises `StallError`."""
    self._since = max(self._since, self._states.moved)
    running = [r for r in cluster.roles if r.status is None]
    is_due = (self._limit_secs and
              time.monotonic() - self._since > self._limit_secs)
    if not is_due or not any(r.task.trains for r in running):
      return
    lines = [f'No task has made a step for {self._limit_secs:g} s:']
    lines += [f'  {r.task.name} {self._describe(r)}' for r in running]
    for role in running:
      ask_for_stacks(role)
    lines.append('  Stack traces, where tasks write them, are in their logs.')
    for line in lines:
      self._say(line)
    time.sleep(_STACKS_SECS)
    self._act(cluster, running, '\n'.join(lines))
    self._since = time.monotonic()

  def _describe(self, role: role_process.Role) -> str:
    text = self._states.states[role.task.name].describe(clock.now())
    return f'is stopped by a signal; {text}' if is_stopped(role.pid) else text

  def _act(self, cluster: local_cluster.LocalCluster,
           running: Sequence[role_process.Role], report: str) -> None:
    # Stopped tasks keep the others waiting. If there are none, all training
    # tasks restart; the parameter servers keep the learnt variables.
    chosen = [r for r in running if is_stopped(r.pid)] or [
        r for r in running if r.task.trains]
    chosen = [r for r in chosen if self._policy.delay(
        r.task.type, restarts.STALLED, r.num_restarts, r.num_in_a_row
    ) is not None]
    if not chosen:
      raise StallError(report)
    for role in chosen:
      if role.status is None:  # Otherwise it restarts with another role.
        cluster.kill(role, 'made no step')


def ask_for_stacks(role: role_process.Role) -> None:
  """Requests the stacks of a process, unless the signal would end it."""
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


class LeftBehindWatch:
  """Supervisor that ends workers which a complete run has left behind.

  The chief reports in the place of a worker without a step, and ends. The
  parameter servers end then, too, and with them the worker's variables: it can
  make no step any more, and no restart would help.
  """

  def __init__(self, states: task_states.TaskStates, limit_secs: float,
               say: Callable[[str], None]):
    """Stores `states`, which the caller updates."""
    self._states = states
    self._limit_secs = limit_secs
    self._say = say
    self._since: float | None = None

  def look(self, cluster: local_cluster.LocalCluster,
           ) -> list[role_process.Role]:
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

  def _limit_of(self, role: role_process.Role) -> float:
    """Returns how long a worker may run; no limit if its training has ended."""
    last = self._states.states[role.task.name].last
    if last is None:
      return self._limit_secs * _WITHOUT_EVENTS
    has_trained = role.status is None and last.pid == role.pid and (
        last.name in record.LAST_WORDS or record.is_done(last))
    return float('inf') if has_trained else self._limit_secs

  def _end(self, cluster: local_cluster.LocalCluster,
           role: role_process.Role) -> None:
    state = self._states.states[role.task.name].describe(clock.now())
    self._say(
        f'{role.task.name} still runs {self._limit_of(role):g} s after the '
        'chief and the parameter servers have ended; it is ended now, and the '
        f'run is complete without it. It {state}. Its log: {role.log_path}')
    if role.status is None:
      ask_for_stacks(role)
      time.sleep(_STACKS_SECS)
    cluster.give_up(role, 'still ran after the chief and the parameter servers')


def _is_complete(cluster: local_cluster.LocalCluster) -> bool:
  """Returns whether the chief and the parameter servers have ended well."""
  needed = [r for r in cluster.roles if r.task.type in ('chief', 'ps')]
  return {r.task.type for r in needed} == {'chief', 'ps'} and all(
      r.status == 0 and not r.is_running for r in needed)
