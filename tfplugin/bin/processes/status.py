# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A role's status, told to the launcher by lines of JSON in a file."""

from __future__ import annotations

import json
import os
import pathlib
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple
from typing import Optional
from typing import Union

import tensorflow as tf

tf1 = tf.compat.v1

_EVERY_SECS = 0.5
# More than two lines have.
_MOST_BYTES = 1 << 16


class Status(NamedTuple):
  """One line: the state of a role at some moment.

  Attributes:
    time: Seconds since the epoch.
    first_step_time: When its first step ended; None before.
    global_step: The step of the whole run.
    local_steps: Steps that this role has made in this run.
    loss: The loss of its last batch.
    figures: The figures of the technique, by name.
    counts: Its counts, by name; the counts of all roles add up.
  """

  time: float
  first_step_time: Optional[float]
  global_step: int
  local_steps: int
  loss: float
  figures: dict
  counts: dict


class StatusHook(tf1.train.SessionRunHook):
  """Writes a line twice a second, after the first step and at the end."""

  def __init__(self, path: Union[str, os.PathLike], loss: tf.Tensor,
               figures: Mapping[str, tf.Tensor],
               counts: Mapping[str, Union[tf.Tensor,
                                          Callable[[], tf.Tensor]]]):
    """Prepares the file.

    Args:
      path: The file; an earlier run's lines are overwritten.
      loss: Scalar tensor.
      figures: Scalar tensors by the name under which they are shown.
      counts: Likewise, where the sum over the roles is shown; or functions
        that find the tensor once the whole graph is there.
    """
    self._path = pathlib.Path(path)
    self._tensors = {'loss': loss}
    self._figures = {'figures': dict(figures), 'counts': dict(counts)}
    self._last_figures = {'figures': {}, 'counts': {}}
    self._is_due = False
    self._file = None
    self._local_steps = 0
    self._first_step_time = None
    self._last_time = float('-inf')
    self._last_values = None

  def begin(self) -> None:
    """Opens the file and finds the global step."""
    self._tensors['global_step'] = tf1.train.get_global_step()
    self._figures['counts'] = {
        name: count() if callable(count) else count
        for name, count in self._figures['counts'].items()}
    self._file = open(self._path, 'w')

  def before_run(self, run_context) -> tf1.train.SessionRunArgs:
    """Asks for step and loss, and for the figures when they will be shown."""
    del run_context
    self._is_due = time.time() - self._last_time >= _EVERY_SECS
    return tf1.train.SessionRunArgs(
        {**self._tensors, **(self._figures if self._is_due else {})})

  def after_run(self, run_context, run_values) -> None:
    """Counts the step; writes a line when it is time."""
    del run_context
    now = time.time()
    self._local_steps += 1
    self._last_values = run_values.results
    if self._first_step_time is None:
      self._first_step_time = now
    if self._is_due:
      self._last_figures = run_values.results
      self._write(now)

  def end(self, session: tf1.Session) -> None:
    """Writes the last line."""
    if self._last_values is not None:
      # Counts can be read at any time, figures belong to a step.
      counts = session.run(self._figures['counts'])
      self._last_figures = {**self._last_figures, 'counts': counts}
      self._write(time.time())
    self._file.close()

  def _write(self, now: float) -> None:
    self._last_time = now
    values = {**self._last_figures, **self._last_values}
    line = Status(
        time=now,
        first_step_time=self._first_step_time,
        global_step=int(values['global_step']),
        local_steps=self._local_steps,
        loss=float(values['loss']),
        figures={k: float(v) for k, v in values['figures'].items()},
        counts={k: int(v) for k, v in values['counts'].items()})
    self._file.write(json.dumps(line._asdict()) + '\n')
    self._file.flush()


def read_last(path: Union[str, os.PathLike]) -> Optional[Status]:
  """Returns the last whole line of the file, or None if there is none yet."""
  try:
    with open(path, 'rb') as file:
      # It is asked often, and the file of a long run is long.
      file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_BYTES))
      lines = file.read().split(b'\n')
  except FileNotFoundError:
    return None
  # After the last newline comes a line that is just being written.
  return Status(**json.loads(lines[-2])) if len(lines) > 1 else None


def combine(statuses: Iterable[Status]) -> dict[str, float]:
  """Returns the figures and counts of all the roles together.

  Args:
    statuses: The last status of each role that has begun.

  Returns:
    The figures of the role that reported last, and the sums of the counts.
  """
  statuses = sorted(statuses, key=lambda s: s.time)
  combined = dict(statuses[-1].figures) if statuses else {}
  for name in statuses[-1].counts if statuses else ():
    combined[name] = sum(s.counts.get(name, 0) for s in statuses)
  return combined
