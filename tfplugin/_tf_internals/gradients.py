# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The gradients that programs take, noted or taken otherwise."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable
from collections.abc import Iterator

import tensorflow as tf

# All of `tf.gradients`; see `gradients_noted`.
from tensorflow.python.ops import gradients_util

# Held while functions of TensorFlow are replaced.
_LOCK = threading.RLock()
_local = threading.local()


@contextlib.contextmanager
def gradients_noted(applies: Callable[[], bool], note: Callable,
                    ) -> Iterator[None]:
  """Notes the gradients that `tf.gradients` and gradient tapes return.

  No public API tells of them: optimizers and programs call the functions of
  TensorFlow. They are replaced for a while, for all threads; hence the lock,
  and `applies`. The gradients that TensorFlow takes by itself on the way,
  through a branch, say, are left alone.

  Args:
    applies: Whether the current thread is to use it.
    note: Takes each gradient that is returned.
  """
  tape_gradient = tf.GradientTape.gradient

  def take_and_note(helper, arguments):
    gradients = helper(**arguments)
    _each(note, gradients)
    return gradients

  def gradient_with(*args, **kwargs):
    with _innermost() as outermost:
      gradients = tape_gradient(*args, **kwargs)
      if outermost and applies():
        _each(note, tf.nest.flatten(gradients))
      return gradients

  with gradients_through(applies, take_and_note):
    tf.GradientTape.gradient = gradient_with
    try:
      yield
    finally:
      tf.GradientTape.gradient = tape_gradient


@contextlib.contextmanager
def gradients_through(applies: Callable[[], bool], take: Callable,
                      ) -> Iterator[None]:
  """Lets `take` take the gradients that a program asks `tf.gradients` for.

  See `gradients_noted`.

  Args:
    applies: Whether the current thread is to use it.
    take: Takes all of `tf.gradients`, and its arguments by name.
  """
  helper = gradients_util._GradientsHelper
  signature = inspect.signature(helper)

  def helper_with(*args, **kwargs):
    with _innermost() as outermost:
      if not outermost or not applies():
        return helper(*args, **kwargs)
      bound = signature.bind(*args, **kwargs)
      bound.apply_defaults()
      return take(helper, dict(bound.arguments))

  with _LOCK:
    gradients_util._GradientsHelper = helper_with
    try:
      yield
    finally:
      gradients_util._GradientsHelper = helper


@contextlib.contextmanager
def _innermost() -> Iterator[bool]:
  """Yields whether no other gradient is being taken around this one."""
  outermost = not getattr(_local, 'inside', False)
  _local.inside = True
  try:
    yield outermost
  finally:
    _local.inside = not outermost


def _each(note: Callable, gradients) -> None:
  """Calls `note` with each gradient that there is."""
  for gradient in gradients:
    if gradient is not None:
      note(gradient)
