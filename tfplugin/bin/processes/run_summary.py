# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outcome of each task of a run, as a table and as JSON."""

from __future__ import annotations

import collections
import json
import os
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import task_states
from tfplugin.events import event_files

FILE_NAME = 'summary.json'
VERSION = 1
JOINED = 'joined'
_HEADINGS = ('task', 'status', 'restarts', 'last step', 'reasons')


class TaskSummary(NamedTuple):
  """The outcome of one task.

  Attributes:
    status: 'done', 'failed', 'lost' if the run continued without it, 'stopped'
      on request, or 'ended' by the launcher for another reason. 'joined': of
      another launch; `reasons` has when it came and left, and how.
    exit_status: The exit status of its last process; negative after a signal;
      None without one.
    last_step: The newest global step in its events; None if there is none.
    reasons: A description of each failure of its processes.
  """

  task: str
  status: str
  exit_status: int | None
  restarts: int
  last_step: int | None
  reasons: Sequence[str]


def summarize(cluster: local_cluster.LocalCluster,
              states: Mapping[str, task_states.State],
              is_stopped: bool = False) -> list[TaskSummary]:
  """Returns the outcome of the tasks after the cluster's context has ended."""
  tasks = [
      TaskSummary(role.task.name, _status(role, cluster, is_stopped),
                  role.status, role.num_restarts, states[role.task.name].step,
                  tuple(role.reasons))
      for role in cluster.roles]
  own = {task.task for task in tasks}
  return tasks + [
      TaskSummary(name, JOINED, None, 0, state.step,
                  (state.end or state.arrival,))
      for name, state in states.items()
      if state.joined is not None and name not in own]


def _status(role, cluster: local_cluster.LocalCluster,
            is_stopped: bool) -> str:
  if role.status == 0:
    return 'done'
  if role is cluster.failed:
    return 'failed'
  if role in cluster.lost:
    return 'lost'
  return 'stopped' if is_stopped else 'ended'


def table(tasks: Sequence[TaskSummary]) -> list[str]:
  """Returns the lines of the table."""
  return aligned([_HEADINGS, *(
      (t.task, t.status, str(t.restarts),
       '' if t.last_step is None else str(t.last_step),
       '; '.join(reason + (f' ({count} times)' if count > 1 else '')
                 for reason, count in collections.Counter(t.reasons).items()))
      for t in tasks)])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Returns a line for each row, the cells of a column below each other."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  return ['  '.join(text.ljust(width) for text, width in zip(row, widths))
          .rstrip() for row in rows]


def path_in(directory: str | os.PathLike, who: str = '') -> pathlib.Path:
  """Returns the path of a launch's summary; `who` '' is the only launch."""
  name = pathlib.Path(FILE_NAME)
  return pathlib.Path(directory,
                      f'{name.stem}-{who}{name.suffix}' if who else name)


def write(path: pathlib.Path, tasks: Sequence[TaskSummary],
          error: str | None = None) -> None:
  """Writes a session's summary as JSON; earlier sessions stay in the file.

  The directory exists. `error` says why the session failed; None: it did not.
  An OSError, as on a full disk, leaves the file as it was.
  """
  newest = event_files.read_object(path)
  event_files.write_whole(path, json.dumps({
      'version': VERSION, 'error': error,
      'tasks': [task._asdict() for task in tasks],
      'earlier': [*newest.pop('earlier', ()), newest] if newest else [],
  }, indent=2) + '\n')
