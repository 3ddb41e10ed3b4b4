# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Puts a wrapper around every optimizer that a function applies.

A v1 optimizer inside a replica context hands its update to the context's
`merge_call`. An interception is a replica context with another `merge_call`:
every optimizer comes by, whatever made it, and however its gradients came to
be. The wrapper is put around the optimizer and called in the context outside,
as if the function had called the wrapper.

  optimizer.apply_gradients(...)  ->  wrap(optimizer).apply_gradients(...)

Interceptions nest: the outer one wraps the wrapper of the inner one. Nothing of
TensorFlow is replaced, and no variable is made differently. The model_fn sees a
strategy of one replica; docs/architecture.md lists the consequences.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1

# Attribute of the interception's replica context that holds the interception.
_MARK = 'tfplugin_interception'


class _Nowhere(tf1.distribute.Strategy):
  """The default strategy in another class, so that `has_strategy()` is True.

  v1 optimizers ask the replica context only then.
  """

  def __init__(self):
    default = tf.distribute.get_strategy().extended
    super().__init__(type(default)(self))


class Interception:
  """Wraps the optimizers that are applied while it is active.

  Attributes:
    wrappers: The wrappers made so far, in the order of their first use.
    honoured: The optimizers left alone, being wrapped already.
  """

  def __init__(self, wrap: Callable[[tf1.train.Optimizer],
                                    tf1.train.Optimizer], kind: type):
    """Prepares one use.

    Args:
      wrap: Makes the wrapper of an optimizer, once for each.
      kind: The class of the wrappers; an optimizer of that class, or with one
        inside, is left alone.
    """
    self._wrap = wrap
    self._kind = kind
    self._outer = None
    self._by_optimizer = {}
    self.honoured = []

  @property
  def wrappers(self) -> list[tf1.train.Optimizer]:
    """The wrappers made so far, in the order of their first use."""
    return list(self._by_optimizer.values())

  @contextlib.contextmanager
  def active(self) -> Iterator[None]:
    """Intercepts every optimizer that is applied inside it.

    Raises:
      RuntimeError: Inside the cross-replica context of a strategy.
    """
    self._outer = tf.distribute.get_replica_context()
    if self._outer is None:
      raise RuntimeError(
          'Optimizers can be wrapped where a model is built, in a replica '
          'context. Received: a call in the cross-replica context of '
          f'{tf.distribute.get_strategy()!r}. Leave out its scope.')
    if tf.distribute.has_strategy():
      context = _tf_internals.copy_of_replica_context(self._outer)
    else:
      context = tf.distribute.ReplicaContext(_Nowhere(), 0)
    context.merge_call = self._merge_call
    setattr(context, _MARK, self)
    with context:
      yield

  def apply(self, optimizer: tf1.train.Optimizer, apply_gradients: Callable,
            *args: Any, **kwargs: Any):
    """Applies gradients with the wrapper of `optimizer`.

    Args:
      optimizer: The optimizer that the function applies.
      apply_gradients: Its own `apply_gradients`.
      *args: For `apply_gradients`.
      **kwargs: Likewise.
    """
    with self._outer:
      if holds(optimizer, self._kind):
        self.honoured.append(optimizer)
        return apply_gradients(*args, **kwargs)
      if optimizer not in self._by_optimizer:
        self._by_optimizer[optimizer] = self._wrap(optimizer)
      return self._by_optimizer[optimizer].apply_gradients(*args, **kwargs)

  def _merge_call(self, merge_fn: Callable, args: tuple = (),
                  kwargs: Optional[dict] = None):
    optimizer = _tf_internals.optimizer_of_update(merge_fn)
    if optimizer is None:
      with self._outer:
        return self._outer.merge_call(merge_fn, args, kwargs)
    with _with_base_application(optimizer):
      return self.apply(optimizer, optimizer.apply_gradients, *args)

  @property
  def outer(self) -> Any:
    """The replica context around this one."""
    return self._outer


@contextlib.contextmanager
def _with_base_application(optimizer: tf1.train.Optimizer) -> Iterator[None]:
  """Keeps the `apply_gradients` of a user's class from running twice.

  It has run already, up to its call of the method that it overrides.
  """
  base = tf1.train.Optimizer.apply_gradients
  if type(optimizer).apply_gradients is base:
    yield
    return
  optimizer.apply_gradients = functools.partial(base, optimizer)
  try:
    yield
  finally:
    del optimizer.apply_gradients


def interceptable(apply_gradients: Callable) -> Callable:
  """Lets an interception meet a wrapper before the optimizer inside it.

  The interception then applies the whole wrapper.

  Args:
    apply_gradients: The method of a class of optimizers.
  """

  @functools.wraps(apply_gradients)
  def apply(self, *args, **kwargs):
    current = _current()
    if current is None:
      return apply_gradients(self, *args, **kwargs)
    return current.apply(
        self, functools.partial(apply_gradients, self), *args, **kwargs)

  return apply


def holds(optimizer: Any, kind: type) -> bool:
  """Whether `optimizer`, or one that it wraps, is a `kind`.

  Args:
    optimizer: A v1 optimizer.
    kind: A class of optimizers.
  """
  while optimizer is not None:
    if isinstance(optimizer, kind):
      return True
    optimizer = _tf_internals.wrapped_optimizer(optimizer)
  return False


def in_strategy() -> bool:
  """Whether a strategy is around, other than those of interceptions."""
  context = tf.distribute.get_replica_context()
  while getattr(context, _MARK, None) is not None:
    context = getattr(context, _MARK).outer
  if context is None:
    return True
  with context:
    return tf.distribute.has_strategy()


def _current() -> Optional[Interception]:
  """The innermost interception, or None in eager or cross-replica context."""
  if tf.executing_eagerly() or tf.distribute.in_cross_replica_context():
    return None
  return getattr(tf.distribute.get_replica_context(), _MARK, None)
