# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the newest checkpoint fit, and what the parameter servers have learnt.

The guard of the graph that the chief, or a process alone, trains:

* A state that holds a NaN or an infinity is not saved. It is looked at before
  the save, and again after it, as others train on meanwhile: a file comes into
  the list of checkpoints only then.
  A training whose last state is such a one ends with an error: it is lost.
* A save that finds no space is tried again, up to a limit.
* The last checkpoint is saved when no other task trains any more, and has its
  own step for its name.
* A chief that comes back, or whose session is made anew, restores no checkpoint
  over parameter servers that live: they hold more than the newest checkpoint.
  It restores what died with it.
"""

from __future__ import annotations

import functools
import posixpath
import time
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import finite_state
from tfplugin.checkpoints import last_saves
from tfplugin.checkpoints import own_variables
from tfplugin.events import event_log

tf1 = tf.compat.v1

_RETRY_SECS = 1.0
_SAY_EVERY_SECS = 30.0


class TrainingGuard:
  """See `guarded_graphs.Guard`; to be made when all variables are there.

  Attributes:
    is_to_stop: Whether a listener has asked for the end of the training.
  """

  def __init__(self, who: str, has_servers: bool,
               space_limit_secs: float = 300.0,
               listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
               last_save: Optional[last_saves.LastSave] = None):
    """Adds the ops that look at the variables.

    Args:
      who: The task, for messages.
      has_servers: Whether other processes hold the variables.
      space_limit_secs: How long a save waits for space on a full disk.
      listeners: Are told before each save, and after it.
      last_save: When the last checkpoint is saved; None: with the others.
    """
    self.is_to_stop = False
    self._who = who
    self._space_limit_secs = space_limit_secs
    self._listeners = listeners
    self._last_save = last_save
    self._saved_step = None
    self._is_ending = False
    self._refusal = ''
    variables = tf1.global_variables()
    self._num_variables = len(variables)
    self._finite = finite_state.FiniteState(variables)
    of_servers, own = own_variables.split(variables if has_servers else [])
    self._missing = (tf1.report_uninitialized_variables(of_servers)
                     if of_servers else None)
    self._own = own_variables.OwnVariables(own)
    self._step = tf1.train.get_global_step()

  def save(self, save: Callable[..., str], saver: tf1.train.Saver,
           session: tf1.Session, arguments: dict[str, Any]) -> Optional[str]:
    """See `guarded_graphs.Guard`."""
    if not arguments.get('write_state', True):
      return save(saver, session, **arguments)
    # Others train on: it is one step for all that is said of this save.
    step = self._step_of(session)
    if self._last_save is not None and self._last_save.postpones(
        step, functools.partial(self._save_listed, save, saver), arguments):
      return saver.last_checkpoints[-1] if saver.last_checkpoints else None
    return self._save_listed(save, saver, session, arguments)

  def _save_listed(self, save: Callable[..., str], saver: tf1.train.Saver,
                   session: tf1.Session, arguments: dict[str, Any]
                  ) -> Optional[str]:
    """Saves a checkpoint that training may go on from; tells the listeners."""
    self._saved_step = self._step_of(session)
    for listener in self._listeners:
      listener.before_save(session, self._saved_step)
    with event_log.span('saving', step=self._saved_step):
      path = self._save(save, saver, session, arguments)
    if self._is_ending:
      self._tell_end(session, self._saved_step)
    return path

  def _save(self, save: Callable[..., str], saver: tf1.train.Saver,
            session: tf1.Session, arguments: dict[str, Any]) -> Optional[str]:
    newest = saver.last_checkpoints[-1] if saver.last_checkpoints else None
    if self._is_refused(session, newest):
      return newest
    path = self._with_space(
        lambda: save(saver, session, **{**arguments, 'write_state': False}),
        arguments['save_path'])
    if path is None:
      return path
    if self._is_refused(session, newest):
      # One of the same step is listed already; the next start looks into it.
      if path not in saver.last_checkpoints:
        tf1.train.remove_checkpoint(path)
      return newest
    self._with_space(
        lambda: _tf_internals.list_checkpoint(
            saver, path, arguments.get('latest_filename'),
            arguments.get('meta_graph_suffix', 'meta')),
        arguments['save_path'])
    for listener in self._listeners:
      if listener.after_save(session, self._saved_step):
        self.is_to_stop = True
    return path

  def prepare_session(self, prepare: Callable[..., tf1.Session],
                      arguments: dict[str, Any]) -> tf1.Session:
    """See `guarded_graphs.Guard`."""
    saver, model_dir = arguments.get('saver'), arguments.get('checkpoint_dir')
    if model_dir:
      # A session that is made anew: a parameter server died while it wrote.
      checkpoint_files.remove_left_behind(model_dir)
    if self._missing is None or not self._is_alive(arguments):
      return prepare(**arguments)
    state = model_dir and tf1.train.get_checkpoint_state(model_dir)
    if saver and state:
      # As restoring would: those that are to be deleted later.
      saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    return prepare(arguments['master'], config=arguments.get('config'))

  def before_end(self, session: tf1.Session) -> None:
    """Waits for the last steps of others, before any hook ends.

    Args:
      session: The session in which the training ends.
    """
    if self._last_save is not None:
      self._last_save.wait(session, self._step)

  def end(self, session: tf1.Session) -> None:
    """Tells the listeners, when the last step is saved, that training ends.

    Args:
      session: The session in which it ends.

    Raises:
      RuntimeError: That step is not saved. Where it is yet to be saved, the
        save raises it.
    """
    step = self._step_of(session)
    if self._last_save is not None:
      self._last_save.make_up(session, step)
    self._is_ending = step != self._saved_step
    if not self._is_ending:
      self._tell_end(session, step)

  def _tell_end(self, session: tf1.Session, step: int) -> None:
    if self._refusal:
      raise RuntimeError(
          f'The last step must be one that can be saved. {self._refusal} Start '
          'again from there with a smaller learning rate, clipped gradients, '
          'or `on_nonfinite`; or find the NaN by '
          '`tf.debugging.enable_check_numerics()`.')
    for listener in self._listeners:
      listener.end(session, step)

  def _step_of(self, session: tf1.Session) -> int:
    return int(session.run(self._step))

  def _is_refused(self, session: tf1.Session, newest: Optional[str]) -> bool:
    names = self._finite.not_finite(session)
    self._refusal = ''
    if names:
      self._refusal = (
          f'{self._who} does not save step {self._step_of(session)}: '
          f'{_listed(names)} {"hold" if names[1:] else "holds"} a NaN or an '
          f'infinity. The newest checkpoint is {newest or "none as yet"}.')
      tf1.logging.error('%s', self._refusal)
    return bool(names)

  def _is_alive(self, arguments: dict[str, Any]) -> bool:
    """Whether the parameter servers hold a state that is worth keeping."""
    if len(tf1.global_variables()) != self._num_variables:
      tf1.logging.warning(
          '%s restores the newest checkpoint, whatever the parameter servers '
          'hold: a hook has made variables after the guard.', self._who)
      return False
    # No limit: a large state takes its time, and TensorFlow waits likewise.
    with tf1.Session(arguments['master'],
                     config=arguments.get('config')) as session:
      if session.run(self._missing).size:
        return False
      self._own.restore(self._who, session, arguments)
      names = self._finite.not_finite(session)
      step = self._step_of(session)
    if names:
      tf1.logging.warning(
          '%s restores the newest checkpoint: on the parameter servers, at step'
          ' %s, %s.', self._who, step, f'{_listed(names)} not finite')
      return False
    tf1.logging.info('%s goes on from step %s, which the parameter servers '
                     'hold; nothing is restored.', self._who, step)
    return True

  def _with_space(self, write: Callable[[], Any], save_path: str) -> Any:
    """Writes; waits while the disk is full."""
    directory = posixpath.dirname(save_path)
    start = time.monotonic()
    said = float('-inf')
    while True:
      try:
        return write()
      # The second for a file that is too large, and for the end of an input.
      except (tf.errors.ResourceExhaustedError,
              tf.errors.OutOfRangeError) as e:
        reason = _full_disk(e)
        if reason is None:
          raise
        now = time.monotonic()
        if now - start > self._space_limit_secs:
          raise OSError(
              f'{self._who} waited {self._space_limit_secs:g} s for space to '
              f'save in {directory}: {reason}. Make room, and start it again.'
          ) from e
        if now - said > _SAY_EVERY_SECS:
          said = now
          tf1.logging.warning(
              '%s waits for space to save in %s, %g s at most: %s.', self._who,
              directory, self._space_limit_secs, reason)
        checkpoint_files.remove_left_behind(directory)
        time.sleep(_RETRY_SECS)


def _listed(names: list[str]) -> str:
  more = f' and {len(names) - 5} more' if names[5:] else ''
  return ', '.join(f'`{name}`' for name in names[:5]) + more


def _full_disk(error: tf.errors.OpError) -> Optional[str]:
  """Returns what TensorFlow's file system said, if it was about space."""
  for text in ('No space left on device', 'Disk quota exceeded',
               'File too large'):
    if text in error.message:
      return text
  return None
