# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Last checkpoint of a chief that trains with other tasks."""

from __future__ import annotations

import posixpath
import time
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_LOOK_SECS = 5.0


class LastSave:
  """Decides when the last checkpoint is saved, and saves it if needed.

  The session ends after the chief's own last step. Before any hook ends, the
  chief waits for the others' last steps. Meanwhile it saves at the usual
  intervals. The Saver's hook then saves at the end, unless it has saved at the
  same step before. In that case, or after a postponed save, this class saves.
  """

  def __init__(self, others: Any, model_dir: str | None,
               timer: tf1.train.SecondOrStepTimer):
    """Stores the settings of one session.

    `others` is the `hooks.shutdown.waits.LastSteps` of the other tasks.
    `model_dir` holds the checkpoints that a training continues from. `timer`
    gives the interval of saves while others train.
    """
    self._others = others
    self._model_dir = (model_dir or '').rstrip('/')
    self._timer = timer
    self._next_look = float('-inf')
    self._save: Callable[..., Any] | None = None
    self._arguments: dict[str, Any] = {}
    self._is_over = self._is_due = False

  def postpones(self, step: int, save: Callable[..., Any],
                arguments: dict[str, Any]) -> bool:
    """Returns whether a save is postponed to the end of the training.

    `save` takes a session and arguments by name. `arguments` belong to the
    requested save.
    """
    if not (posixpath.dirname(arguments['save_path']) == self._model_dir and
            isinstance(arguments.get('global_step'), (int, np.integer))):
      return False
    self._save, self._arguments = save, arguments
    self._is_due = not self._is_over and self._others.comes_after(step)
    if not self._is_due:
      self._timer.update_last_triggered_step(step)
    return self._is_due

  def wait(self, session: tf1.Session, step: tf.Tensor) -> None:
    """Waits for the others' last steps, at the first call only."""
    if not self._is_over and self._others.awaits_others():
      self._others.wait(lambda: self._look(session, step))
      self._is_due = True
    self._is_over = True

  def make_up(self, session: tf1.Session, step: int) -> None:
    """Saves, if a due save will not be made by the Saver's hook."""
    # The hook saves at its end unless it has saved at this step before.
    if self._is_due and self._arguments and (
        step == self._arguments['global_step']):
      self._repeat(session, step)

  def _repeat(self, session: tf1.Session, step: int) -> None:
    self._is_due = False
    self._timer.update_last_triggered_step(step)
    self._save(session, {**self._arguments, 'global_step': step})

  def _look(self, session: tf1.Session, step: tf.Tensor) -> None:
    """Saves at intervals while others train."""
    if time.monotonic() < self._next_look:
      return
    self._next_look = time.monotonic() + _LOOK_SECS
    now = int(session.run(step))
    if (self._save is not None and
        self._timer.last_triggered_step() is not None and
        self._timer.should_trigger_for_step(now)):
      self._repeat(session, now)
