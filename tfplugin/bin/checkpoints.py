# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks, before anything touches a model_dir, that a run can train in it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Optional
from typing import Union

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files

tf1 = tf.compat.v1

_REMEDY = ('It is left as it is. Take another `model_dir`, or move these files '
           'away.')


def check_model_dir(model_dir: Union[str, os.PathLike],
                    expected: Mapping[str, list[int]]) -> Optional[int]:
  """Reads the checkpoint from which training would go on; changes nothing.

  Args:
    model_dir: The directory, which need not exist.
    expected: The shapes of the variables that a checkpoint of this model has,
      by their names; it may have others.

  Returns:
    The global step of the checkpoint, or None if there is none.

  Raises:
    ValueError: `model_dir` is no directory, or none of its checkpoints is fit,
      or it belongs to another model.
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
  """Returns the global step of the newest checkpoint, which has to exist."""
  reader = tf.train.load_checkpoint(str(model_dir))
  return int(reader.get_tensor('global_step'))


def check_training_state(model_dir: Union[str, os.PathLike],
                         expected: Mapping[str, list[int]],
                         now: str, before: str) -> None:
  """Makes sure that training can go on from the newest checkpoint.

  Args:
    model_dir: A directory that `check_model_dir` has passed.
    expected: The shapes of the variables that training restores, by name.
    now: The run that is to train, for the message.
    before: The run that has trained; empty if it is not known.

  Raises:
    ValueError: variables are missing or have other shapes.
  """
  checkpoint = checkpoint_files.newest_fit(str(model_dir))
  reader = tf.train.load_checkpoint(checkpoint)
  problems = _problems(reader.get_variable_to_shape_map(), expected)
  if problems:
    made_by = f' of {before}' if before else ''
    raise ValueError(
        f'The checkpoint in `model_dir` must have the training state of {now}. '
        f'Received: {checkpoint}{made_by}, where {"; ".join(problems[:4])}. '
        f'{_REMEDY} Or go on as before.')


def variable_shapes(model_fn, features, labels, mode: str,
                    params) -> dict[str, list[int]]:
  """Returns the shapes that a checkpoint of a model has to have for `mode`.

  Args:
    model_fn: The model_fn.
    features: One batch of features, a numpy array.
    labels: One batch of labels, a numpy array.
    mode: One of `tf.estimator.ModeKeys`.
    params: The model_fn's params.

  Returns:
    The shapes of its global variables and the global step, by their names.
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
