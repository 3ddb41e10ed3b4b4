# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What became of each task of a run: a table, and the same as JSON."""

from __future__ import annotations

import collections
import json
import os
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Optional
from typing import Union

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import task_states

FILE_NAME = 'summary.json'
VERSION = 1
_HEADINGS = ('task', 'status', 'restarts', 'last step', 'reasons')


class TaskSummary(NamedTuple):
  """What became of a task.

  Attributes:
    task: Its name.
    status: 'done', 'failed', 'lost' if the run went on without it, 'stopped'
      on request, or 'ended' if the launcher ended it for another reason.
    exit_status: Of its last process; negative: the signal; None: of none.
    restarts: How often it was started again.
    last_step: The newest global step that it told of; None: of none.
    reasons: How each of its processes ended that did not do its work.
  """

  task: str
  status: str
  exit_status: Optional[int]
  restarts: int
  last_step: Optional[int]
  reasons: Sequence[str]


def summarize(cluster: local_cluster.LocalCluster,
              states: Mapping[str, task_states.State],
              is_stopped: bool = False) -> list[TaskSummary]:
  """Returns what became of the tasks of a cluster that has been left.

  Args:
    cluster: The processes.
    states: What their events have told, by task.
    is_stopped: Whether the run was stopped on request.
  """
  return [
      TaskSummary(role.task.name, _status(role, cluster, is_stopped),
                  role.status, role.num_restarts, states[role.task.name].step,
                  tuple(role.reasons))
      for role in cluster.roles]


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
  rows = [_HEADINGS, *(
      (t.task, t.status, str(t.restarts),
       '' if t.last_step is None else str(t.last_step),
       '; '.join(reason + (f' ({count} times)' if count > 1 else '')
                 for reason, count in collections.Counter(t.reasons).items()))
      for t in tasks)]
  widths = [max(map(len, column)) for column in zip(*rows)]
  return ['  '.join(text.ljust(width) for text, width in zip(row, widths))
          .rstrip() for row in rows]


def path_in(directory: Union[str, os.PathLike], who: str = '') -> pathlib.Path:
  """Returns the file of the summary that is in a directory.

  Args:
    directory: The directory.
    who: Which of several launches of a run has written it; empty: the only one.
  """
  name = pathlib.Path(FILE_NAME)
  return pathlib.Path(directory,
                      f'{name.stem}-{who}{name.suffix}' if who else name)


def write(path: pathlib.Path, tasks: Sequence[TaskSummary],
          error: Optional[str] = None) -> None:
  """Writes the summary as JSON; those of earlier sessions stay in the file.

  Args:
    path: The file; its directory exists.
    tasks: Of the session.
    error: Why the session did not do its work; None: it did.
  """
  path.write_text(json.dumps({
      'version': VERSION, 'error': error,
      'tasks': [task._asdict() for task in tasks],
      'earlier': _earlier(path)}, indent=2) + '\n')


def _earlier(path: pathlib.Path) -> list[Mapping[str, Any]]:
  """Returns the summaries of earlier sessions, the oldest first."""
  try:
    newest = json.loads(path.read_text())
  except (OSError, ValueError):
    return []
  return [*newest.pop('earlier', ()), newest]
