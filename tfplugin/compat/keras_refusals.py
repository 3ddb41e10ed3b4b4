# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors for Keras 3 in a model_fn, where its variables cannot be restored."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals

_ESTIMATOR = 'tensorflow_estimator.python.estimator'
# The same in every TensorFlow without Estimator.
_KERAS_3 = 'keras.src.'

_REMEDY = (
    'Use `tf.keras` with tf-keras (`pip install tf-keras`, and no '
    'TF_USE_LEGACY_KERAS=0)')
VARIABLE = (
    'A model_fn must not use Keras 3, whose variables are named anew in every '
    'graph: a checkpoint would not be found again. Received: a variable {name} '
    f'of Keras 3. {_REMEDY}, or `tf.compat.v1.get_variable`.')
MODEL = ('`keras_model` must be a model of Keras 2. Received: {model!r} of '
         f'Keras 3. {_REMEDY}.')


def install() -> None:
  """Makes every Estimator refuse Keras 3; Estimator must be loaded.

  All model_fns, and all models of `model_to_estimator`, go through two private
  functions of Estimator. No public place sees them all.
  """
  estimator = importlib.import_module(f'{_ESTIMATOR}.estimator').Estimator
  keras_lib = importlib.import_module(f'{_ESTIMATOR}.keras_lib')
  if hasattr(keras_lib._assert_valid_model, '__wrapped__'):
    return
  call, check = estimator._call_model_fn, keras_lib._assert_valid_model

  @functools.wraps(call)
  def call_with_refusal(*args: Any, **kwargs: Any) -> Any:
    with tf.variable_creator_scope(_refuse_variable):
      return call(*args, **kwargs)

  @functools.wraps(check)
  def check_with_refusal(model: Any, *args: Any, **kwargs: Any) -> None:
    if any(base.__module__.startswith(_KERAS_3)
           for base in type(model).__mro__):
      raise TypeError(MODEL.format(model=model))
    check(model, *args, **kwargs)

  estimator._call_model_fn = call_with_refusal
  keras_lib._assert_valid_model = check_with_refusal


def _refuse_variable(next_creator: Any, **kwargs: Any) -> tf.Variable:
  """Creates a variable; raises ValueError if Keras 3 asks for it."""
  if _tf_internals.is_asked_by_keras_3():
    raise ValueError(VARIABLE.format(name=repr(kwargs.get('name'))))
  return next_creator(**kwargs)
