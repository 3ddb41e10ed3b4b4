# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The reductions of Keras, its batch normalisation, and its functions."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import types
from collections.abc import Iterator
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin._tf_internals import op_types

# Held while methods of a class of Keras are replaced.
_LOCK = threading.RLock()
# Since TensorFlow 2.16 `keras` is Keras 3, and Keras 2 has another name.
_NAMES = ('tf_keras', 'keras')
_FRAMES = 40  # Between a variable's creator and the layer that asks for it.


def keras_2() -> Optional[types.ModuleType]:
  """Returns Keras 2 if this process has loaded it, or None.

  `tf.keras` cannot be asked: TensorFlow 2.16 decides by the first use of it
  which Keras it is.
  """
  loaded = [sys.modules[name] for name in _NAMES if name in sys.modules]
  return next((keras for keras in loaded
               if getattr(keras, '__version__', '').startswith('2.')), None)


def loss_classes() -> set[type]:
  """Returns `Loss` of each Keras that is loaded; see `keras_2`."""
  known = [sys.modules[name] for name in _NAMES if name in sys.modules]
  return {each.losses.Loss for each in known if hasattr(each, 'losses')}


@contextlib.contextmanager
def keras_means_of_losses(applies: Callable[[], bool]) -> Iterator[None]:
  """Lets Keras losses be means where there is a strategy.

  Inside any strategy a `tf.keras.losses.Loss` refuses its default reduction,
  since most strategies would add the means of the replicas up. No argument of a
  loss changes that: a private method decides, and is replaced for a while.
  Keras 3 has means by default; they are noted, for `mean_loss_denominator`.

  Args:
    applies: Whether the current thread is to use it.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(_LOCK)
    for kind in loss_classes():
      stack.enter_context(_means_noted(kind, applies) if _is_keras_3(
          kind.__module__) else _means_by_default(kind, applies))
    yield


@contextlib.contextmanager
def _means_noted(base: type, applies: Callable[[], bool]) -> Iterator[None]:
  """Lets losses of Keras 3, which are means by default, tell that they are."""
  call = base.__call__

  def call_and_note(loss, *args, **kwargs):
    result = call(loss, *args, **kwargs)
    if applies() and tf.is_symbolic_tensor(result):
      op_types.note_mean(result)
    return result

  base.__call__ = call_and_note
  try:
    yield
  finally:
    base.__call__ = call


@contextlib.contextmanager
def _means_by_default(base: type, applies: Callable[[], bool],
                      ) -> Iterator[None]:
  """Lets losses of Keras 2 be means; a private method decides."""
  reduction = keras_2().losses.Reduction
  decide = base._get_reduction

  def decide_with(loss):
    if not applies():
      return decide(loss)
    return (reduction.SUM_OVER_BATCH_SIZE if loss.reduction == reduction.AUTO
            else loss.reduction)

  base._get_reduction = decide_with
  try:
    yield
  finally:
    base._get_reduction = decide


@contextlib.contextmanager
def batch_norm_noted(note: Callable[[], contextlib.AbstractContextManager],
                     ) -> Iterator[None]:
  """Enters `note()` where batch normalisation computes its moments.

  A layer takes them from a private method; nothing public tells which ops those
  are. It is replaced for a while, for all threads; hence the lock.

  Args:
    note: Returns what is entered.
  """
  keras = keras_2()
  if keras is None:
    yield
    return
  # Of all batch normalisation of Keras and of `tf.layers`.
  base = keras.layers.BatchNormalization.__base__
  calculate = base._calculate_mean_and_var

  def calculate_with(layer, *args, **kwargs):
    if getattr(layer, 'synchronized', False):  # Of the whole batch.
      return calculate(layer, *args, **kwargs)
    with note():
      return calculate(layer, *args, **kwargs)

  with _LOCK:
    base._calculate_mean_and_var = calculate_with
    try:
      yield
    finally:
      base._calculate_mean_and_var = calculate


def keras_module_of(fn: Callable) -> Optional[str]:
  """Returns the module of Keras that `fn` is from, or None.

  A Keras optimizer updates variables by functions that have no public class to
  be known by.

  Args:
    fn: The function that `extended.update` was given.
  """
  module = getattr(fn, '__module__', None) or ''
  return module if module.split('.')[0] in _NAMES else None


def keras_3_module_of(fn: Callable) -> Optional[str]:
  """Returns the module of Keras 3 that `fn` is from, or None.

  Args:
    fn: The function that `extended.update` was given.
  """
  module = keras_module_of(fn)
  return module if _is_keras_3(module or '') else None


def is_asked_by_keras_3() -> bool:
  """Whether Keras 3 asks for the variable that is being made.

  It gives the creator no sign; only the frames of its callers tell.
  """
  frame = inspect.currentframe()
  for _ in range(_FRAMES):
    if frame is None:
      return False
    if _is_keras_3(frame.f_globals.get('__name__', '')):
      return True
    frame = frame.f_back
  return False


def _is_keras_3(module: str) -> bool:
  """Whether a module is one of Keras 3; Keras 2 had the name before."""
  return module.startswith('keras.src.') and not (
      sys.modules['keras'].__version__.startswith('2.'))


def restart_layer_names() -> None:
  """Lets Keras name the next layer as the first one of its graph.

  `tf.keras` has a function for it; see `keras_2`.
  """
  keras = keras_2()
  if keras is not None:
    keras.backend.reset_uids()


def is_keras_inference(fn: Callable) -> bool:
  """Whether `fn` is a step of `Model.evaluate` or `Model.predict`.

  Keras hands it to a strategy without a sign; the names of the methods around
  its definition alone tell it from a step of training.

  Args:
    fn: The function that a strategy calls for each replica.
  """
  makers = ('make_test_function', 'make_predict_function')
  return any(part in makers
             for part in getattr(fn, '__qualname__', '').split('.'))
