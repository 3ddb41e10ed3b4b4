# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras 3 has no variables that an Estimator could find again."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import tensorflow as tf

_FRAMES = 40  # Between a variable's creator and the layer that asks for it.

REFUSED = (
    'A model_fn must not use Keras 3, whose variables are named anew in every '
    'graph: a checkpoint would not be found again. Received: a variable {name} '
    'of Keras 3. Use `tf.keras` with tf-keras (`pip install tf-keras`, and no '
    'TF_USE_LEGACY_KERAS=0), or `tf.compat.v1.get_variable`.')


def refuse_in_model_fns() -> None:
  """Lets every Estimator refuse variables of Keras 3 in its model_fn.

  Estimator's private method is the only place that all model_fns pass.
  """
  cls = importlib.import_module(
      'tensorflow_estimator.python.estimator.estimator').Estimator
  call = cls._call_model_fn
  if hasattr(call, '__wrapped__'):
    return

  @functools.wraps(call)
  def call_with_refusal(*args: Any, **kwargs: Any) -> Any:
    with tf.variable_creator_scope(_refuse):
      return call(*args, **kwargs)

  cls._call_model_fn = call_with_refusal


def _refuse(next_creator: Any, **kwargs: Any) -> tf.Variable:
  """A variable creator that refuses Keras 3.

  Keras 3 gives the creator no sign; only the frames of its callers tell.

  Raises:
    ValueError: Keras 3 asks for the variable.
  """
  frame = sys._getframe(1)
  for _ in range(_FRAMES):
    if frame is None:
      break
    if frame.f_globals.get('__name__', '').startswith('keras.src.backend.'):
      raise ValueError(REFUSED.format(name=repr(kwargs.get('name'))))
    frame = frame.f_back
  return next_creator(**kwargs)
