# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chief's report for tasks for which no parameter server waits.

They are the evaluator, and a worker that joins too late. The report is a file
of the model_dir, which all can read. The chief of a new run deletes it. An
evaluator that starts before the chief may still see the report of the run
before. An evaluator that restarts after the chief's end sees the report of its
own run. `Watch` tells one from the other.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import time
import uuid
from collections.abc import Iterator

import tensorflow as tf

from tfplugin.checkpoints import refused_writes
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.events import event_log
from tfplugin.hooks.shutdown import contact

tf1 = tf.compat.v1

FILE_NAME = 'chief.finished'
# How often a waiting evaluator looks for the report.
_POLL_SECS = 1.0
# How often a worker that joins looks for the other tasks.
_JOIN_POLL_SECS = 0.2
# Longer than a parameter server, or the chief, is away to restart: only the end
# of the run closes the ports of all for this time.
AWAY_SECS = 10.0
# How long the report at the start of an evaluator without a time limit may be
# of an earlier run.
_EARLIER_SECS = 600.0
OVER = 'The run has finished: there is nothing to join.'
# The reports that have ended an evaluation in this process, which may evaluate
# the next training of its chief.
_answered: set[str] = set()


def write(model_dir: str, limit_secs: float = 60.0) -> None:
  """Reports, in the chief, that this run's last checkpoint exists.

  Waits up to a limit while the directory is full or read-only.
  """
  refused_writes.written(lambda: _write(model_dir), model_dir, 'The chief',
                         limit_secs)


def _write(model_dir: str) -> None:
  with tf.io.gfile.GFile(posixpath.join(model_dir, FILE_NAME), 'w') as file:
    # The content differs between runs.
    file.write(f'{uuid.uuid4().hex}{_session()}\n')


def _session() -> str:
  """Returns the end of the reports of this launch; empty if it has no number.

  A launcher gives one number to all tasks, and another one to the next launch.
  """
  number = os.environ.get(event_log.SESSION_VARIABLE)
  return f' of session {number}' if number else ''


def is_written(model_dir: str) -> bool:
  """Returns whether there is a report; it may be of an earlier run."""
  return tf.io.gfile.exists(posixpath.join(model_dir, FILE_NAME))


def delete(model_dir: str) -> None:
  """Deletes, in the chief, the report of an earlier run, if there is one."""
  if is_written(model_dir):
    tf.io.gfile.remove(posixpath.join(model_dir, FILE_NAME))


class RunFinishedError(Exception):
  """Raised in a worker that joins a run whose training has finished."""


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
  """Ends the context, with a warning, at a RunFinishedError."""
  try:
    yield
  except RunFinishedError as e:
    tf1.logging.warning('%s', e)


def check_joined_run(task: cluster_task.ClusterTask, model_dir: str) -> None:
  """Returns, in a worker that joins, as soon as one of the others answers.

  The run does not wait for a worker whose process is starting, and may be over
  when the worker has a session to make.

  Raises RunFinishedError if none does and the chief has reported its end in the
  `model_dir`. Without a report TimeoutError follows after some seconds. In
  another task it does nothing.
  """
  if not membership.read().joins:
    return
  spec = task.cluster_spec
  others = [*(f'ps:{i}' for i in spec.task_indices('ps')), *task.others]
  patience = time_limit.Patience(task.name, AWAY_SECS)
  while len(contact.unreachable(spec, others)) == len(others):
    if is_written(model_dir):
      raise RunFinishedError(OVER)
    patience.check(
        f'a sign of the run that it joined: {", ".join(others)}',
        f'The run has ended, without a report in {model_dir}. Start the run '
        'again.')
    time.sleep(_JOIN_POLL_SECS)


class Watch:
  """Check of an evaluator whether further checkpoints will be written.

  A report that exists at the start counts as an earlier run's, as the chief may
  not have started yet. It counts as this run's end in two cases: it has the
  number of this launch, or the chief neither deletes it in the time limit nor
  has its port open then.
  """

  def __init__(self, task: cluster_task.ClusterTask, model_dir: str,
               time_limit_secs: float | None,
               max_steps: int | None = None):
    """Begins to watch.

    The evaluator waits up to `time_limit_secs` seconds while the chief is
    unreachable; None waits for its report alone. So does an evaluator that does
    not know the address of the chief. So does one with a checkpoint whose chief
    trains alone: TensorFlow starts no server in the only task of a cluster.
    `max_steps` is the global step at which training ends, or None. Once the
    chief has ended after it, no report is needed.
    """
    self._model_dir = model_dir
    self._earlier = self._report()
    if self._earlier and self._earlier not in _answered and _session() and (
        self._earlier.rstrip('\n').endswith(_session())):
      self._earlier = None
    self._earlier_secs = (
        _EARLIER_SECS if time_limit_secs is None else time_limit_secs)
    self._start = time.monotonic()
    self._cluster_spec = task.cluster_spec
    tasks = task.training_tasks
    self._has_port = bool(tasks) and len(tasks) + task.num_ps > 1
    self._chief = tasks[0] if tasks else 'chief'
    time_limit_secs = time_limit_secs if tasks else None
    self._can_look = self._has_port and time_limit_secs is not None
    self._is_at_max_steps = False
    self._max_steps = max_steps
    self._contact = contact.Contact(
        task.cluster_spec, self._chief, task.name, time_limit_secs)
    self._last_seen = None
    self._is_over = False

  def evaluated(self, global_step: int) -> None:
    """Notes that the checkpoint of a global step was evaluated.

    A checkpoint beyond `max_steps` is the last one only if the chief has ended:
    it waits for the workers' last steps.
    """
    self._is_at_max_steps = (self._max_steps is not None and
                             global_step >= self._max_steps)

  def is_complete(self) -> bool:
    """Returns whether the newest checkpoint is the training's last one."""
    report = self._report()
    if report is not None and (
        report != self._earlier or self._is_of_this_run()):
      _answered.add(report)
      return True
    return self._is_at_max_steps and not self._sees_chief()

  def wait(self, secs: float) -> None:
    """Waits `secs` seconds, or until the training's last checkpoint exists."""
    end = time.monotonic() + secs
    while time.monotonic() < end and not self.is_complete():
      time.sleep(max(0.0, min(_POLL_SECS, end - time.monotonic())))

  def goes_on(self) -> bool:
    """Returns whether to evaluate again: False after the last checkpoint.

    Call it before each evaluation of the newest checkpoint. Raises TimeoutError
    if the chief has gone and there never was a checkpoint.
    """
    newest = tf1.train.latest_checkpoint(self._model_dir)
    goes_on = not (self._is_over and newest == self._last_seen)
    # The order matters: the last checkpoint is written before the report.
    self._is_over, self._last_seen = self._is_over or self._looks_over(), newest
    return goes_on

  def _is_of_this_run(self) -> bool:
    """Returns whether no chief of a new run has deleted the first report."""
    if (time.monotonic() < self._start + self._earlier_secs or
        self._sees_chief()):
      return False
    tf1.logging.warning(
        'The chief had reported its end in %s before this evaluator started, '
        'and has not started again for %g s: the training has ended. For '
        'another one, start the chief, and this evaluator again.',
        self._model_dir, self._earlier_secs)
    self._earlier = None
    return True

  def _sees_chief(self) -> bool:
    return self._can_look and not contact.unreachable(
        self._cluster_spec, [self._chief])

  def _looks_over(self) -> bool:
    if self.is_complete():
      return True
    try:
      self._contact.check()
    except TimeoutError as error:
      if tf1.train.latest_checkpoint(self._model_dir) is None:
        raise TimeoutError(
            f'{error} There is no checkpoint in `model_dir`, '
            f'{self._model_dir}: chief and evaluator must have one on a disk '
            'that they share.') from error
      if not self._has_port:
        return False
      tf1.logging.warning('%s The newest checkpoint is evaluated.', error)
      return True
    return False

  def _report(self) -> str | None:
    if not is_written(self._model_dir):
      return None
    with tf.io.gfile.GFile(
        posixpath.join(self._model_dir, FILE_NAME)) as file:
      return file.read()
