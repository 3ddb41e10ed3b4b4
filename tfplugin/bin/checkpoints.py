# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of a model_dir before a run trains in it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Optional
from typing import Union

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files

tf1 = tf.compat.v1

_REMEDY = ('Nothing was changed. Choose another `model_dir`, or move these '
           'files away.')


def check_model_dir(model_dir: Union[str, os.PathLike],
                    expected: Mapping[str, list[int]]) -> Optional[int]:
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
  reader = tf.train.load_checkpoint(checkpoint)
  _check_variables(checkpoint, reader.get_variable_to_shape_map(), expected)
  return int(reader.get_tensor('global_step'))


def global_step(model_dir: Union[str, os.PathLike]) -> int:
  """Returns the global step of the newest checkpoint, which must exist."""
  reader = tf.train.load_checkpoint(str(model_dir))
  return int(reader.get_tensor('global_step'))


def check_training_state(model_dir: Union[str, os.PathLike],
                         expected: Mapping[str, list[int]],
                         now: str, before: str) -> None:
  """Raises `ValueError` if training cannot continue from the checkpoint.

  `check_model_dir` has accepted `model_dir`. `expected` has the shapes of the
  variables that training restores, by name. `now` and `before` name the two
  runs in the message; `before` is empty if it is not known.
  """
  checkpoint = checkpoint_files.newest_fit(str(model_dir))
  reader = tf.train.load_checkpoint(checkpoint)
  problems = _problems(reader.get_variable_to_shape_map(), expected)
  if problems:
    made_by = f' of {before}' if before else ''
    raise ValueError(
        f'The checkpoint in `model_dir` must have the training state of {now}. '
        f'Received: {checkpoint}{made_by}, where {"; ".join(problems[:4])}. '
        f'{_REMEDY} Or train with the earlier settings.')


def variable_shapes(model_fn, features, labels, mode: str,
                    params) -> dict[str, list[int]]:
  """Returns the shapes of a model's global variables in `mode`, by name.

  The global step is one of them. `features` and `labels` are one batch of numpy
  arrays.
  """
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    model_fn(tf.constant(features), tf.constant(labels), mode, params)
    return {v.op.name: v.shape.as_list() for v in tf1.global_variables()}


def _check_variables(checkpoint: str, found: Mapping[str, list[int]],
                     expected: Mapping[str, list[int]]) -> None:
  problems = _problems(found, expected)
  if problems:
    raise ValueError(
        'The checkpoint in `model_dir` must be one of this model. Received: '
        f'{checkpoint}, where {"; ".join(problems[:4])}. {_REMEDY}')


def _problems(found: Mapping[str, list[int]],
              expected: Mapping[str, list[int]]) -> list[str]:
  """Returns the differences of `found` from `expected`, one clause each."""
  missing = [f'`{name}` is missing' for name in expected if name not in found]
  return missing + [
      f'`{name}` has the shape {found[name]} where {shape} is expected'
      for name, shape in expected.items()
      if name in found and found[name] != shape]
