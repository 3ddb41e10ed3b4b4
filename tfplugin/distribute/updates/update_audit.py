# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Audit of a train step for updates that bypass a wrapper's rule.

A wrapper acts where optimizers are applied. A program may write a variable in
other ways, too: by an assignment, by another op, by an optimizer of another
kind. The wrapper's rule would then silently not apply. So the ops that write
inside a rule are recorded, and a train step with any other write is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from collections.abc import Iterator

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


class UpdateAudit:
  """Record of the writes of variables that a rule has handled."""

  def __init__(self):
    """Starts empty."""
    # Names of operations, since an operation would keep its graph alive.
    self._passed = per_graph.PerGraph()

  def has_passed(self, operation: tf.Operation) -> bool:
    """Returns whether an op was made inside `passing`."""
    return operation.name in self._passed.get(operation.graph, ())

  @contextlib.contextmanager
  def passing(self, variables: Iterable[tf.Variable]) -> Iterator[None]:
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
          self._passed.setdefault(write.op.graph, set()).add(write.op.name)

  def unseen(self, train_op, variable: tf.Variable) -> Iterator[tf.Operation]:
    """Yields the unaudited ops of a step, or graph, that write `variable`."""
    writes = [write for write in _tf_internals.writes_of(
        variable, tf1.get_default_graph())
              if write.op is not variable.initializer and
              not (self.has_passed(write.op) or OF_RULES.has_passed(write.op))]
    if writes and train_op is not None:
      step = graph_order.upstream(tf.nest.flatten(train_op))
      writes = [write for write in writes if write.root in step]
    yield from (write.op for write in writes)

  def check(self, caller: str, train_op, variables: Iterable[tf.Variable],
            rule: str) -> None:
    """Raises ValueError if a train step writes a variable outside the rule."""
    for variable in variables:
      for operation in self.unseen(train_op, variable):
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
