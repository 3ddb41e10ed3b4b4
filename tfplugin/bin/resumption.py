# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether a run can go on from what is in its model_dir."""

from __future__ import annotations

import functools
import pathlib
from typing import Optional

import tensorflow as tf

from tfplugin.bin import checkpoints
from tfplugin.bin import experiment
from tfplugin.bin import models
from tfplugin.bin import options as options_lib


def check_input(options: options_lib.TrainOptions) -> int:
  """Checks data and model_dir before anything is started or written.

  Args:
    options: The settings of the run.

  Returns:
    The global step of the checkpoint that is there; 0 without one.

  Raises:
    ValueError: the data are damaged, or the checkpoint is corrupt, that of
      another model, or lacks what the wrapper or the optimizer needs.
  """
  data = experiment.load_data(options)
  shapes = functools.partial(
      checkpoints.variable_shapes, models.MODELS[options.model].model_fn,
      data.test.inputs[:1], data.test.labels[:1],
      params=experiment.make_params(options, data))
  step = checkpoints.check_model_dir(
      options.model_dir, shapes(tf.estimator.ModeKeys.EVAL))
  if step is None:
    return 0
  earlier = _earlier(options)
  if step < options.steps:
    checkpoints.check_training_state(
        options.model_dir,
        # Every technique saves what the plain model does, by the same names.
        shapes(tf.estimator.ModeKeys.TRAIN),
        f'{options.title} and {options.optimizer}',
        f'{earlier.title} and {earlier.optimizer}' if earlier else '')
  return step


def _earlier(options: options_lib.TrainOptions
            ) -> Optional[options_lib.TrainOptions]:
  """Returns the settings of the run that was in model_dir before."""
  settings = pathlib.Path(options.model_dir) / options_lib.FILE_NAME
  return options_lib.load(settings) if settings.exists() else None
