# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that keeps a run's newest checkpoint whole, finite and new."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import last_saves
from tfplugin.checkpoints import refused_writes
from tfplugin.checkpoints import session_closing
from tfplugin.checkpoints import training_guard
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import session_interception
from tfplugin.hooks import telemetry_hook
from tfplugin.hooks.shutdown import waits

tf1 = tf.compat.v1

# The interval of the last saves if a hook saves, and not Estimator.
_SAVE_SECS = 600


class CheckpointGuardHook(tf1.train.SessionRunHook):
  """Makes starts and saves of a training session survive faults.

  It acts in the chief and in a single process. In a worker without parameter
  servers, which saves too, it only makes saves wait for the disk. In other
  tasks it does nothing. `tfplugin.estimator.train_and_evaluate` adds it.

  * Before the session is made, the newest checkpoint is read. If it is damaged,
    holds a NaN or an infinity, or has no file `checkpoint`, an older one is
    restored: the newest whole and finite one. A warning names both. A session
    that replaces a lost one does the same, if the newest cannot be restored.
    Files of a killed save are deleted.
  * A state with a NaN or an infinity is not saved. An error names the variables
    and the step. A training whose last state is not finite ends with an error.
  * A save on a full disk is tried again, up to a limit. So is a save into a
    read-only directory that holds files. A session begins only when files can
    be written.
  * A chief that restarts beside live parameter servers restores nothing over
    their newer state, and saves that state at once. A state of another
    model_dir, or of an interrupted initialisation, is not kept.
  * Under elastic averaging a parameter server that restarts continues from the
    chief's copies, and no checkpoint is restored.
  * Closing a session takes 5 seconds at most; otherwise it may take a minute.
  * Listeners are called at each save, whichever Saver writes it. In a cluster
    with a strategy, TensorFlow's own train_and_evaluate drops them.

  Reading takes as long as restoring does, and the memory of the largest
  variable. Each save checks the variables twice, on their own devices.

  Raises:
    ValueError: from `begin`, when there are checkpoints and none is fit.
    RuntimeError: from `begin`, when the graph has no global step. Also from
      `end` or the last save, when the last state has a NaN.
    OSError: from a save, when the disk stays full or read-only up to the limit.

  Differences from tf.contrib: there was no such hook.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> config = tf.estimator.RunConfig(model_dir='a_model_dir')
    >>> hook = hooks.CheckpointGuardHook(config)
  """

  def __init__(self, config: tf.estimator.RunConfig,
               space_limit_secs: float = refused_writes.LIMIT_SECS,
               listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
               others: waits.LastSteps | None = None):
    """Prepares the guard.

    Args:
      config: The Estimator's configuration, with task and model_dir.
      space_limit_secs: How long a save waits, in seconds, while the disk is
        full or read-only.
      listeners: They are called at each save that is made, and may end the
        training.
      others: The chief's wait before its last save, for a caller that calls
        `before_end`; None: no wait.

    Raises:
      TypeError: the limit is not a number.
      ValueError: it is not positive, or not finite.
    """
    self._space_limit_secs = time_limit.check(
        'space_limit_secs', space_limit_secs)
    self._task = cluster_task.from_config(config)
    self._config = config
    self._model_dir = config.model_dir
    self._listeners = tuple(listeners)
    self._others = others
    self._has_chosen = False
    self._guard = None

  def choose_checkpoint(self) -> None:
    """Chooses the checkpoint to restore; `begin` then omits this part.

    Call it to read the newest checkpoint before the training.
    """
    if self._task.is_chief and self._model_dir:
      checkpoint_files.remove_left_behind(self._model_dir)
      checkpoint_files.fall_back(self._model_dir)
    self._has_chosen = True

  def begin(self) -> None:
    """Chooses the checkpoint, and guards the graph; see the class."""
    if not self._task.is_chief:
      if self._task.trains and not self._task.num_ps:
        refused_writes.wait_until_writable(self._model_dir, self._task.name,
                                           self._space_limit_secs)
        session_interception.in_place_of_save(refused_writes.patient_save(
            self._task.name, self._space_limit_secs))
      return
    telemetry_hook.global_step_for(self)
    if not self._has_chosen:
      self.choose_checkpoint()
    self._has_chosen = False
    for listener in self._listeners:
      listener.begin()
    self._guard = training_guard.TrainingGuard(
        self._task.name, has_servers=bool(self._task.num_ps),
        space_limit_secs=self._space_limit_secs, listeners=self._listeners,
        last_save=self._make_last_save())
    # The variables of later hooks belong to the state, too.
    session_interception.on_completion(self._guard.add_ops)
    session_interception.in_place_of_save(self._guard.save)
    session_interception.in_place_of_start(self._guard.prepare_session)
    session_interception.in_place_of_close(session_closing.close_in_time)

  def before_run(self, run_context) -> tf1.train.SessionRunArgs | None:
    """Fetches the global step, where a lost server may need it."""
    # Estimator's hook that saves reads it in each step of the chief, too.
    if self._guard is None:
      return None
    # A hook after this one saves, and its listener may end this very step.
    self._guard.request_stop = run_context.request_stop
    step = self._guard.step_of_each_run
    return None if step is None else tf1.train.SessionRunArgs(step)

  def after_run(self, run_context, run_values) -> None:
    """Ends the training if a listener asked for it before the first step."""
    if self._guard is not None:
      if run_values.results is not None:
        self._guard.end_step(run_values.results)
      if self._guard.is_to_stop:
        run_context.request_stop()

  def before_end(self, session: tf1.Session) -> None:
    """Waits for the others' last steps; call it before any hook ends.

    Args:
      session: The session, after its last step.
    """
    if self._guard is not None:
      self._guard.before_end(session)

  def _make_last_save(self) -> last_saves.LastSave | None:
    if self._others is None:
      return None
    secs, steps = (self._config.save_checkpoints_secs,
                   self._config.save_checkpoints_steps)
    return last_saves.LastSave(
        self._others, self._model_dir, tf1.train.SecondOrStepTimer(
            every_secs=secs if secs or steps else _SAVE_SECS,
            every_steps=steps))

  def end(self, session: tf1.Session) -> None:
    """Informs the listeners, after the last save, that training ends."""
    if self._guard is not None:
      self._guard.end(session)
