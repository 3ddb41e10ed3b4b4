# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of TensorFlow that are replaced while a model is built."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

# Whether a replica makes summaries; see `summaries_of_all`.
from tensorflow.python.distribute import summary_op_util

# The seeds of random ops; see `seeds_by_replica`.
from tensorflow.python.framework import random_seed

# The functions behind `tf.shape`, `tf.size`, `tf.ones_like`, `tf.zeros_like`.
from tensorflow.python.ops import array_ops

# The function behind `tf.gradients`; see `gradients_noted`.
from tensorflow.python.ops import gradients_util

# From the seed of one replica to that of the next: a prime.
_SEED_STEP, _LARGEST_SEED = 104729, 2 ** 31 - 1
_LOCK = threading.RLock()
_local = threading.local()


@contextlib.contextmanager
def replaced(owner: Any,
             **replacements: Callable[[Any], Any]) -> Iterator[None]:
  """Replaces members of `owner`, a module or class, for all threads.

  `replacements` has a function for each member, from the old one to the new
  one. Another thread waits until the old ones are back.
  """
  with _LOCK:
    before = {name: getattr(owner, name) for name in replacements}
    try:
      for name, replacement in replacements.items():
        setattr(owner, name, replacement(before[name]))
      yield
    finally:
      for name, member in before.items():
        setattr(owner, name, member)


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
      replaced(tf.GradientTape, gradient=noting)):
    yield


@contextlib.contextmanager
def gradients_through(applies: Callable[[], bool], take: Callable,
                      ) -> Iterator[None]:
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

  with replaced(gradients_util, _GradientsHelper=taking):
    yield


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


@contextlib.contextmanager
def summaries_of_all(applies: Callable[[], bool]) -> Iterator[None]:
  """Makes `tf.compat.v1.summary` write summaries in all replicas.

  By default only the first replica makes them, and the others' values are lost.
  A private function decides. It is replaced for a while, for all threads; hence
  the lock, and `applies`, which returns whether the current thread takes part.
  """
  with replaced(
      summary_op_util, skip_summary=lambda skip: (
          lambda: not applies() and skip())):
    yield


@contextlib.contextmanager
def sizes_as_ops(applies: Callable[[Any], bool]) -> Iterator[None]:
  """Makes functions that count the rows of a tensor read that tensor.

  By default the size of a static shape is a constant: it does not tell what it
  counts. `applies` returns whether a tensor has rows. The public functions have
  no such argument. Those behind them are replaced for a while.
  """
  by_input, by_tensor = (functools.partial(_reading, applies, name)
                         for name in ('input', 'tensor'))
  with replaced(array_ops, shape_internal=by_input, size_internal=by_input,
                ones_like_impl=by_tensor, array_like_impl=by_tensor):
    yield


def _reading(applies: Callable[[Any], bool], argument: str,
             function: Callable) -> Callable:
  """Returns `function`, with an op as its result where `applies` is True."""
  signature = inspect.signature(function)

  @functools.wraps(function)  # An inner context reads the signature.
  def size(*args, **kwargs):
    bound = signature.bind(*args, **kwargs)
    if applies(bound.arguments[argument]):
      bound.arguments['optimize'] = False
    return function(*bound.args, **bound.kwargs)

  return size


@contextlib.contextmanager
def seeds_by_replica() -> Iterator[None]:
  """Makes random ops with a seed draw other numbers in each replica.

  By default an op draws what its seed says, the same in all replicas. Every
  random op asks one function for its seeds, which is replaced for a while.
  """
  def by_replica(get_seed):
    def get_own_seed(op_seed):
      first, second = get_seed(op_seed)
      context = tf.distribute.get_replica_context()
      if op_seed is not None and context is not None:
        replica = tf.get_static_value(context.replica_id_in_sync_group)
        second = (second + int(replica or 0) * _SEED_STEP) % _LARGEST_SEED
      return first, second
    return get_own_seed

  with replaced(random_seed, get_seed=by_replica):
    yield
