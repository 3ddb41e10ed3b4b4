# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoint of a directory a start restores: the newest that is fit.

TensorFlow restores the one that the file `checkpoint` names. That may be cut
off by a full disk, hold a NaN that was saved in the last moment, or be gone;
older ones, which are whole, lie beside it. A start then goes on from those.

Functions of TensorFlow's file systems: a directory may be `gs://...`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Optional

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_STATE = 'checkpoint'
_INDEX = re.compile(r'(?P<prefix>.+-(?P<step>\d+))\.index')
# What a save leaves that was killed: the parts of a sharded checkpoint, a file
# before its last name, the file `checkpoint` likewise.
_LEFT_BEHIND = re.compile(
    r'.+-\d+_temp/?|.+\.tempstate\d+|checkpoint\.tmp[0-9a-f]*')
# Beside TensorFlow's own errors a reader raises these for a damaged file.
_UNREADABLE = (tf.errors.OpError, IndexError, RuntimeError, ValueError)


def defect(checkpoint: str) -> Optional[str]:
  """Reads a checkpoint whole; returns why none should start from it.

  It takes as long as restoring, and the memory of the largest tensor.

  Args:
    checkpoint: The path without `.index`.

  Returns:
    A clause such as "`w` is not finite"; None for a checkpoint that is fit.
  """
  try:
    reader = tf1.train.load_checkpoint(checkpoint)
    for name in sorted(reader.get_variable_to_shape_map()):
      if not _is_finite(reader.get_tensor(name)):
        return f'`{name}` is not finite'
  except _UNREADABLE as e:
    return f'it cannot be read: {getattr(e, "message", e)}'
  return None


def newest_fit(model_dir: str) -> Optional[str]:
  """Returns the checkpoint from which training should go on; changes nothing.

  The one that the file `checkpoint` names, if it is fit. If not, or if there is
  no such file, the newest fit one of the directory.

  Args:
    model_dir: The directory, which need not exist.

  Returns:
    The path without `.index`; None if there is no checkpoint at all.

  Raises:
    ValueError: There are checkpoints, and none is fit.
  """
  return _look(model_dir)[0]


def fall_back(model_dir: str) -> Optional[str]:
  """Makes sure that the next start restores `newest_fit`.

  If that is not the one that the file `checkpoint` names, the file is written
  anew, and a warning names both. No checkpoint is deleted.

  Args:
    model_dir: The directory, which need not exist. Nobody else may save there
      meanwhile.

  Returns:
    See `newest_fit`.

  Raises:
    ValueError: Likewise.
  """
  checkpoint, known, defects = _look(model_dir)
  state = tf1.train.get_checkpoint_state(model_dir)
  if checkpoint and not (state and state.model_checkpoint_path == checkpoint):
    _name_as_newest(model_dir, checkpoint, known)
    why = _listed(defects) or f'{model_dir} has no file `checkpoint`'
    tf1.logging.warning('Training goes on from %s: %s.', checkpoint, why)
  return checkpoint


def remove_left_behind(model_dir: str) -> list[str]:
  """Deletes what saves left behind that never ended.

  Args:
    model_dir: The directory, which need not exist. Nobody else may save there
      meanwhile.

  Returns:
    The names of what was deleted.
  """
  removed = [name for name in _names(model_dir)
             if _LEFT_BEHIND.fullmatch(name)]
  for name in removed:
    path = posixpath.join(model_dir, name.rstrip('/'))
    if tf.io.gfile.isdir(path):
      tf.io.gfile.rmtree(path)
    else:
      tf.io.gfile.remove(path)
  if removed:
    tf1.logging.info('Deleted what an unfinished save had left in %s: %s.',
                     model_dir, ', '.join(removed))
  return removed


def _look(model_dir: str) -> tuple[Optional[str], list[str], dict[str, str]]:
  """Returns the fit one, all that are known, and why the first are not."""
  known = _candidates(model_dir)
  defects = {}
  for checkpoint in known:
    found = defect(checkpoint)
    if found is None:
      return checkpoint, known, defects
    defects[checkpoint] = found
  if defects:
    raise ValueError(
        '`model_dir` must have no checkpoint, or a whole and finite one. '
        f'Received: {model_dir}, where {_listed(defects)}. It is left as it '
        'is. Take another `model_dir`, or move these files away to begin at '
        'step 0.')
  return None, known, defects


def _candidates(model_dir: str) -> list[str]:
  """Returns the named checkpoint, and then all others, the newest first.

  One that is not named may be newer than all others: its save was killed at the
  last moment.
  """
  state = tf1.train.get_checkpoint_state(model_dir)
  named = [state.model_checkpoint_path] if state else []
  return list(dict.fromkeys(named + [
      posixpath.join(model_dir, prefix)
      for _, prefix in sorted(_saved(model_dir), reverse=True)]))


def _saved(model_dir: str) -> Iterator[tuple[int, str]]:
  for name in _names(model_dir):
    match = _INDEX.fullmatch(name)
    if match:
      yield int(match['step']), match['prefix']


def _names(model_dir: str) -> list[str]:
  if not tf.io.gfile.isdir(model_dir):
    return []
  return tf.io.gfile.listdir(model_dir)


def _is_finite(value) -> bool:
  value = np.asarray(value)
  # Of kind V are the small floating types, which numpy does not know.
  return value.dtype.kind not in 'fcV' or bool(np.isfinite(value).all())


def _name_as_newest(model_dir: str, checkpoint: str, known: list[str]) -> None:
  """Writes the file `checkpoint`; the fit one is the newest that it names."""
  older = known[known.index(checkpoint):][::-1]
  state = tf1.train.generate_checkpoint_state_proto(
      model_dir, checkpoint, older)
  # Relative, as Estimator writes them: the directory may move.
  names = [posixpath.basename(path) for path in older]
  state.model_checkpoint_path = names[-1]
  state.all_model_checkpoint_paths[:] = names
  path = posixpath.join(model_dir, _STATE)
  with tf.io.gfile.GFile(path + '.tmp', 'w') as file:
    file.write(str(state))
  tf.io.gfile.rename(path + '.tmp', path, overwrite=True)


def _listed(defects: dict[str, str]) -> str:
  return '; '.join(f'{path} is not fit, as {why}'
                   for path, why in defects.items())
