# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixin that intercepts the updates of a strategy, and audits each step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import optimizer_interception
from tfplugin.distribute import per_graph
from tfplugin.distribute.updates import assigning_optimizers
from tfplugin.distribute.updates import update_audit

tf1 = tf.compat.v1


class MetUpdates:
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

  def audit_here(self) -> update_audit.UpdateAudit:
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
    return self._audits.setdefault(graph, update_audit.UpdateAudit())

  def unseen_updates(self, result: Any, variables,
                     ) -> Iterator[tuple[tf.Variable, tf.Operation]]:
    """Yields variables of a step, and the unaudited ops that write them."""
    strategy = self._container_strategy()
    train_op = None
    if not tf.inside_function():
      train_op = [part for leaf in tf.nest.flatten(
          getattr(result, 'train_op', result))
                  for part in strategy.experimental_local_results(leaf)]
    for variable in variables:
      for copy in assigning_optimizers.copies_of(strategy, variable):
        for op in self.audit_here().unseen(train_op, copy):
          yield variable, op

  def refuse_unseen(self, result: Any, variables, rule: str) -> None:
    """Raises ValueError if a step writes `variables` outside the rule."""
    for variable, operation in self.unseen_updates(result, variables):
      raise update_audit.refusal(
          self._container_strategy().described_as, variable, operation, rule)

  def _step_is_built(self, result: Any) -> None:
    """Raises if the step with this `result` bypasses the strategy's rule."""

  def _passes_rule(self, fn) -> bool:
    """Returns whether the rule handles updates by `fn`: not assignments."""
    return not _tf_internals.is_variable_assignment(fn)

  def _update(self, var, fn, args, kwargs, group):
    copies = ()
    if not tf.executing_eagerly() and self._passes_rule(fn):
      copies = assigning_optimizers.copies_of(self._container_strategy(), var)
    with self.audit_here().passing(copies):
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
    with self.in_step() as is_whole:
      result = super()._call_for_each_replica(self._meeting(fn), args, kwargs)
    if is_whole and not tf.executing_eagerly():
      self._step_is_built(result)
    return result

  def _meeting(self, fn):
    """Returns `fn` with interception of optimizers that assign themselves."""

    def met(*args, **kwargs):
      kind = assigning_optimizers.OnEachCopy
      with optimizer_interception.Interception(
          kind, kind, only=_tf_internals.assigns_by_itself).active():
        return fn(*args, **kwargs)

    return met

  @contextlib.contextmanager
  def in_step(self, is_step: bool = True) -> Iterator[bool]:
    """Yields whether a call, if it belongs to a step, is a whole one."""
    is_part, self._is_in_step = self._is_in_step, is_step
    try:
      yield not is_part
    finally:
      self._is_in_step = is_part
