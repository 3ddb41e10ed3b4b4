# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Puts a wrapper around every optimizer that a function applies.

Every v1 optimizer is applied by `apply_gradients`, of its own class or of the
base class. While an interception is active, each such call comes by, whatever
made the optimizer, and however its gradients came to be:

  optimizer.apply_gradients(...)  ->  wrap(optimizer).apply_gradients(...)

The wrapper is called as if the function had called it. No strategy and no
variable is made; what the function asks TensorFlow is answered as without.
Interceptions nest: the outer one wraps the wrapper of the inner one.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.updates import update_audit

tf1 = tf.compat.v1

_LOSS_SCALE = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer

# Of this thread: a strategy builds its replicas in threads of their own.
_innermost = contextvars.ContextVar('_innermost', default=None)


class Interception:
  """Wraps the optimizers that are applied while it is active.

  Attributes:
    wrappers: The wrappers made so far, in the order of their first use.
    honoured: The optimizers left alone, being wrapped already.
    audit: The updates that were made by wrappers, of all trained variables.
  """

  def __init__(self, wrap: Callable[[tf1.train.Optimizer], Any], kind: type,
               only: Callable[[tf1.train.Optimizer], bool] = lambda _: True):
    """Prepares one use.

    Args:
      wrap: Makes the wrapper of an optimizer, once for each.
      kind: The class of the wrappers; an optimizer of that class, or with one
        inside, is left alone.
      only: Whether an optimizer is met at all. Default: every one.
    """
    self._wrap = wrap
    self._kind = kind
    self._only = only
    self._outer = None
    self._strategy = None
    self._by_optimizer = {}
    self.honoured = []
    self.audit = update_audit.UpdateAudit()

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
    if tf.distribute.in_cross_replica_context():
      raise RuntimeError(
          'Optimizers can be wrapped where a model is built, in a replica '
          'context. Received: a call in the cross-replica context of '
          f'{tf.distribute.get_strategy()!r}. Leave out its scope.')
    self._outer = _innermost.get()
    self._strategy = tf.distribute.get_strategy()
    with _as_innermost(self), _tf_internals.applications_met(_meet):
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
    if not self._only(optimizer):
      with _as_innermost(self._outer):
        return apply_gradients(*args, **kwargs)
    with _as_innermost(self._outer), self.audit.passing(
        tf1.trainable_variables()):
      if holds(optimizer, self._kind):
        self.honoured.append(optimizer)
        return apply_gradients(*args, **kwargs)
      if optimizer not in self._by_optimizer:
        self._by_optimizer[optimizer] = self._wrap(optimizer)
      return self._by_optimizer[optimizer].apply_gradients(*args, **kwargs)

  def is_here(self) -> bool:
    """Whether the code being built is of the function around which it is."""
    return (not tf.executing_eagerly() and
            not tf.distribute.in_cross_replica_context() and
            tf.distribute.get_strategy() is self._strategy)


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

  return _tf_internals.met_already(apply)


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


def _meet(apply_gradients: Callable, optimizer: tf1.train.Optimizer,
          *args: Any, **kwargs: Any):
  """Stands for `apply_gradients` of every class while one is active."""
  current = _current()
  # A moving average, say, hands its call on to what it holds. A loss scale does
  # so too, but for all replicas at once, and in a branch.
  hands_on = (_tf_internals.wrapped_optimizer(optimizer) is not None and
              not isinstance(optimizer, _LOSS_SCALE))
  if current is None or hands_on:
    return apply_gradients(*args, **kwargs)
  return current.apply(optimizer, apply_gradients, *args, **kwargs)


def _current() -> Optional[Interception]:
  """The innermost interception of the code that is being built, or None."""
  innermost = _innermost.get()
  return innermost if innermost is not None and innermost.is_here() else None


@contextlib.contextmanager
def _as_innermost(interception: Optional[Interception]) -> Iterator[None]:
  token = _innermost.set(interception)
  try:
    yield
  finally:
    _innermost.reset(token)
