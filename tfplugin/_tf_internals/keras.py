# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reductions of Keras, its batch normalisation, layer names, functions."""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin._tf_internals import replacing

# Since TensorFlow 2.16 `keras` is Keras 3, and Keras 2 has another name.
_NAMES = ('tf_keras', 'keras')
_FRAMES = 40  # Between a variable's creator and the layer that asks for it.


def keras_2() -> types.ModuleType | None:
  """Returns Keras 2 if this process has loaded it, or None.

  `tf.keras` cannot be asked: TensorFlow 2.16 chooses its Keras at its first
  use.
  """
  return next((keras for keras in loaded(_NAMES)
               if getattr(keras, '__version__', '').startswith('2.')), None)


def loss_classes() -> set[type]:
  """Returns the class `Loss` of each loaded Keras; see `keras_2`."""
  return {each.losses.Loss for each in loaded(_NAMES)
          if hasattr(each, 'losses')}


def loaded(names: Sequence[str]) -> list[types.ModuleType]:
  """Returns the modules of these names that this process has loaded."""
  return [sys.modules[name] for name in names if name in sys.modules]


@contextlib.contextmanager
def keras_means_of_losses(applies: Callable[[], bool]) -> Iterator[None]:
  """Makes Keras accept losses that are means inside a strategy.

  A loss of Keras 2 refuses its default reduction there, since most strategies
  would add up the replicas' means. `applies` is called in the thread that
  builds.
  """
  with contextlib.ExitStack() as stack:
    for kind in loss_classes():
      if not _is_keras_3(kind.__module__):
        stack.enter_context(_means_by_default(kind, applies))
    yield


def _means_by_default(base: type, applies: Callable[[], bool],
                      ) -> contextlib.AbstractContextManager:
  """Makes losses of Keras 2 means; a private method decides."""
  reduction = keras_2().losses.Reduction

  def deciding(decide):
    def decide_with(loss):
      if not applies():
        return decide(loss)
      return (reduction.SUM_OVER_BATCH_SIZE if loss.reduction == reduction.AUTO
              else loss.reduction)
    return decide_with

  return replacing.replaced_in_turn(base, _get_reduction=deciding)


def batch_norm_noted(note: Callable[[Sequence[tf.Operation]], None],
                     ) -> contextlib.AbstractContextManager:
  """Calls `note` with the ops by which batch normalisation computes moments.

  If `training` is a tensor, an op chooses between moments and moving statistics
  for the whole batch. Then the moments are not noted.
  """
  keras = keras_2()
  if keras is None:
    return contextlib.nullcontext()
  # The base of all batch normalisation in Keras and `tf.layers`.
  base = keras.layers.BatchNormalization.__base__
  is_open = False

  def deciding(decide):
    def decide_with(layer, *args, **kwargs):
      nonlocal is_open
      training = decide(layer, *args, **kwargs)
      is_open = tf.get_static_value(training) is None if tf.is_tensor(
          training) else False
      return training
    return decide_with

  def noting(calculate):
    def calculate_with(layer, *args, **kwargs):
      if is_open or getattr(layer, 'synchronized', False):  # Of all rows.
        return calculate(layer, *args, **kwargs)
      graph = tf.compat.v1.get_default_graph()
      before = len(graph.get_operations())
      moments = calculate(layer, *args, **kwargs)
      note(graph.get_operations()[before:])
      return moments
    return calculate_with

  return replacing.replaced_in_turn(
      base, _calculate_mean_and_var=noting, _get_training_value=deciding)


def keras_module_of(fn: Callable) -> str | None:
  """Returns the Keras module of a function for `extended.update`, or None."""
  module = getattr(fn, '__module__', None) or ''
  return module if module.split('.')[0] in _NAMES else None


def keras_3_module_of(fn: Callable) -> str | None:
  """Returns the same for Keras 3 only, or None."""
  module = keras_module_of(fn)
  return module if _is_keras_3(module or '') else None


def is_asked_by_keras_3() -> bool:
  """Returns whether Keras 3 asks for the variable under construction."""
  frame = inspect.currentframe()
  for _ in range(_FRAMES):
    if frame is None:
      return False
    if _is_keras_3(frame.f_globals.get('__name__', '')):
      return True
    frame = frame.f_back
  return False


def _is_keras_3(module: str) -> bool:
  """Returns whether a module is one of Keras 3; Keras 2 had the name before."""
  return module.startswith('keras.src.') and not (
      sys.modules['keras'].__version__.startswith('2.'))


def is_keras_inference(fn: Callable) -> bool:
  """Returns whether `fn` is a step of `Model.evaluate` or `Model.predict`."""
  makers = ('make_test_function', 'make_predict_function')
  return any(part in makers
             for part in getattr(fn, '__qualname__', '').split('.'))
