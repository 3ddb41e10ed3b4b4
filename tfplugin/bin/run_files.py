# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of a run in its model_dir: paths, the lock, checks of checkpoints."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import tempfile
from collections.abc import Iterator
from collections.abc import Mapping

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import model_dir_lock
from tfplugin.events import clock
from tfplugin.events import event_files

tf1 = tf.compat.v1

LOCK = 'launch.lock'
LAUNCH_ENDED = 0.0
_REMEDY = ('Nothing was changed. Choose another `model_dir`, or move these '
           'files away.')


def log_dir(model_dir: str | os.PathLike) -> pathlib.Path:
  """Returns the directory of the log files, one for each role."""
  return pathlib.Path(model_dir) / 'logs'


def make_dir(argument: str, path: str | os.PathLike) -> None:
  """Makes a directory; a `ValueError` names `argument`, which gives it."""
  if '://' in os.fspath(path):
    raise ValueError(f'`{argument}` must be on a file system of this machine. '
                     f'Received: {path}. Choose another, or leave it out.')
  try:
    os.makedirs(path, exist_ok=True)
    tempfile.TemporaryFile(dir=path).close()
  except OSError as e:
    raise ValueError(f'`{argument}` must be a directory that can be written '
                     f'to. Received: {path} ({e.strerror}). Choose '
                     'another.') from e


def new_dir(argument: str, path: str) -> str:
  """Makes a directory that no other run has; returns its path.

  It is `path`, or `path-2` and so on if others exist. `argument` is the user's
  argument that the message of a `ValueError` names.
  """
  make_dir(argument, os.path.dirname(path))
  for number in itertools.count(1):
    made = path if number == 1 else f'{path}-{number}'
    with contextlib.suppress(FileExistsError):
      os.mkdir(made)
      return made


@contextlib.contextmanager
def reserved(model_dir: str | os.PathLike) -> Iterator[int]:
  """Prepares `model_dir` for a session, locks it and yields its number.

  The files of earlier sessions stay. If another run is in the directory, a
  `RuntimeError` is raised; if it cannot be written to, a `ValueError`.
  """
  make_dir('model_dir', model_dir)
  # The lock ends when the file is closed or this process ends, even if killed.
  with open(pathlib.Path(model_dir, LOCK), 'ab', 0) as lock:
    if model_dir_lock.is_taken(lock, model_dir):
      raise RuntimeError(
          f'model_dir is in use: another launch runs in {model_dir}. Wait for '
          'its end, or choose another directory.')
    ends = event_files.last_of_tasks(model_dir)
    clock.not_before(max((event.time for event in ends), default=0.0))
    with contextlib.suppress(OSError):  # A full disk stops no launch.
      lock.truncate(0)
      lock.write(f'{clock.now()}\n'.encode())
    try:
      yield 1 + max((event.session for event in ends), default=0)
    finally:
      with contextlib.suppress(OSError):
        lock.truncate(0)


def launch_start(model_dir: str | os.PathLike) -> float | None:
  """Returns when the launch in `model_dir` began; None without a launch.

  It is `LAUNCH_ENDED` after its end. A launch that was killed has no end.
  """
  try:
    return float(pathlib.Path(model_dir, LOCK).read_text() or LAUNCH_ENDED)
  except (OSError, ValueError):
    return None


def check_model_dir(model_dir: str | os.PathLike,
                    expected: Mapping[str, list[int]]) -> int | None:
  """Returns the global step at which training would continue; changes nothing.

  It is None without a checkpoint. `model_dir` need not exist. `expected` has
  the shapes of the model's variables by name; the checkpoint may have others.
  `ValueError` is raised if `model_dir` is a file, if all of its checkpoints are
  damaged, or if they belong to another model.
  """
  path = pathlib.Path(model_dir)
  if path.exists() and not path.is_dir():
    raise ValueError('`model_dir` must be a directory. Received: '
                     f'{path}, which is a file.')
  checkpoint = checkpoint_files.newest_fit(str(path))
  if checkpoint is None:
    return None
  _check_variables(checkpoint, expected, 'be one of this model')
  return global_step(checkpoint)


def global_step(path: str | os.PathLike) -> int:
  """Returns the global step of a checkpoint, or of a directory's newest one."""
  reader = tf.train.load_checkpoint(str(path))
  return int(reader.get_tensor('global_step'))


def check_training_state(model_dir: str | os.PathLike,
                         expected: Mapping[str, list[int]],
                         now: str, before: str) -> None:
  """Raises `ValueError` if training cannot continue from the checkpoint.

  `check_model_dir` has accepted `model_dir`. `expected` has the shapes of the
  variables that training restores, by name. `now` and `before` name the two
  runs in the message; `before` is empty if it is not known.
  """
  _check_variables(
      checkpoint_files.newest_fit(str(model_dir)), expected,
      f'have the training state of {now}', f' of {before}' if before else '',
      ' Or train with the earlier settings.')


def variable_shapes(model_fn, features, labels, mode: str,
                    params) -> dict[str, list[int]]:
  """Returns the shapes of a model's global variables in `mode`, by name."""
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    model_fn(tf.constant(features), tf.constant(labels), mode, params)
    return {v.op.name: v.shape.as_list() for v in tf1.global_variables()}


def _check_variables(checkpoint: str, expected: Mapping[str, list[int]],
                     rule: str, made_by: str = '', remedy: str = '') -> None:
  """Raises `ValueError` unless a checkpoint has variables of these shapes."""
  found = tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()
  problems = [f'`{name}` is missing' for name in expected if name not in found]
  problems += [
      f'`{name}` has the shape {found[name]} where {shape} is expected'
      for name, shape in expected.items()
      if name in found and found[name] != shape]
  if problems:
    raise ValueError(
        f'The checkpoint in `model_dir` must {rule}. Received: {checkpoint}'
        f'{made_by}, where {"; ".join(problems[:4])}. {_REMEDY}{remedy}')
