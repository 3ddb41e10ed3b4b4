# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Interception that wraps every optimizer that a function applies.

Every v1 optimizer is applied by `apply_gradients`, of its own class or of the
base class. An active interception replaces each such call, for every optimizer
and every source of gradients:

  optimizer.apply_gradients(...)  ->  wrap(optimizer).apply_gradients(...)
                           or by      rule(optimizer.apply_gradients, ...)

The wrapper is called as if the function had called it. No strategy and no
variable is made, and TensorFlow's state for the function does not change.
Interceptions nest: the outer one wraps the wrapper of the inner one.

A program may write a variable in other ways, too: by an assignment, by another
op, by an optimizer of another kind. The wrapper's rule would then silently not
apply. So an audit records the ops that write inside a rule, and a train step
with any other write is refused.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1

# Attribute of an `apply_gradients` that is not to be replaced: whether it is
# the method of a wrapper of tfplugin.
_IS_OWN = 'tfplugin_is_own'
# Attribute of an `apply_gradients` that adds arguments: what it replaced in the
# optimizer, or None.
_REPLACED = 'tfplugin_replaced'
# Threads may each build a model: methods are replaced while one does.
_LOCK = threading.RLock()
# By the context that intercepts, the newest last.
_replacements: dict[object, Callable] = {}
_restore = contextlib.ExitStack()
_LOSS_SCALE = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer

# Per thread: a strategy builds each replica in a separate thread.
_innermost = per_graph.ContextValue(None)


class UpdateAudit:
  """Record of the writes of variables that a rule has handled."""

  def __init__(self):
    """Starts empty."""
    # Names of operations, since an operation would keep its graph alive.
    self._recorded = per_graph.PerGraph()

  def is_recorded(self, operation: tf.Operation) -> bool:
    """Returns whether an op was made inside `recording`."""
    return operation.name in self._recorded.get(operation.graph, ())

  @contextlib.contextmanager
  def recording(self, variables: Iterable[tf.Variable]) -> Iterator[None]:
    """Records each op that is made inside it and writes one of `variables`."""
    if tf.executing_eagerly():
      yield
      return
    graph, variables = tf1.get_default_graph(), list(variables)
    before = [set(_tf_internals.writes_of(v, graph)) for v in variables]
    yield
    for variable, old in zip(variables, before):
      for write in _tf_internals.writes_of(variable, graph):
        if write not in old:
          self._recorded.setdefault(write.op.graph, set()).add(write.op.name)

  def unaudited(self, train_op,
                variable: tf.Variable) -> Iterator[tf.Operation]:
    """Yields the unaudited ops of a step, or graph, that write `variable`."""
    writes = [write for write in _tf_internals.writes_of(
        variable, tf1.get_default_graph())
              if write.op is not variable.initializer and
              not (self.is_recorded(write.op) or
                   OF_RULES.is_recorded(write.op))]
    if writes and train_op is not None:
      step = graph_order.upstream(tf.nest.flatten(train_op))
      writes = [write for write in writes if write.root in step]
    yield from (write.op for write in writes)

  def check(self, caller: str, train_op, variables: Iterable[tf.Variable],
            rule: str) -> None:
    """Raises ValueError if a train step writes a variable outside the rule."""
    for variable in variables:
      for operation in self.unaudited(train_op, variable):
        raise refusal(caller, variable, operation, rule)


# The writes by rules themselves; other rules' audits accept them.
OF_RULES = UpdateAudit()


def refusal(caller: str, variable: tf.Variable, operation: tf.Operation,
            rule: str) -> ValueError:
  """Returns the error of `caller` for an update that bypasses its `rule`."""
  return ValueError(
      f'{caller} {rule}, so it must intercept every write of a trained '
      f'variable. Received: a train step in which {operation.name} '
      f'({operation.type}) writes `{variable.name}`. It is an assignment '
      'outside of the optimizers, or of an optimizer that inherits or contains '
      'the updates of another one. Derive an optimizer that assigns from '
      '`tf.compat.v1.train.Optimizer` itself, with all of its writes in '
      '`apply_gradients`. For other writes give the variable a `constraint`, '
      'assign in a session hook, or make the variable with `trainable=False`.')


class Interception:
  """Wrapper of the optimizers that are applied while it is active.

  `is_applied` says whether the function has applied an optimizer.
  `already_wrapped` has the optimizers for which the program has made a wrapper
  by itself. `audit` records the updates by wrappers, of all trainable variables
  and of the global step.
  """

  def __init__(self, wrap: Callable[[tf1.train.Optimizer], Any], kind: type,
               only: Callable[[tf1.train.Optimizer], bool] = lambda _: True,
               is_whole: bool = False, rule: Callable | None = None):
    """Prepares one use.

    `wrap` makes a wrapper, once for each optimizer. An optimizer of the class
    `kind`, or with one inside, is left alone. `only` says whether to intercept
    an optimizer at all. If an optimizer contains another one, the inner one is
    wrapped; with `is_whole` the outer one is, with all that it writes. A `rule`
    needs no wrapper: it gets the `apply_gradients` of the optimizer itself, and
    the arguments.
    """
    self._wrap = wrap
    self._kind = kind
    self._only = only
    self.is_whole = is_whole
    self._rule = rule
    self._outer = None
    self._strategy = None
    self._by_optimizer = {}
    self.is_applied = False
    self.already_wrapped = []
    self.audit = UpdateAudit()

  @property
  def wrappers(self) -> list[tf1.train.Optimizer]:
    """The wrappers made so far, in the order of their first use."""
    return list(self._by_optimizer.values())

  @contextlib.contextmanager
  def active(self) -> Iterator[None]:
    """Intercepts every optimizer that is applied inside it."""
    if tf.distribute.in_cross_replica_context():
      raise RuntimeError(
          'Optimizers can be wrapped where a model is built, in a replica '
          'context. Received: a call in the cross-replica context of '
          f'{tf.distribute.get_strategy()!r}. Leave out its scope.')
    self._outer = _innermost.get()
    self._strategy = tf.distribute.get_strategy()
    with _innermost.set_to(self), apply_gradients_replaced(_intercept):
      yield

  def apply(self, optimizer: tf1.train.Optimizer, apply_gradients: Callable,
            *args: Any, **kwargs: Any):
    """Applies gradients with the wrapper of `optimizer`."""
    if not self._only(optimizer):
      with _innermost.set_to(self._outer):
        return _intercept(apply_gradients, optimizer, *args, **kwargs)
    step = tf1.train.get_global_step()
    with _innermost.set_to(self._outer), self.audit.recording([
        *tf1.trainable_variables(), *([] if step is None else [step])]):
      self.is_applied = True
      if holds(optimizer, self._kind):
        self.already_wrapped.append(optimizer)
        return apply_gradients(*args, **kwargs)
      if self._rule is not None:
        return self._rule(apply_gradients, *args, **kwargs)
      if optimizer not in self._by_optimizer:
        self._by_optimizer[optimizer] = self._wrap(optimizer)
      return self._by_optimizer[optimizer].apply_gradients(*args, **kwargs)

  def is_current(self) -> bool:
    """Returns whether the current code belongs to the intercepted function."""
    return (not tf.executing_eagerly() and
            not tf.distribute.in_cross_replica_context() and
            tf.distribute.get_strategy() is self._strategy)


def interceptable(apply_gradients: Callable) -> Callable:
  """Returns `apply_gradients`, intercepted before the optimizer inside.

  Keyword arguments that it does not take go to the optimizer inside.
  """
  parameters = inspect.signature(apply_gradients).parameters
  takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

  @functools.wraps(apply_gradients)
  def intercepted(self, *args, **kwargs):
    def plain(*args, **kwargs):
      more = {key: kwargs.pop(key) for key in [*kwargs]
              if not takes_all and key not in parameters}
      with arguments_added(_tf_internals.wrapped_optimizer(self), more):
        return apply_gradients(self, *args, **kwargs)

    current = _current()
    return plain(*args, **kwargs) if current is None else (
        current.apply(self, plain, *args, **kwargs))

  setattr(intercepted, _IS_OWN, True)
  return intercepted


@contextlib.contextmanager
def arguments_added(optimizer: tf1.train.Optimizer,
                    arguments: dict[str, Any]) -> Iterator[None]:
  """Adds arguments to each call of the optimizer's `apply_gradients`."""
  if not arguments:
    yield
    return
  # Every replica sets it, and the first that finishes restores what was there.
  own = vars(optimizer).get('apply_gradients')
  own = getattr(own, _REPLACED, own)
  adding = functools.partial(own or functools.partial(
      type(optimizer).apply_gradients, optimizer), **arguments)
  setattr(adding, _REPLACED, own)
  optimizer.apply_gradients = adding
  try:
    yield
  finally:
    vars(optimizer).pop('apply_gradients', None)
    if own is not None:
      optimizer.apply_gradients = own


def is_interceptable(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether `optimizer` is a wrapper of tfplugin."""
  return getattr(type(optimizer).apply_gradients, _IS_OWN, False)


def holds(optimizer: Any, kind: type) -> bool:
  """Returns whether `optimizer`, or one that it wraps, is a `kind`."""
  while optimizer is not None:
    if isinstance(optimizer, kind):
      return True
    optimizer = _tf_internals.wrapped_optimizer(optimizer)
  return False


def _intercept(apply_gradients: Callable, optimizer: tf1.train.Optimizer,
               *args: Any, **kwargs: Any):
  """Replaces `apply_gradients` of all classes in an active interception."""
  current = _current()
  # A wrapper, such as a moving average, calls the optimizer inside it. A loss
  # scale does so too, but for all replicas at once, and in a branch.
  if current is None or not (
      current.is_whole or isinstance(optimizer, _LOSS_SCALE) or
      not _tf_internals.delegates(optimizer)):
    return apply_gradients(*args, **kwargs)
  return current.apply(optimizer, apply_gradients, *args, **kwargs)


def _current() -> Interception | None:
  """Returns the innermost interception of the current code, or None."""
  innermost = _innermost.get()
  return innermost if innermost is not None and innermost.is_current() else None


@contextlib.contextmanager
def apply_gradients_replaced(replacement: Callable) -> Iterator[None]:
  """Calls `replacement` in place of `apply_gradients` of any v1 optimizer.

  `replacement` gets the bound method, the optimizer and the arguments. A class
  may override `apply_gradients` and assign to the variables itself. So the
  method is replaced for a while in every class that defines one, also in new
  classes, for all threads.
  """
  # Not by `replacement`: contexts may have the same one.
  base, own = tf1.train.Optimizer, object()
  with _LOCK:
    _replacements[own] = replacement
    if len(_replacements) == 1:
      base.__init_subclass__ = classmethod(_replace_in_subclass)
      _restore.callback(delattr, base, '__init_subclass__')
    for cls in _with_subclasses(base):
      _replace_in(cls)
  try:
    yield
  finally:
    with _LOCK:
      del _replacements[own]
      if not _replacements:
        _restore.close()


def _with_subclasses(cls: type) -> Iterator[type]:
  """Yields `cls` and all its subclasses, deeply."""
  yield cls
  for subclass in cls.__subclasses__():
    yield from _with_subclasses(subclass)


def _replace_in_subclass(cls, **kwargs) -> None:
  """Stands in for `__init_subclass__` of all v1 optimizers for a while."""
  super(tf1.train.Optimizer, cls).__init_subclass__(**kwargs)
  with _LOCK:
    _replace_in(cls)


def _replace_in(cls: type) -> None:
  """Replaces the method that `cls` itself defines, if there is one."""
  method = vars(cls).get('apply_gradients')
  if method is not None and not hasattr(method, _IS_OWN):
    cls.apply_gradients = _replaceable(method)
    _restore.callback(setattr, cls, 'apply_gradients', method)


def _replaceable(method: Callable) -> Callable:
  """Returns `apply_gradients` of a class, which the newest context meets."""

  @functools.wraps(method)
  def replaceable(optimizer, *args, **kwargs):
    bound = functools.partial(method, optimizer)
    replacements = list(_replacements.values())
    if not replacements:
      return bound(*args, **kwargs)
    return replacements[-1](bound, optimizer, *args, **kwargs)

  setattr(replaceable, _IS_OWN, False)
  return replaceable
