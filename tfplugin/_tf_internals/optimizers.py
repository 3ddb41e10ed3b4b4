# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""State of v1 optimizers, and interception of gradients."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

# The function behind `tf.gradients`; see `gradients_noted`.
from tensorflow.python.ops import gradients_util

from tfplugin._tf_internals import replacing

tf1 = tf.compat.v1

_local = threading.local()
# Attribute of a graph: the functions that take its gradients.
_TAKES = 'tfplugin_takes'
# The modules of Keras's optimizers; importing them would load all of Keras.
_KERAS_OPTIMIZERS = ('keras.src.optimizers', 'tf_keras.src.optimizers')
# The methods of v1 and Keras optimizers that call a loss function.
_CALLS_OF_LOSS = ('minimize', 'compute_gradients', '_compute_gradients')


def state_creator(optimizer: tf1.train.Optimizer,
                  ) -> Callable[[Sequence[tf.Variable]], None]:
  """Returns the function that creates every slot and non-slot variable.

  It takes the variables that `optimizer`, which is no wrapper, updates. The
  public API creates them only inside `apply_gradients`. Inside a `tf.cond` that
  is too late: the variables would be named after the branch. So call it in a
  `tf.init_scope`.
  """
  return optimizer._create_slots


def is_made_by_optimizer() -> bool:
  """Returns whether an optimizer makes the variable under construction.

  An optimizer makes its variables with the functions that a model uses, and no
  argument distinguishes them. So the stack is read: it must contain a method of
  an optimizer, and no module of a model may be nearer. A loss function, called
  by an optimizer, may build a model.
  """
  frame = inspect.currentframe()
  while frame is not None:
    owner = type(frame.f_locals.get('self'))
    if any(base in (tf1.train.Optimizer, tf1.mixed_precision.LossScale) or
           base.__module__.startswith(_KERAS_OPTIMIZERS)
           for base in owner.__mro__):
      return frame.f_code.co_name not in _CALLS_OF_LOSS
    if issubclass(owner, tf.Module):
      return False
    frame = frame.f_back
  return False


def is_applied_by(kind: type) -> bool:
  """Returns whether `apply_gradients` of an optimizer of class `kind` runs.

  An optimizer does not know its wrapper, so the call stack is read.
  """
  frame = inspect.currentframe()
  while frame is not None:
    if frame.f_code.co_name == 'apply_gradients' and isinstance(
        frame.f_locals.get('self'), kind):
      return True
    frame = frame.f_back
  return False


def learning_rate_of(optimizer: tf1.train.Optimizer):
  """Returns the learning rate that `optimizer` was given, or None.

  A callable is called. A wrapper has the rate of its inner optimizer.
  """
  for attribute in ('_lr', '_learning_rate'):
    rate = getattr(optimizer, attribute, None)
    if rate is not None:
      return rate() if callable(rate) else rate
  inner = wrapped_optimizer(optimizer)
  return None if inner is None else learning_rate_of(inner)


def wrapped_optimizer(optimizer: tf1.train.Optimizer):
  """Returns the optimizer inside a wrapper, in any field, or None."""
  return next((held for held in getattr(optimizer, '__dict__', {}).values()
               if isinstance(held, tf1.train.Optimizer)), None)


def delegates(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether `apply_gradients` calls the one of an optimizer inside.

  An optimizer with TensorFlow's own `apply_gradients` makes the updates itself,
  even if it holds another optimizer.
  """
  base = tf1.train.Optimizer
  return (wrapped_optimizer(optimizer) is not None and
          type(optimizer).apply_gradients is not base.apply_gradients)


def is_no_gradient_error(error: ValueError) -> bool:
  """Returns whether the error says that there was no gradient to apply."""
  return bool(re.match('No (variables|gradients) provided', str(error)))


def distributed_apply(optimizer: tf1.train.Optimizer, strategy,
                      grads_and_vars: Sequence, global_step, name):
  """Calls `apply_gradients` for a cross-replica context.

  `strategy` may be a stand-in, and gradients are per-replica values.
  """
  return optimizer._distributed_apply(
      strategy, grads_and_vars, global_step, name)


def implements_updates(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether `optimizer` has the v1 protocol's per-variable updates."""
  base = tf1.train.Optimizer
  return (type(optimizer)._apply_dense is not base._apply_dense or
          type(optimizer)._resource_apply_dense is not
          base._resource_apply_dense)


def assigns_by_itself(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether an optimizer must assign to the variables itself."""
  return not (implements_updates(optimizer) or wrapped_optimizer(optimizer))


@contextlib.contextmanager
def gradients_noted(applies: Callable[[], bool], note: Callable,
                    ) -> Iterator[None]:
  """Calls `note` with each gradient of `tf.gradients` and gradient tapes.

  It gets a pair of the gradient and a list of the losses. `applies` is asked in
  the current thread. Gradients that TensorFlow takes internally, e.g. through a
  branch, are ignored.
  """
  def take_and_note(helper, **arguments):
    gradients = helper(**arguments)
    _each(note, gradients, arguments['ys'])
    return gradients

  def noting(tape_gradient):
    def gradient_with(tape, target, *args, **kwargs):
      with _gradient_call() as is_outermost:
        gradients = tape_gradient(tape, target, *args, **kwargs)
        if is_outermost and applies():
          _each(note, gradients, target)
        return gradients
    return gradient_with

  with replacing.replaced_in_turn(
      gradients_util, _GradientsHelper=functools.partial(
          _taking, lambda is_outermost: (
              take_and_note if is_outermost and applies() else None))), (
              replacing.replaced_in_turn(tf.GradientTape, gradient=noting)):
    yield


def gradients_of_graph_through(graph: tf.Graph, take: Callable) -> None:
  """Makes `take` compute the gradients that are asked of `graph` from now on.

  `take` gets the function behind `tf.gradients`, and its arguments by name,
  `take(function, **arguments)`. That holds as long as the graph, since a hook
  takes gradients after its model is built. A later `take` gets an earlier one
  as the function that it calls. See `gradients_noted`.
  """
  takes = getattr(graph, _TAKES, [])
  setattr(graph, _TAKES, [*(t for t in takes if t != take), take])
  replacing.stay_replaced(gradients_util, _GradientsHelper=functools.partial(
      _taking, _take_of_graph))


def _take_of_graph(is_outermost: bool) -> Callable | None:
  """Returns the function that takes gradients in the current graph.

  It takes those inside of others, too, as in a `tf.custom_gradient`.
  A branch, loop or function of v2 takes gradients of the graphs around it, too.
  """
  del is_outermost
  graph, takes = tf1.get_default_graph(), []
  while graph is not None:
    takes += getattr(graph, _TAKES, [])
    graph = getattr(graph, 'outer_graph', None)
  return None if not takes else lambda helper, **arguments: functools.reduce(
      lambda earlier, take: functools.partial(take, earlier), takes, helper)(
          **arguments)


def _taking(take_here: Callable[[bool], Callable | None],
            helper: Callable) -> Callable:
  """Returns `helper`, behind `tf.gradients`, with calls of `take_here`."""
  signature = inspect.signature(helper)

  @functools.wraps(helper)  # A nested context reads the signature.
  def helper_with(*args, **kwargs):
    with _gradient_call() as is_outermost:
      bound = signature.bind(*args, **kwargs)
      bound.apply_defaults()
      # The gradient of a branch, a loop or a function has a graph to take from.
      is_called_by_program = bound.arguments['src_graph'] is None
      take = take_here(is_outermost) if is_called_by_program else None
      if take is not None:
        return take(helper, **bound.arguments)
    return helper(*args, **kwargs)
  return helper_with


@contextlib.contextmanager
def _gradient_call() -> Iterator[bool]:
  """Yields whether this is the outermost of nested gradient calls."""
  is_outermost = not getattr(_local, 'inside', False)
  _local.inside = True
  try:
    yield is_outermost
  finally:
    _local.inside = not is_outermost


def _each(note: Callable, gradients, losses) -> None:
  """Calls `note` with each gradient that is not None, paired with `losses`."""
  for gradient in tf.nest.flatten(gradients):
    if gradient is not None:
      note((gradient, tf.nest.flatten(losses)))
