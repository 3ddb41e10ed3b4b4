# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the updates of a train step that a wrapper's rule has not seen.

A wrapper acts where optimizers are applied. A program may write a variable in
other ways, too: by an assignment, by an op of its own, by an optimizer of
another kind. What the wrapper is for would then not be done, and nobody would
know. So the ops that write are noted while a rule is around them, and a train
step that holds another one is refused.
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
  """The writes of variables that have passed a rule."""

  def __init__(self):
    """Knows of none."""
    # By name: an operation would keep its graph.
    self._passed = per_graph.PerGraph()

  def has_passed(self, operation: tf.Operation) -> bool:
    """Whether an op was made while `passing` was around it."""
    return operation.name in self._passed.get(operation.graph, ())

  @contextlib.contextmanager
  def passing(self, variables: Iterable[tf.Variable]) -> Iterator[None]:
    """Takes each op that is made inside and writes a variable for passed.

    Args:
      variables: The variables; others' writes are not looked at.
    """
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
    """Yields the ops of a train step that write `variable` past the rule.

    Args:
      train_op: Ops and tensors that end the step; None: all of the graph.
      variable: A variable that the rule is for.
    """
    writes = [write for write in _tf_internals.writes_of(
        variable, tf1.get_default_graph())
              if write.op is not variable.initializer and
              not (self.has_passed(write.op) or OF_RULES.has_passed(write.op))]
    if writes and train_op is not None:
      step = graph_order.upstream(graph_order.operations_of(
          tf.nest.flatten(train_op)))
      writes = [write for write in writes if write.root in step]
    yield from (write.op for write in writes)

  def check(self, caller: str, train_op, variables: Iterable[tf.Variable],
            rule: str) -> None:
    """Raises if a train step writes one of `variables` past the rule.

    Args:
      caller: The decorator, for the message.
      train_op: Ops and tensors that end the step.
      variables: The variables that the rule is for.
      rule: What is done to an update, for the message.

    Raises:
      ValueError: It does.
    """
    for variable in variables:
      for operation in self.unseen(train_op, variable):
        raise refusal(caller, variable, operation, rule)


# The writes of rules themselves: what one does, others need not see.
OF_RULES = UpdateAudit()


def refusal(caller: str, variable: tf.Variable, operation: tf.Operation,
            rule: str) -> ValueError:
  """Returns the error of an update that a rule has not seen.

  Args:
    caller: The decorator or strategy.
    variable: The variable.
    operation: The op that writes it.
    rule: What is done to an update.
  """
  return ValueError(
      f'{caller} {rule}, so that every update of a trained variable must be '
      'made by `apply_gradients` of a `tf.compat.v1.train.Optimizer`. '
      f'Received: a train step with {operation.name} ({operation.type}), which '
      f'writes `{variable.name}` beside the optimizers. Put the update into an '
      'optimizer (a subclass may override `apply_gradients` and assign), give '
      'the variable a `constraint`, assign in a session hook, or make the '
      'variable with `trainable=False`.')
