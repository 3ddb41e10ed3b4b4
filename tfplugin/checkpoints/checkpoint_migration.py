# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of checkpoints between the names of tf.contrib and of tfplugin.

Values and types stay. A variable that was saved in parts is written whole, and
a program with parts can restore it.
"""

from __future__ import annotations

import posixpath
import re
from typing import Optional

import numpy as np
import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files
from tfplugin.checkpoints import old_checkpoints
from tfplugin.events import wrapper_names

tf1 = tf.compat.v1

DESTINATIONS = ('tfplugin', 'contrib')


def migrate(old: str,
            new: str,
            to: str = 'tfplugin',
            wrapper: Optional[str] = None,
            trained: Optional[str] = None) -> list[old_checkpoints.Change]:
  """Writes a checkpoint `new` from `old`; returns the change of each variable.

  A program that keeps an `ElasticAverageOptimizer` and a Saver of all its
  variables needs no migration: it has the original's names. The decorator, the
  strategy, the swapping saver and a plain model restore centres by the
  variables' own names, and need it.

  `old` is a checkpoint without `.index`, or a directory, whose newest fit
  checkpoint is read. `new` is then a checkpoint or a directory likewise. `to`
  is one of `DESTINATIONS`. Only for 'contrib', `wrapper` is one of
  `old_checkpoints.WRAPPERS`. Only for its 'elastic_average', `trained` is a
  regular expression that matches a part of the name of each trained variable,
  and of no other.

  Raises ValueError for a wrong argument or an unknown variable, FileExistsError
  if `new` exists, and FileNotFoundError if `old` does not.

  Example:
    >>> from tfplugin.checkpoints import checkpoint_migration
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...   w = tf.compat.v1.get_variable(
    ...       'global_center_variable/w', initializer=2.0)
    ...   session.run(w.initializer)
    ...   old = tf.compat.v1.train.Saver().save(session, folder + '/old')
    >>> changes = checkpoint_migration.migrate(old, folder + '/new')
    >>> float(tf.train.load_variable(folder + '/new', 'w'))
    2.0
  """
  wrapper = wrapper_names.current(wrapper)
  _check(to, wrapper, trained)
  source, target = _paths(old, new)
  reader = tf1.train.load_checkpoint(source)
  names = reader.get_variable_to_shape_map()
  if to == 'tfplugin':
    changes = old_checkpoints.to_tfplugin(names)
  else:
    changes = old_checkpoints.to_contrib(
        names, wrapper, lambda name: bool(re.search(trained, name)))
  _write(target, {
      change.new: (reader.get_tensor(change.old) if change.old
                   else np.float32(0)) for change in changes if change.new})
  if source != old:
    tf1.train.update_checkpoint_state(new, posixpath.basename(target))
  return changes


def _check(to: str, wrapper: Optional[str], trained: Optional[str]) -> None:
  if to not in DESTINATIONS:
    raise ValueError(f'`to` must be one of {", ".join(DESTINATIONS)}. '
                     f'Received: {to!r}')
  if to == 'tfplugin':
    if wrapper is not None or trained is not None:
      raise ValueError(
          '`wrapper` and `trained` must be left out for tfplugin, whose names '
          'follow from the old ones. Received: '
          f'wrapper={wrapper!r}, trained={trained!r}')
    return
  if wrapper not in old_checkpoints.WRAPPERS:
    raise ValueError(
        '`wrapper` must be given for contrib, as the names do not show it: one '
        f'of {", ".join(old_checkpoints.WRAPPERS)}. Received: {wrapper!r}')
  if (wrapper == 'elastic_average') != (trained is not None):
    raise ValueError(
        '`trained` must be given for elastic_average, and for nothing else: a '
        'regular expression for the trained variables, which have a centre. '
        f'Received: {trained!r}')


def _paths(old: str, new: str) -> tuple[str, str]:
  """Returns the checkpoint to read, and the checkpoint to write."""
  source, target = old, new
  if tf.io.gfile.isdir(old):
    source = checkpoint_files.newest_fit(old)
    target = posixpath.join(new, posixpath.basename(source or ''))
  if not source or not tf.io.gfile.exists(f'{source}.index'):
    raise FileNotFoundError(
        f'OLD: no checkpoint there: {old}. Give a checkpoint, such as '
        'model_dir/model.ckpt-100, or a directory with one.')
  if tf.io.gfile.exists(f'{target}.index'):
    raise FileExistsError(
        f'{target} exists already; nothing was overwritten. Choose another '
        'directory.')
  return source, target


def _write(path: str, values: dict[str, np.ndarray]) -> None:
  """Saves the values; they are fed, as a graph cannot hold 2 GB."""
  tf.io.gfile.makedirs(posixpath.dirname(path) or '.')
  with tf.Graph().as_default(), tf1.Session() as session:
    tensors = [tf1.placeholder(tf.as_dtype(np.asarray(value).dtype))
               for value in values.values()]
    save = tf.raw_ops.SaveV2(
        prefix=path, tensor_names=list(values),
        shape_and_slices=[''] * len(values), tensors=tensors)
    session.run(save, dict(zip(tensors, values.values())))
