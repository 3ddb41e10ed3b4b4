# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The last checkpoint of a chief that trains with others."""

from __future__ import annotations

import posixpath
import time
from typing import Any
from typing import Callable
from typing import Optional
from typing import Protocol

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_LOOK_SECS = 5.0


class Others(Protocol):
  """The other tasks that train; see `hooks.endings.last_steps.LastSteps`."""

  def comes_after(self, global_step: int) -> bool:
    """Whether a checkpoint of this step is left to the end."""

  def awaits_others(self) -> bool:
    """Whether there are others."""

  def wait(self, while_waiting: Callable[[], None]) -> None:
    """Waits for the last step of each."""


class LastSave:
  """Decides when the last checkpoint is saved, and saves it if nobody does.

  The session ends after the chief's own last step, whatever that is. Before any
  hook ends, the chief waits for the others' last steps; meanwhile it saves in
  the usual rhythm. The Saver's hook then saves at the end, unless it has saved
  at the same step before; that save, or a postponed one, is made up for.
  """

  def __init__(self, others: Others, model_dir: Optional[str],
               timer: tf1.train.SecondOrStepTimer):
    """Takes one session's settings.

    Args:
      others: Whom to wait for.
      model_dir: Where checkpoints are that training goes on from.
      timer: The rhythm of saves while others train on.
    """
    self._others = others
    self._model_dir = (model_dir or '').rstrip('/')
    self._timer = timer
    self._next_look = float('-inf')
    self._save: Optional[Callable[..., Any]] = None
    self._arguments: dict[str, Any] = {}
    self._is_over = self._is_due = False

  def postpones(self, step: int, save: Callable[..., Any],
                arguments: dict[str, Any]) -> bool:
    """Whether a save is left to the end of the training.

    Args:
      step: The global step now.
      save: Saves; called with a session and the arguments by name.
      arguments: Those of the save that is asked for.
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
    """Waits for the others' last steps, the first time that it is called.

    Args:
      session: The session, which has made its last step.
      step: The global step.
    """
    if not self._is_over and self._others.awaits_others():
      self._others.wait(lambda: self._look(session, step))
      self._is_due = True
    self._is_over = True

  def make_up(self, session: tf1.Session, step: int) -> None:
    """Saves, if a save is due that the Saver's hook will not make.

    Args:
      session: The session, whose hooks end.
      step: The global step now.
    """
    # The hook saves at its end unless it has saved at this step before.
    if self._is_due and self._arguments and (
        step == self._arguments['global_step']):
      self._repeat(session, step)

  def _repeat(self, session: tf1.Session, step: int) -> None:
    self._is_due = False
    self._timer.update_last_triggered_step(step)
    self._save(session, {**self._arguments, 'global_step': step})

  def _look(self, session: tf1.Session, step: tf.Tensor) -> None:
    """Saves now and then while others train on."""
    if time.monotonic() < self._next_look:
      return
    self._next_look = time.monotonic() + _LOOK_SECS
    now = int(session.run(step))
    if (self._save is not None and
        self._timer.last_triggered_step() is not None and
        self._timer.should_trigger_for_step(now)):
      self._repeat(session, now)
