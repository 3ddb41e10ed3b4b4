# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixin that intercepts the updates of a strategy, and audits each step.

The base class of v1 optimizers calls the strategy for its updates: it reduces
gradients, and updates each variable by the strategy. A class that overrides
`apply_gradients` and assigns, as the optimizer of BERT does, bypasses all of
this. Here its whole `apply_gradients` is called, once for each copy of the
variables, between the two:

  reduced = extended.batch_reduce_to(gradients)
  apply_gradients(reduced)                        on each device
  extended.update(variable, fn)                   fn has nothing left to do

The variables that it makes are state of the optimizer, as slots are.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import per_graph
from tfplugin.distribute.updates import optimizer_interception

tf1 = tf.compat.v1


class InterceptedUpdates(_tf_internals.StepOperations):
  """Mixin before the extended class of a strategy with a rule for updates.

  Optimizers that assign to variables themselves are intercepted, so that the
  strategy receives their updates like all others. At the end of a train step in
  a graph or a function, `_step_is_built` may search for updates outside the
  rule.

  `only` is set in a branch where replicas cannot synchronize: the number of the
  replica that updates.
  """

  only = None
  # Context around a merge call of one of several replicas in a branch; None for
  # a single replica, or where replicas synchronize by other means.
  _alone = None

  _audits = None
  _functions = None
  _is_in_step = False

  def current_audit(self) -> optimizer_interception.UpdateAudit:
    """Returns the audit of the current graph, or of the outermost function."""
    if self._audits is None:
      self._audits = per_graph.PerGraph()
    graph = tf1.get_default_graph()
    if not tf1.executing_eagerly_outside_functions():
      with tf.init_scope():
        graph = tf1.get_default_graph()
    while getattr(graph, 'outer_graph', None) is not None and (
        graph.outer_graph.building_function):
      graph = graph.outer_graph
    return self._audits.setdefault(graph, optimizer_interception.UpdateAudit())

  def unaudited_updates(self, result: Any, variables,
                        ) -> Iterator[tuple[tf.Variable, tf.Operation]]:
    """Yields variables of a step, and the unaudited ops that write them."""
    strategy = self._container_strategy()
    train_op = None
    if not tf.inside_function():
      train_op = [part for leaf in tf.nest.flatten(
          getattr(result, 'train_op', result))
                  for part in strategy.experimental_local_results(leaf)]
    for variable in variables:
      for copy in copies_of(strategy, variable):
        for op in self.current_audit().unaudited(train_op, copy):
          yield variable, op

  def refuse_unaudited(self, result: Any, variables, rule: str) -> None:
    """Raises ValueError if a step writes `variables` outside the rule."""
    for variable, operation in self.unaudited_updates(result, variables):
      raise optimizer_interception.refusal(
          self._container_strategy().described_as, variable, operation, rule)

  def _step_is_built(self, result: Any) -> None:
    """Raises if the step with this `result` bypasses the strategy's rule."""

  def _is_of_rule(self, fn) -> bool:
    """Returns whether the rule handles updates by `fn`: not assignments."""
    return not _tf_internals.is_variable_assignment(fn)

  def _update(self, var, fn, args, kwargs, group):
    copies = ()
    if not tf.executing_eagerly() and self._is_of_rule(fn):
      copies = copies_of(self._container_strategy(), var)
    with self.current_audit().recording(copies):
      return super()._update(var, fn, args, kwargs, group)

  def call_for_each_replica(self, fn, args=(), kwargs=None):
    """Runs `fn` in each replica; a `tf.function` is made around them all."""
    plain = _tf_internals.python_function_of(fn)
    if plain is fn or not tf1.executing_eagerly_outside_functions():
      return super().call_for_each_replica(plain, args, kwargs)
    if self._functions is None:
      self._functions = weakref.WeakKeyDictionary()
    if fn not in self._functions:
      self._functions[fn] = _tf_internals.function_around(
          fn, super().call_for_each_replica)
    return self._functions[fn](*args, **(kwargs or {}))

  def _call_for_each_replica(self, fn, args, kwargs):
    _tf_internals.regularize_once()
    with self.in_step() as is_whole:
      result = super()._call_for_each_replica(
          self._intercepting(fn), args, kwargs)
    if is_whole and not tf.executing_eagerly():
      self._step_is_built(result)
    return result

  def _intercepting(self, fn):
    """Returns `fn` with interception of optimizers that assign themselves."""

    def intercepted(*args, **kwargs):
      with optimizer_interception.Interception(
          PerReplicaOptimizer, PerReplicaOptimizer,
          only=_tf_internals.assigns_by_itself).active():
        return fn(*args, **kwargs)

    return intercepted

  def steps_of(self, step: tf.Variable | None,
               count: int) -> Sequence[contextlib.AbstractContextManager]:
    """Returns a context for each of `count` copies, with the step it advances.

    If the step has one copy, only the first context has it.
    """
    copies = [] if step is None else copies_of(self._container_strategy(), step)
    return [contextlib.nullcontext(each) for each in (
        copies if len(copies) > 1 else [step] + [None] * (count - 1))]

  @contextlib.contextmanager
  def in_step(self, is_step: bool = True) -> Iterator[bool]:
    """Yields whether a call, if it belongs to a step, is a whole one."""
    is_part, self._is_in_step = self._is_in_step, is_step
    try:
      yield not is_part
    finally:
      self._is_in_step = is_part


class PerReplicaOptimizer:
  """Wrapper that applies an optimizer once for each copy of the variables.

  Each copy has separate state, all under the name that the first copy uses.
  """

  def __init__(self, optimizer: tf1.train.Optimizer):
    """Wraps `optimizer`, which assigns to the variables itself."""
    self._optimizer = optimizer
    self._state = {}

  def apply_gradients(self, grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None, **kwargs: Any):
    """Applies the gradients of all replicas; called in each."""
    grads_and_vars = list(grads_and_vars)
    # By closure: `merge_call` would replace the variables by their copies.
    merged = functools.partial(
        self._merged, variables=[v for _, v in grads_and_vars],
        global_step=global_step, name=name, apply_kwargs=kwargs)
    return tf.distribute.get_replica_context().merge_call(
        merged, args=(tuple(g for g, _ in grads_and_vars),))

  def _merged(self, strategy, gradients: Sequence[Any], *,
              variables: list[tf.Variable], global_step, name, apply_kwargs):
    """Reduces, applies and updates, in cross-replica context."""
    extended = strategy.extended
    if extended.only is not None:
      raise RuntimeError(
          'An optimizer that assigns to the variables by itself must not be '
          'applied inside a `tf.cond` of one device of several. Received: '
          f'{self._optimizer!r}. Train on one device, or use an optimizer that '
          'implements `_apply_dense`, as the optimizers of TensorFlow do.')
    pairs = [(g, v) for g, v in zip(gradients, variables) if g is not None]
    reduced = extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
    updates = []
    all_copies = list(zip(*(copies_of(strategy, v) for _, v in pairs)))
    steps = extended.steps_of(global_step, len(all_copies))
    # Each copy may create state under the same names as the first copy.
    stores = [_tf_internals.copy_of_variable_store() for _ in all_copies[1:]]
    for index, copies in enumerate(all_copies):
      own = [(_of_copy(strategy, gradient, index), copy)
             for gradient, copy in zip(reduced, copies)]
      owners = [(copy, v) for copy, (_, v) in zip(copies, pairs)]
      with tf1.device(extended.worker_devices[index]), \
          _store(stores[index - 1] if index else None), \
          self._making_state(strategy, owners, index), \
          steps[index] as step, \
          extended.current_audit().recording(copies):
        updates.append(self._optimizer.apply_gradients(
            own, global_step=step, name=name, **apply_kwargs))
    updates = [update for update in updates if update is not None]

    def nothing_left(component, gradient):
      del component, gradient
      return tf.group(*updates)

    return tf.group(*tf.nest.flatten([
        strategy.experimental_local_results(extended.update(
            variable, nothing_left, args=(gradient,)))
        for gradient, (_, variable) in zip(reduced, pairs)]))

  def _making_state(self, strategy, owners, index: int,
                    ) -> contextlib.AbstractContextManager:
    """Makes every variable inside it as a slot of its owner, for a copy."""

    def create(next_creator, **kwargs):
      name = kwargs.get('name') or 'Variable'
      # The scope of the update may stand before the name of the copy.
      copy, owner = max(owners, key=lambda pair: (
          f'/{pair[0].op.name}' in f'/{name}') * len(pair[0].op.name))
      scope, found, suffix = f'/{name}'.rpartition(f'/{copy.op.name}')
      if found:
        name = f"{scope}/{owner.name.split(':')[0]}{suffix}"[1:]
      if name not in self._state or not index:
        with tf.init_scope():
          self._state[name] = next_creator(
              **dict(kwargs, name=name, colocate_with=owner))
      copies = copies_of(strategy, self._state[name])
      return copies[index if len(copies) > 1 else 0]

    return tf.variable_creator_scope(create)


@contextlib.contextmanager
def _store(store: Sequence | None) -> Iterator[None]:
  """Limits `get_variable` to the variables of `store`; None: no limit."""
  if store is None:
    yield
    return
  current = tf1.get_collection_ref(_tf_internals.VARIABLE_STORE_KEY)
  kept, current[:] = list(current), store
  try:
    yield
  finally:
    current[:] = kept


def copies_of(strategy, variable: tf.Variable) -> Sequence[tf.Variable]:
  """Returns the copies of a variable of any strategy in this process."""
  if isinstance(variable, _tf_internals.AggregatingVariable):
    variable = variable.get()
  return strategy.experimental_local_results(variable)


def _of_copy(strategy, gradient: Any, index: int) -> types.Gradient:
  """Returns the reduced gradient for the copy `index`."""
  gradients = strategy.experimental_local_results(gradient)
  return gradients[index if len(gradients) > 1 else 0]
