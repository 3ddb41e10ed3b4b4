# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of v1 optimizers, and the way they apply gradients."""

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

tf1 = tf.compat.v1

# Held while methods are replaced: a model may be built in each of two threads.
_LOCK = threading.RLock()
# Attribute of a method that need not be replaced.
_MET = 'tfplugin_met'
_meetings = []
_replaced = []
# Where Keras keeps its optimizers; importing them would load all of Keras.
_KERAS_OPTIMIZERS = ('keras.src.optimizers', 'tf_keras.src.optimizers')
# The methods of optimizers, v1 and Keras', that call a loss function.
_CALLS_OF_LOSS = ('minimize', 'compute_gradients', '_compute_gradients')


def create_optimizer_state(optimizer: tf1.train.Optimizer,
                           var_list: Sequence[tf.Variable]) -> None:
  """Creates every slot and non-slot variable `optimizer` keeps for `var_list`.

  The public API creates them inside `apply_gradients` only. Inside a `tf.cond`
  that is too late: the variables would be named after the branch.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    var_list: The variables that it is going to update.
  """
  with tf.init_scope():
    optimizer._create_slots(var_list)


def is_made_by_optimizer() -> bool:
  """Whether an optimizer is at work where this is called, and makes a variable.

  An optimizer makes variables of its own with the functions that a model uses,
  and no argument tells them apart. The stack does: a method of an optimizer is
  in it, and nothing of a model that a loss function builds is nearer.
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


def learning_rate_of(optimizer: tf1.train.Optimizer):
  """Returns the learning rate that `optimizer` was given, or None.

  No v1 optimizer has a public attribute for it: Adam and AdamW keep it in
  `_lr`, the others in `_learning_rate`.

  Args:
    optimizer: A v1 optimizer; a wrapper has the rate of its inner optimizer.

  Returns:
    A number, a tensor or the value of the callable that was passed; None where
    the optimizer keeps no learning rate under either name.
  """
  for attribute in ('_lr', '_learning_rate'):
    rate = getattr(optimizer, attribute, None)
    if rate is not None:
      return rate() if callable(rate) else rate
  inner = wrapped_optimizer(optimizer)
  return None if inner is None else learning_rate_of(inner)


def wrapped_optimizer(optimizer: tf1.train.Optimizer):
  """Returns the optimizer that another one holds, or None.

  All wrappers, of TensorFlow and of this project, keep it in private fields;
  there is no public accessor.

  Args:
    optimizer: Any v1 optimizer.
  """
  for field in ('_optimizer', '_opt'):
    inner = getattr(optimizer, field, None)
    if isinstance(inner, tf1.train.Optimizer):
      return inner
  return None


@contextlib.contextmanager
def applications_met(meet: Callable) -> Iterator[None]:
  """Lets `meet` be called where any v1 optimizer is applied.

  Optimizers have no public place where all come by: a class may override
  `apply_gradients`, and assign to the variables by itself. So the method is
  replaced for a while in every class that defines one, for all threads; in one
  that is defined meanwhile, too.

  Args:
    meet: Gets the method of the class, the optimizer and the arguments.
  """
  base = tf1.train.Optimizer
  with _LOCK:
    _meetings.append(meet)
    if len(_meetings) == 1:
      base.__init_subclass__ = classmethod(_replace_in_subclass)
    for cls in _with_subclasses(base):
      _replace_in(cls)
  try:
    yield
  finally:
    with _LOCK:
      _meetings.remove(meet)
      if not _meetings:
        del base.__init_subclass__
        while _replaced:
          cls, method = _replaced.pop()
          cls.apply_gradients = method


def met_already(apply_gradients: Callable) -> Callable:
  """Marks a method that calls whoever is to meet it; returns the method.

  Args:
    apply_gradients: Of a class of this project.
  """
  setattr(apply_gradients, _MET, True)
  return apply_gradients


def _with_subclasses(cls: type) -> Iterator[type]:
  """Yields `cls` and all classes below it."""
  yield cls
  for subclass in cls.__subclasses__():
    yield from _with_subclasses(subclass)


def _replace_in_subclass(cls, **kwargs) -> None:
  """The `__init_subclass__` of all v1 optimizers, for a while."""
  super(tf1.train.Optimizer, cls).__init_subclass__(**kwargs)
  with _LOCK:
    _replace_in(cls)


def _replace_in(cls: type) -> None:
  """Replaces the method that `cls` itself defines, if there is one."""
  method = vars(cls).get('apply_gradients')
  if method is None or hasattr(method, _MET):
    return

  @functools.wraps(method)
  def met(optimizer, *args, **kwargs):
    bound = functools.partial(method, optimizer)
    return _meetings[-1](bound, optimizer, *args, **kwargs) if _meetings else (
        bound(*args, **kwargs))

  cls.apply_gradients = met_already(met)
  _replaced.append((cls, method))


def refuses_nothing(error: ValueError) -> bool:
  """Whether an optimizer was given no gradient; the error has no class.

  Args:
    error: An error of `apply_gradients`.
  """
  return bool(re.match('No (variables|gradients) provided', str(error)))


def distributed_apply(optimizer: tf1.train.Optimizer, strategy,
                      grads_and_vars: Sequence, global_step, name):
  """`optimizer.apply_gradients` for a cross-replica context.

  The public method refuses that context and names this private one.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    strategy: The strategy, or a stand-in for it.
    grads_and_vars: Pairs of a per-replica gradient and a variable.
    global_step: Incremented by 1, or None.
    name: Of the returned op, or None.
  """
  return optimizer._distributed_apply(
      strategy, grads_and_vars, global_step, name)


def implements_updates(optimizer: tf1.train.Optimizer) -> bool:
  """Whether `optimizer` has the per-variable updates of the v1 protocol.

  They are the documented way to write an optimizer, under private names.

  Args:
    optimizer: A v1 optimizer.
  """
  base = tf1.train.Optimizer
  return (type(optimizer)._apply_dense is not base._apply_dense or
          type(optimizer)._resource_apply_dense is not
          base._resource_apply_dense)


def assigns_by_itself(optimizer: tf1.train.Optimizer) -> bool:
  """Whether an optimizer can but assign to the variables by itself.

  It has none of the updates that the base class calls, and holds no optimizer.

  Args:
    optimizer: A v1 optimizer.
  """
  return not (implements_updates(optimizer) or wrapped_optimizer(optimizer))
