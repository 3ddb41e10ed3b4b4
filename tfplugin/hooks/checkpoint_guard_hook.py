# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps a run's newest checkpoint whole, finite and new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import guarded_graphs
from tfplugin.checkpoints import last_saves
from tfplugin.checkpoints import training_guard
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.hooks.endings import closing
from tfplugin.hooks.endings import last_steps

tf1 = tf.compat.v1

# The rhythm of the last saves where Estimator saves nothing, and a hook does.
_SAVE_SECS = 600


class CheckpointGuardHook(tf1.train.SessionRunHook):
  """Makes starts and saves of a training session survive faults.

  It acts in the chief, and in a process alone; another task may have it too.
  `tfplugin.estimator.train_and_evaluate` brings it.

  * Before the session is made, the newest checkpoint is read. If it is damaged,
    or holds a NaN or an infinity, or if the file `checkpoint` is missing, the
    newest whole and finite one is restored, with a warning that names both.
    What a save left that was killed is deleted.
  * A state with a NaN or an infinity is not saved; an error names the variables
    and the step. A training whose last state is such a one ends with an error.
  * A save that finds a full disk is tried again, up to a limit.
  * A chief that comes back to living parameter servers restores nothing over
    what they have learnt meanwhile, and saves that at once.
  * A session is given 5 seconds to close, which may take a minute otherwise.
  * Listeners hear of each save, whichever Saver writes it. TensorFlow's own
    train_and_evaluate drops them under a strategy in a cluster.

  Reading takes as long as restoring does, and the memory of the largest
  variable; each save looks at the variables twice, where they are.

  Raises:
    ValueError: from `begin`, when there are checkpoints and none is fit.
    RuntimeError: from `end` or the last save, when the last state has a NaN.
    tf.errors.ResourceExhaustedError: from a save, when the disk stays full.

  Differences from tf.contrib: there was none.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig(model_dir='a_model_dir')
    >>> hook = hooks.CheckpointGuardHook(config)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               space_limit_secs: float = 300.0,
               listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
               others: Optional[last_steps.LastSteps] = None):
    """Prepares the guard.

    Args:
      config: The Estimator's configuration, which knows task and model_dir.
      space_limit_secs: How long a save waits, in seconds, while the disk is
        full.
      listeners: Are told of saves that are made, and may end the training.
      others: The chief's wait before its last save, for a caller that calls
        `before_end`; None: nobody is waited for.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    time_limit.check(space_limit_secs)
    self._task = cluster_task.from_config(config)
    self._config = config
    self._model_dir = config.model_dir
    self._space_limit_secs = space_limit_secs
    self._listeners = tuple(listeners)
    self._others = others
    self._has_chosen = False
    self._guard = None

  def choose_checkpoint(self) -> None:
    """Does what `begin` does first; `begin` then leaves it out.

    For a caller that looks at the newest checkpoint before it trains.
    """
    if self._task.is_chief and self._model_dir:
      checkpoint_files.remove_left_behind(self._model_dir)
      checkpoint_files.fall_back(self._model_dir)
    self._has_chosen = True

  def begin(self) -> None:
    """Chooses the checkpoint, and guards the graph; see the class."""
    if not self._task.is_chief:
      return
    if not self._has_chosen:
      self.choose_checkpoint()
    self._has_chosen = False
    for listener in self._listeners:
      listener.begin()
    self._guard = training_guard.TrainingGuard(
        self._task.name, has_servers=bool(self._task.num_ps),
        space_limit_secs=self._space_limit_secs, listeners=self._listeners,
        last_save=self._make_last_save())
    guarded_graphs.put(self._guard)
    guarded_graphs.in_place_of_close(closing.close_in_time)

  def after_run(self, run_context, run_values) -> None:
    """Ends the training if a listener has asked for it."""
    del run_values
    if self._guard is not None and self._guard.is_to_stop:
      run_context.request_stop()

  def before_end(self, session: tf1.Session) -> None:
    """Waits for the others' last steps; to be called before any hook ends.

    Args:
      session: The session, which has made its last step.
    """
    if self._guard is not None:
      self._guard.before_end(session)

  def _make_last_save(self) -> Optional[last_saves.LastSave]:
    if self._others is None:
      return None
    secs, steps = (self._config.save_checkpoints_secs,
                   self._config.save_checkpoints_steps)
    return last_saves.LastSave(
        self._others, self._model_dir, tf1.train.SecondOrStepTimer(
            every_secs=secs if secs or steps else _SAVE_SECS,
            every_steps=steps))

  def end(self, session: tf1.Session) -> None:
    """Tells the listeners, after the last save."""
    if self._guard is not None:
      self._guard.end(session)
