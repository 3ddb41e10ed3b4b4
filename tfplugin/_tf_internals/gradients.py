# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a gradient is taken of, before it is taken."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable
from collections.abc import Iterator

import tensorflow as tf

# All of `tf.gradients`; see `gradient_factors`.
from tensorflow.python.ops import gradients_util

# Held while functions of TensorFlow are replaced.
_LOCK = threading.RLock()
_local = threading.local()


@contextlib.contextmanager
def gradient_factors(applies: Callable[[], bool], factored: Callable,
                     factor: Callable, note: Callable = id,
                     ) -> Iterator[None]:
  """Lets `tf.gradients` and gradient tapes differentiate something else.

  No public API tells what a gradient is about to be taken of: optimizers and
  programs call the functions of TensorFlow. They are replaced for a while, for
  all threads; hence the lock, and `applies`. The gradients that TensorFlow
  takes by itself on the way, through a branch, say, are left alone.

  Args:
    applies: Whether the current thread is to use it.
    factored: Takes a target, the sources and the gradient of the target (None:
      of ones); returns the target to use instead.
    factor: Takes a target and the sources; returns the factor of its gradient,
      or None.
    note: Takes each gradient that is returned.
  """
  helper, tape_gradient = (
      gradients_util._GradientsHelper, tf.GradientTape.gradient)

  def helper_with(ys, xs, grad_ys=None, *args, **kwargs):
    with _innermost() as outermost:
      if outermost and applies():
        ys = _list(ys)
        own = [None] * len(ys) if grad_ys is None else _list(grad_ys)
        ys = [factored(y, _list(xs), g) for y, g in zip(ys, own)]
      gradients = helper(ys, xs, grad_ys, *args, **kwargs)
      if outermost and applies():
        _each(note, gradients)
      return gradients

  def gradient_with(tape, target, sources, output_gradients=None, **kwargs):
    with _innermost() as outermost:
      if outermost and applies():
        factors = [factor(t, tf.nest.flatten(sources))
                   for t in tf.nest.flatten(target)]
        output_gradients = _multiplied(target, output_gradients, factors)
      gradients = tape_gradient(
          tape, target, sources, output_gradients, **kwargs)
      if outermost and applies():
        _each(note, tf.nest.flatten(gradients))
      return gradients

  with _LOCK:
    gradients_util._GradientsHelper = helper_with
    tf.GradientTape.gradient = gradient_with
    try:
      yield
    finally:
      gradients_util._GradientsHelper = helper
      tf.GradientTape.gradient = tape_gradient


@contextlib.contextmanager
def gradients_through(applies: Callable[[], bool], take: Callable,
                      ) -> Iterator[None]:
  """Lets `take` take the gradients that a program asks `tf.gradients` for.

  See `gradient_factors`.

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


def _list(values) -> list:
  """Returns one or several values as a list."""
  return list(values) if isinstance(values, (list, tuple)) else [values]


def _multiplied(target, output_gradients, factors: list):
  """Returns the gradients of the parts of `target`, times `factors`."""
  if all(factor is None for factor in factors):
    return output_gradients
  parts = tf.nest.flatten(target)
  given = ([tf.ones_like(part) for part in parts] if output_gradients is None
           else tf.nest.flatten(output_gradients))
  return tf.nest.pack_sequence_as(target, [
      gradient if factor is None else gradient * tf.cast(factor, gradient.dtype)
      for gradient, factor in zip(given, factors)])
