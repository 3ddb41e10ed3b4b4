# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Record, on each parameter server, of the tasks that train or have ended.

The record is in the tables of `task_tables`. A worker that restarts may report
again. A second table holds the number of steps of each worker.

Protocol:
  1. A worker writes its steps at intervals. When it has ended, it writes its
     name to the record of every ps.
  2. The chief reads the records until every worker is on one, or until no
     worker has made a step for the time limit: a worker may be lost. Only then
     does it write all names, and its own, to every record: a ps that has ended
     cannot be read.
  3. A ps reads its own record until the chief and every worker are on it.
  4. A ps that restarts has an empty record. The chief reads all records while
     it trains, and writes the names that it has read before to the empty one.

In a run that workers may join there is more:
  5. Each worker writes that it is present, to the first ps, and again with its
     steps where the record does not say so. A worker that a signal stops writes
     that it has left.
  6. The chief awaits all workers that are present, and none that has left.
     For a worker whose steps stand still up to the limit it writes that it has
     left. A worker that was only slow writes again that it is present.
  7. Each ps publishes the cluster, for workers that join.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import task_tables

tf1 = tf.compat.v1

POLL_SECS = 0.2
_REPORT_SECS = 2.0


def report_finished(cluster_spec: tf.train.ClusterSpec, *tasks: str,
                    time_limit_secs: float = 30.0) -> None:
  """Writes the names of finished tasks to the list of every parameter server.

  The last name is the reporting task's. Each ps gets `time_limit_secs` seconds.
  One that cannot be reached has ended already, and is skipped with a warning.
  """
  _report(cluster_spec, tasks, task_tables.FINISHED, time_limit_secs)


def report_left(cluster_spec: tf.train.ClusterSpec, *tasks: str,
                time_limit_secs: float = 30.0) -> None:
  """Writes, as `report_finished` does, that tasks have left the run."""
  _report(cluster_spec, tasks, task_tables.LEFT, time_limit_secs)


def _report(cluster_spec: tf.train.ClusterSpec, tasks: Sequence[str],
            state: int, time_limit_secs: float) -> None:
  for ps_index in _ps_indices(cluster_spec) if tasks else ():
    board = _board(cluster_spec, ps_index)
    deadline = time.monotonic() + time_limit_secs
    while board.end(tasks, state) is None:
      if time.monotonic() > deadline:
        tf1.logging.warning('%s could not report to ps:%d that it has '
                            'finished.',
                            tasks[-1], ps_index)
        break
      time.sleep(POLL_SECS)
    board.close()


def publish(cluster_spec: tf.train.ClusterSpec, ps_index: int,
            description: str) -> None:
  """Publishes the cluster at a parameter server, for tasks that join.

  Until the chief counts them, all workers of the cluster are taken for present.
  """
  board = _board(cluster_spec, ps_index)
  board.publish(description)
  board.count_present(
      cluster_task.ClusterTask(cluster_spec).num_workers)
  board.close()


class TaskRecords:
  """The records of one ps or of all, and the names read from any of them.

  A ps that restarts has an empty record, and `keep` fills it again.

  Attributes:
    marks: The latest mark of each task; see `task_tables`.
    steps: The last known number of steps of each other task.
  """

  def __init__(self, cluster_spec: tf.train.ClusterSpec,
               ps_index: int | None = None):
    """Prepares the records of one ps, or of every ps if `ps_index` is None."""
    indices = _ps_indices(cluster_spec) if ps_index is None else [ps_index]
    self._boards = [_board(cluster_spec, index) for index in indices]
    self._moved: dict[str, tuple[int | None, float]] = {}
    self.marks: dict[str, int] = {}
    self.steps: dict[str, int] = {}

  @property
  def known(self) -> set[str]:
    """The tasks that have finished or left."""
    return self._in_state(task_tables.FINISHED, task_tables.LEFT)

  @property
  def claimed(self) -> set[str]:
    """The tasks whose launchers have a place for them, and no more yet."""
    return self._in_state(task_tables.CLAIMED)

  @property
  def present(self) -> set[str]:
    """The tasks that have written that they are present."""
    return self._in_state(task_tables.PRESENT)

  def keep(self) -> set[str]:
    """Reads the records, completes each from the others, returns `known`."""
    seen = [(board, board.read()) for board in self._boards]
    for board, marks in seen:
      self.steps.update(board.steps)
      for name, mark in (marks or {}).items():
        self.marks[name] = max(mark, self.marks.get(name, 0))
    for board, marks in seen:
      if marks is not None:
        late = {name: mark for name, mark in self.marks.items()
                if mark > marks.get(name, 0)}
        if late:
          board.merge(late)
    return self.known

  def count_present(self) -> None:
    """Writes, for the chief, how many workers train now."""
    self._boards[0].count_present(1 + len(self.present))

  def drop_still(self, names: Iterable[str], limit_secs: float) -> list[str]:
    """Writes LEFT for those whose steps have not changed up to the limit.

    Call it at intervals. Returns the names.
    """
    now = time.monotonic()
    still = []
    for name in names:
      steps, since = self._moved.get(name, (None, None))
      if since is None or steps != self.steps.get(name):
        self._moved[name] = (self.steps.get(name), now)
      elif now - since >= limit_secs:
        still.append(name)
        # If it arrives again, it gets the whole time.
        del self._moved[name]
        self.marks[name] = task_tables.in_state(self.marks.get(name, 0),
                                                task_tables.LEFT)
    if still:
      tf1.logging.warning(
          '%s made no step in %g s: the run goes on as if %s had left.',
          ', '.join(still), limit_secs, 'it' if len(still) == 1 else 'they')
    for board in self._boards if still else ():
      board.end(still, task_tables.LEFT)
    return still

  def close(self) -> None:
    """Closes the sessions."""
    for board in self._boards:
      board.close()

  def _in_state(self, *states: int) -> set[str]:
    return {name for name, mark in self.marks.items()
            if task_tables.state_of(mark) in states}


class StepReport:
  """Writes a task's steps to a parameter server, every few seconds."""

  def __init__(self, cluster_spec: tf.train.ClusterSpec, task: str,
               is_present: bool = False):
    """Prepares the report; the first step opens the session.

    `is_present` says whether to write, now and with the steps, that the task is
    present.
    """
    index = next(iter(_ps_indices(cluster_spec)), None)
    self._board = None if index is None else _board(cluster_spec, index)
    self._task = task
    self._is_present = is_present
    self._num_steps = 0
    self._next = float('-inf')
    if self._board is not None and is_present:
      self._board.arrive(task)

  def count(self) -> None:
    """Counts a step of the task."""
    self._num_steps += 1
    now = time.monotonic()
    if self._board is None or now < self._next:
      return
    self._next = now + _REPORT_SECS
    mark = self._board.write_steps(self._task, self._num_steps)
    if self._is_present and mark is not None and (
        task_tables.state_of(mark) != task_tables.PRESENT):
      # The ps has restarted, or the chief took this task for lost.
      self._board.arrive(self._task)

  def close(self) -> None:
    """Closes the session."""
    if self._board is not None:
      self._board.close()


def _ps_indices(cluster_spec: tf.train.ClusterSpec) -> list[int]:
  if 'ps' not in cluster_spec.jobs:
    return []
  return cluster_spec.task_indices('ps')


def _board(cluster_spec: tf.train.ClusterSpec,
           ps_index: int) -> task_tables.Board:
  return task_tables.Board(cluster_spec.task_address('ps', ps_index),
                           f'/job:ps/task:{ps_index}')
