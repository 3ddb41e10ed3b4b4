# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that a program takes, noted or computed otherwise."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from collections.abc import Iterator

import tensorflow as tf

# The function behind `tf.gradients`; see `gradients_noted`.
from tensorflow.python.ops import gradients_util

from tfplugin._tf_internals import replacing

_local = threading.local()


@contextlib.contextmanager
def gradients_noted(applies: Callable[[], bool], note: Callable,
                    ) -> Iterator[None]:
  """Calls `note` with each gradient of `tf.gradients` and gradient tapes.

  `applies` returns whether the current thread takes part. No public API
  intercepts gradients, which optimizers and programs take by functions of
  TensorFlow. The functions are replaced for a while, for all threads; hence the
  lock, and `applies`. Gradients that TensorFlow takes internally, e.g. through
  a branch, are ignored.
  """
  def take_and_note(helper, arguments):
    gradients = helper(**arguments)
    _each(note, gradients)
    return gradients

  def noting(tape_gradient):
    def gradient_with(*args, **kwargs):
      with _gradient_call() as is_outermost:
        gradients = tape_gradient(*args, **kwargs)
        if is_outermost and applies():
          _each(note, tf.nest.flatten(gradients))
        return gradients
    return gradient_with

  with gradients_through(applies, take_and_note), (
      replacing.replaced_in_turn(tf.GradientTape, gradient=noting)):
    yield


def gradients_through(applies: Callable[[], bool], take: Callable,
                      ) -> contextlib.AbstractContextManager:
  """Makes `take` compute the gradients that a program asks `tf.gradients` for.

  `take` gets the function behind `tf.gradients`, and its arguments by name. See
  `gradients_noted`.
  """
  def taking(helper):
    signature = inspect.signature(helper)

    @functools.wraps(helper)  # A nested context reads the signature.
    def helper_with(*args, **kwargs):
      with _gradient_call() as is_outermost:
        if not is_outermost or not applies():
          return helper(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return take(helper, dict(bound.arguments))
    return helper_with

  return replacing.replaced_in_turn(gradients_util, _GradientsHelper=taking)


@contextlib.contextmanager
def _gradient_call() -> Iterator[bool]:
  """Yields whether this is the outermost of nested gradient calls."""
  is_outermost = not getattr(_local, 'inside', False)
  _local.inside = True
  try:
    yield is_outermost
  finally:
    _local.inside = not is_outermost


def _each(note: Callable, gradients) -> None:
  """Calls `note` with each gradient that is not None."""
  for gradient in gradients:
    if gradient is not None:
      note(gradient)
