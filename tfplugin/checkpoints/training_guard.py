# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Guard that keeps checkpoints fit, and the state of parameter servers.

It guards the graph that the chief, or a single process, trains:

* A state that holds a NaN or an infinity is not saved. The state is checked
  before the save and again after it, as other workers train meanwhile. Only
  then is the file added to the list of checkpoints.
  A training whose last state is not finite ends with an error.
* A save that finds no space is tried again, up to a limit.
* The last checkpoint is saved when no other task trains any more, and has its
  own step in its name.
* A chief that restarts, or makes a new session, restores no checkpoint over
  live parameter servers: their state is newer than the newest checkpoint. It
  restores only the variables that were lost with its process. The servers must
  hold a complete state of the same run; see `run_mark`.
* A parameter server that restarts takes averaged variables from the chief's
  copies, if there are any; see `lost_variables`.
"""

from __future__ import annotations

import collections
import functools
import itertools
import posixpath
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import last_saves
from tfplugin.checkpoints import lost_variables
from tfplugin.checkpoints import refused_writes
from tfplugin.checkpoints import run_mark
from tfplugin.events import event_log
from tfplugin.ops import nonfinite

tf1 = tf.compat.v1


class TrainingGuard:
  """Saves and starts of a graph, once `add_ops` was called.

  Attributes:
    is_to_stop: Whether a listener has asked for the end of the training.
    request_stop: Called when a listener asks for it.
  """

  def __init__(self, who: str, has_servers: bool,
               space_limit_secs: float = 300.0,
               listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
               last_save: last_saves.LastSave | None = None):
    """Stores the settings.

    `who` names the task in messages. `has_servers` says that other processes
    hold the variables. A save waits `space_limit_secs` seconds for a full
    disk, or a read-only one. `last_save` decides when the last checkpoint is
    saved; None: at the usual time.
    """
    self.is_to_stop = False
    self.request_stop: Callable[[], None] = lambda: None
    self._who = who
    self._has_servers = has_servers
    self._space_limit_secs = space_limit_secs
    self._listeners = listeners
    self._last_save = last_save
    self._saved_step = None
    self._is_ending = False
    self._refusal = ''

  def add_ops(self) -> None:
    """Adds the ops that check the variables, including the variables of hooks.

    Call it when all hooks have begun.
    """
    variables = tf1.global_variables()
    self._finite = FiniteState(variables)
    of_servers, own = lost_variables.split(
        variables if self._has_servers else [])
    self._missing = (tf1.report_uninitialized_variables(of_servers)
                     if of_servers else None)
    self._mark = run_mark.RunMark(of_servers) if of_servers else None
    self._own = lost_variables.OwnVariables(own)
    self._step = tf1.train.get_global_step()
    self._lost = lost_variables.LostVariables(of_servers, self._step)

  @property
  def step_of_each_run(self) -> tf.Variable | None:
    """The global step, if each step is to fetch it; None otherwise."""
    return self._step if self._lost.has_copies else None

  def end_step(self, step: int) -> None:
    """Takes the fetched global step."""
    self._lost.last_step = int(step)

  def save(self, save: Callable[..., str], saver: tf1.train.Saver,
           session: tf1.Session, arguments: dict[str, Any]) -> str | None:
    """Saves or refuses, as a `session_interception.SaveFn`."""
    if not arguments.get('write_state', True):
      return save(saver, session, **arguments)
    # Other workers train on: every message about this save has one step.
    step = self._step_of(session)
    if self._last_save is not None and self._last_save.postpones(
        step, functools.partial(self._save_listed, save, saver), arguments):
      return saver.last_checkpoints[-1] if saver.last_checkpoints else None
    return self._save_listed(save, saver, session, arguments)

  def _save_listed(self, save: Callable[..., str], saver: tf1.train.Saver,
                   session: tf1.Session, arguments: dict[str, Any]
                  ) -> str | None:
    """Saves a checkpoint to continue from, and calls the listeners."""
    self._saved_step = self._step_of(session)
    for listener in self._listeners:
      listener.before_save(session, self._saved_step)
    with event_log.span('saving', step=self._saved_step):
      path = self._save(save, saver, session, arguments)
    if self._is_ending:
      self._tell_end(session, self._saved_step)
    return path

  def _save(self, save: Callable[..., str], saver: tf1.train.Saver,
            session: tf1.Session, arguments: dict[str, Any]) -> str | None:
    newest = saver.last_checkpoints[-1] if saver.last_checkpoints else None
    if self._is_refused(session, newest):
      return newest
    path = self._written(
        lambda: save(saver, session, **{**arguments, 'write_state': False}),
        arguments['save_path'])
    if path is None:
      return path
    if self._is_refused(session, newest):
      # If one of the same step is listed already, the next start checks it.
      if path not in saver.last_checkpoints:
        tf1.train.remove_checkpoint(path)
      return newest
    self._written(
        lambda: _tf_internals.list_checkpoint(
            saver, path, arguments.get('latest_filename'),
            arguments.get('meta_graph_suffix', 'meta')),
        arguments['save_path'])
    for listener in self._listeners:
      if listener.after_save(session, self._saved_step):
        self.is_to_stop = True
        self.request_stop()
    return path

  def prepare_session(self, prepare: Callable[..., tf1.Session],
                      arguments: dict[str, Any]) -> tf1.Session:
    """Starts a session, as a `session_interception.PrepareFn`."""
    saver, model_dir = arguments.get('saver'), arguments.get('checkpoint_dir')
    # TensorFlow writes the graph when a session begins.
    refused_writes.wait_until_writable(model_dir, self._who,
                                       self._space_limit_secs)
    if model_dir:
      # The session is new because a parameter server died while it wrote.
      checkpoint_files.remove_left_behind(model_dir)
    if self._mark is None:
      return prepare(**arguments)
    run = run_mark.number_of_run(None) if not model_dir else self._written(
        lambda: run_mark.number_of_run(model_dir),
        posixpath.join(model_dir, run_mark.FILE_NAME))
    # No limit: a large state takes long, and TensorFlow has no limit either.
    with tf1.Session(arguments['master'],
                     config=arguments.get('config')) as session:
      is_alive = self._is_alive(session, run, arguments)
      if not is_alive:
        self._mark.write(session, -run if _calls_init_fn(arguments) else
                         run_mark.UNFINISHED)
    if is_alive:
      state = model_dir and tf1.train.get_checkpoint_state(model_dir)
      if saver and state:
        # As restoring does: the Saver deletes these checkpoints later.
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
      session = prepare(arguments['master'], config=arguments.get('config'))
    else:
      self._lost.last_step = None
      session = checkpoint_files.with_fallback(model_dir, functools.partial(
          prepare, **self._marking(run, arguments)))
    self._mark.write(session, run)
    return session

  def _marking(self, run: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns `arguments` with the mark written when an `init_fn` has ended.

    The `local_init_op` behind it may wait for workers, which wait for the mark.
    """
    if not _calls_init_fn(arguments):
      return arguments

    def init_fn(session: tf1.Session) -> None:
      arguments['init_fn'](session)
      self._mark.write(session, run)

    return {**arguments, 'init_fn': init_fn}

  def before_end(self, session: tf1.Session) -> None:
    """Waits for the last steps of others, before any hook ends."""
    if self._last_save is not None:
      self._last_save.wait(session, self._step)

  def end(self, session: tf1.Session) -> None:
    """Informs the listeners, once the last step is saved, that training ends.

    Raises RuntimeError if that step was refused. If it is not yet saved, the
    later save raises the error.
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
          f'The last step cannot be saved. {self._refusal} Start again from '
          'there with a smaller learning rate, clipped gradients, or '
          '`on_nonfinite`; or find the NaN by '
          '`tf.debugging.enable_check_numerics()`.')
    for listener in self._listeners:
      listener.end(session, step)

  def _step_of(self, session: tf1.Session) -> int:
    return int(session.run(self._step))

  def _is_refused(self, session: tf1.Session, newest: str | None) -> bool:
    names = self._finite.not_finite(session)
    self._refusal = ''
    if names:
      self._refusal = (
          f'{self._who} does not save step {self._step_of(session)}: '
          f'{_listed(names)} {"hold" if names[1:] else "holds"} a NaN or an '
          f'infinity. The newest checkpoint is {newest or "none as yet"}.')
      tf1.logging.error('%s', self._refusal)
    return bool(names)

  def _is_alive(self, session: tf1.Session, run: int,
                arguments: dict[str, Any]) -> bool:
    """Returns whether the parameter servers hold a state worth keeping."""
    missing = [name.decode() for name in session.run(self._missing)]
    mark = int(session.run(self._mark.number))
    # The server of the mark may have restarted, and lost its variables too.
    if mark != run and (mark or not missing):
      state = 'the state of another model_dir'
      if not mark:
        state = 'a state without the mark of this model_dir'
      elif mark in (-run, run_mark.UNFINISHED):
        state = 'a state that was not completely prepared'
      tf1.logging.warning(
          '%s restores the newest checkpoint, or initialises the variables if '
          'there is none: the parameter servers hold %s.', self._who, state)
      return False
    if missing and not self._lost.give_back(
        self._who, session, missing, arguments.get('checkpoint_dir')):
      return False
    self._own.restore(self._who, session, arguments)
    names = self._finite.not_finite(session)
    step = self._step_of(session)
    if names:
      tf1.logging.warning(
          '%s restores the newest checkpoint: on the parameter servers, at step'
          ' %s, %s.', self._who, step, f'{_listed(names)} not finite')
      return False
    tf1.logging.info('%s continues from step %s, which the parameter servers '
                     'hold; nothing is restored.', self._who, step)
    return True

  def _written(self, write: Callable[[], Any], save_path: str) -> Any:
    """Calls `write`; waits and repeats while the file system refuses."""
    directory = posixpath.dirname(save_path)
    return refused_writes.written(
        write, directory, self._who, self._space_limit_secs,
        functools.partial(checkpoint_files.remove_left_behind, directory))


def _calls_init_fn(arguments: dict[str, Any]) -> bool:
  """Returns whether TensorFlow restores no checkpoint, and calls `init_fn`."""
  restores = arguments.get('saver') and lost_variables.checkpoint_of(arguments)
  return bool(arguments.get('init_fn') and not restores)


def _listed(names: list[str]) -> str:
  more = f' and {len(names) - 5} more' if names[5:] else ''
  return ', '.join(f'`{name}`' for name in names[:5]) + more


class FiniteState:
  """The ops that check every variable on its own device.

  Each device reduces its variables to one vector of flags. Only the flags
  travel.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    """Adds the ops to the current graph; integer variables are left out."""
    by_device = collections.defaultdict(list)
    for variable in itertools.chain.from_iterable(map(_copies, variables)):
      if variable.dtype.base_dtype.is_floating or (
          variable.dtype.base_dtype.is_complex):
        by_device[variable.device].append(variable)
    self._names = [v.op.name for group in by_device.values() for v in group]
    with tf1.control_dependencies(None), tf1.name_scope('finite_state'):
      self._flags = [_flags(device, group)
                     for device, group in by_device.items()]

  def not_finite(self, session: tf1.Session) -> list[str]:
    """Returns the names of the variables that hold a NaN or an infinity."""
    flags = [flag for group in session.run(self._flags) for flag in group]
    return [name for name, is_finite in zip(self._names, flags)
            if not is_finite]


def _copies(variable: tf.Variable) -> Sequence[tf.Variable]:
  """Returns the copies of a distributed variable, on several devices."""
  if isinstance(variable, tf.distribute.DistributedValues):
    return variable.values
  return [variable]


def _flags(device: str, variables: Sequence[tf.Variable]) -> tf.Tensor:
  """Returns whether each of the variables, all on one device, is finite."""
  flags = []
  for variable in variables:
    with tf1.device(device), tf1.colocate_with(variable, ignore_existing=True):
      flags.append(nonfinite.is_finite(variable.read_value()))
  with tf1.device(device):
    return tf.stack(flags)
