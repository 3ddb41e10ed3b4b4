# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Choice of the checkpoint that a start restores: the newest fit one.

TensorFlow restores the checkpoint that the file `checkpoint` names. That one
may be cut off by a full disk, hold a NaN, or be missing, while older whole ones
lie beside it. A start then continues from the newest of those.

The functions use TensorFlow's file systems: a directory may be `gs://...`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_STATE = 'checkpoint'
_INDEX = re.compile(r'(?P<prefix>(?P<base>.+)-(?P<step>\d+))\.index')
# The base of Estimator's checkpoints.
_DEFAULT_BASE = 'model.ckpt'
# Files of a killed save: the parts of a sharded checkpoint, and files that were
# not yet renamed.
_LEFT_BEHIND = re.compile(
    r'.+-\d+_temp/?|.+\.tempstate\d+|checkpoint\.tmp[0-9a-f]*')
# Beside TensorFlow's own errors, a reader raises these for a damaged file.
_UNREADABLE = (tf.errors.OpError, IndexError, RuntimeError, ValueError)
# The errors of a restore from a damaged or missing file.
_NOT_RESTORED = (tf.errors.OutOfRangeError, tf.errors.DataLossError,
                 tf.errors.NotFoundError, tf.errors.InvalidArgumentError,
                 ValueError)


def defect(checkpoint: str) -> str | None:
  """Reads a whole checkpoint; returns why it is not fit, or None.

  `checkpoint` is a path without `.index`. The result is a clause such as "`w`
  is not finite". Reading takes as long as restoring, and the memory of the
  largest tensor.
  """
  try:
    reader = tf1.train.load_checkpoint(checkpoint)
    for name in sorted(reader.get_variable_to_shape_map()):
      if not _is_finite(reader.get_tensor(name)):
        return f'`{name}` is not finite'
  except _UNREADABLE as e:
    return f'it cannot be read: {getattr(e, "message", e)}'
  return None


def newest_fit(model_dir: str) -> str | None:
  """Returns the checkpoint from which training should continue, or None.

  This is the one that the file `checkpoint` names, if it is fit, and otherwise
  the newest fit one of the same Saver. The path has no `.index`. No file is
  changed. Raises ValueError if there are checkpoints and none is fit.
  """
  return _look(model_dir)[0]


def fall_back(model_dir: str) -> str | None:
  """Makes the next start restore `newest_fit`, and returns it.

  If the file `checkpoint` names another one, the file is rewritten, and a
  warning names both. No checkpoint is deleted, now or by a later save, unless
  that file listed it before. No other task may save there meanwhile. Raises
  ValueError as `newest_fit` does.
  """
  checkpoint, known, defects = _look(model_dir)
  state = _state_of(model_dir)
  if checkpoint and not (state and state.model_checkpoint_path == checkpoint):
    listed = state.all_model_checkpoint_paths if state else []
    _name_as_newest(model_dir, checkpoint, [
        path for path in listed if path in known and path not in defects])
    why = _listed(defects) or f'{model_dir} has no whole file `checkpoint`'
    tf1.logging.warning('Training continues from %s: %s.', checkpoint, why)
  return checkpoint


def with_fallback(model_dir: str | None, restore: Callable[[], Any]) -> Any:
  """Returns `restore()`, called again after `fall_back` if it cannot read.

  Files may be damaged or deleted after a process has read them at its start.
  Without the file `checkpoint` TensorFlow begins at step 0. It takes the error
  of a cut file for the end of the data, and ends the training as if it were
  complete.
  """
  if not model_dir:
    return restore()
  state = _state_of(model_dir)
  newest = state.model_checkpoint_path if state else fall_back(model_dir)
  try:
    return restore()
  except _NOT_RESTORED:
    if not newest or fall_back(model_dir) == newest:
      raise
  return restore()


def remove_left_behind(model_dir: str) -> list[str]:
  """Deletes the files of unfinished saves, and returns their names.

  No other task may save in the directory meanwhile; it need not exist.
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
    tf1.logging.info('Deleted the files of an unfinished save in %s: %s.',
                     model_dir, ', '.join(removed))
  return removed


def _look(model_dir: str) -> tuple[str | None, list[str], dict[str, str]]:
  """Returns the fit checkpoint, all candidates, and defects of earlier ones."""
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
        f'Received: {model_dir}, where {_listed(defects)}. Nothing was '
        'changed. Choose another `model_dir`, or move these files away to '
        'begin at step 0.')
  return None, known, defects


def _candidates(model_dir: str) -> list[str]:
  """Returns the named checkpoint, then others of its Saver, the newest first.

  An unnamed one may be the newest: its save was killed before the file
  `checkpoint` was written. One of another base, such as `best.ckpt-400`, is of
  another Saver: it may be older or have fewer variables than its step says.
  """
  state = _state_of(model_dir)
  named = [state.model_checkpoint_path] if state else []
  base = (re.sub(r'-\d+$', '', posixpath.basename(named[0])) if named
          else _DEFAULT_BASE)
  saved = sorted(filter(None, map(_INDEX.fullmatch, _names(model_dir))),
                 key=lambda match: int(match['step']), reverse=True)
  return list(dict.fromkeys(named + [
      posixpath.join(model_dir, match['prefix'])
      for match in saved if match['base'] == base]))


def _state_of(model_dir: str) -> Any:
  """Returns the content of the file `checkpoint`; None without a whole one."""
  try:
    return tf1.train.get_checkpoint_state(model_dir)
  except ValueError:  # A host that crashes may leave an empty file.
    return None


def _names(model_dir: str) -> list[str]:
  if not tf.io.gfile.isdir(model_dir):
    return []
  return tf.io.gfile.listdir(model_dir)


def _is_finite(value) -> bool:
  value = np.asarray(value)
  # The small floating types, such as bfloat16, have the kind V in numpy.
  return value.dtype.kind not in 'fcV' or bool(np.isfinite(value).all())


def _name_as_newest(model_dir: str, checkpoint: str,
                    listed: Sequence[str]) -> None:
  """Writes the file `checkpoint` with the fit one as the newest.

  A Saver deletes the `listed` ones in turn. One that the file did not list,
  such as a milestone of `keep_checkpoint_every_n_hours`, is only named.
  """
  # The sort is stable: the fit one, if it is listed, becomes the last.
  names = sorted(listed, key=lambda path: path == checkpoint)
  state = tf1.train.generate_checkpoint_state_proto(model_dir, checkpoint)
  # Relative, as Estimator writes them: the directory may move.
  state.model_checkpoint_path = posixpath.basename(checkpoint)
  state.all_model_checkpoint_paths[:] = map(posixpath.basename, names)
  path = posixpath.join(model_dir, _STATE)
  with tf.io.gfile.GFile(path + '.tmp', 'w') as file:
    file.write(str(state))
  tf.io.gfile.rename(path + '.tmp', path, overwrite=True)


def _listed(defects: dict[str, str]) -> str:
  return '; '.join(f'{path} cannot be used: {why}'
                   for path, why in defects.items())
