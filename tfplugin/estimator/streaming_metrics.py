# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics over towers: each tower updates the same variables, in turn.

A streaming metric that has seen the first rows and then the next ones is what
one device computes of smaller batches. So towers share the variables of their
metrics, and tower i + 1 reads them when tower i has written them; no metric has
to be merged, and none has to be one that can be added up.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import tower_run

tf1 = tf.compat.v1

_ADDITIONS = ('AssignAddVariableOp', 'AssignSubVariableOp')


def chain(run: tower_run.TowerRun, metrics: Sequence[Mapping[str, Any]],
          rows: Sequence[Any], losses: Sequence[tf.Tensor]) -> dict[str, Any]:
  """Returns the metrics of the whole batch.

  Args:
    run: The run that built the towers.
    metrics: For each tower its `eval_metric_ops`.
    rows: The number of rows of each tower. A tower without rows updates
      nothing but metrics of the loss, which is that of the batch.
    losses: The loss of each tower.

  Returns:
    For each name the value of the shared variables and an update op that has
    updated them with every tower's rows, in order.
  """
  pairs = [{key: _value_and_update(metric) for key, metric in tower.items()}
           for tower in metrics]
  before = []
  for tower, updates in enumerate(pairs):
    if tower:
      uses = _uses(run, tower)
      of_loss = _made_from(losses[tower], updates.values())
      _skip_if_empty([op for op in uses if op not in of_loss],
                     rows[tower], before)
      for op in uses:
        _tf_internals.add_control_inputs(op, before)
    before = [_op(update) for _, update in updates.values()]
  return {key: (pairs[0][key][0],
                _after([tower[key][1] for tower in pairs]))
          for key in pairs[0]}


def share_loss(losses: Sequence[tf.Tensor], total: tf.Tensor,
               consumers: Sequence[Sequence[tf.Operation]]) -> None:
  """Lets what the towers made of their loss see the loss of the batch.

  A metric of the loss has one value per batch, not one per row: the towers'
  losses are no parts that it could be updated with in turn.

  Args:
    losses: The loss of each tower.
    total: The loss of the batch, made from them.
    consumers: The ops that used each loss before `total` was made.
  """
  for loss, ops in zip(losses, consumers):
    for op in ops:
      for index, tensor in enumerate(op.inputs):
        if tensor is loss:
          _tf_internals.redirect_input(op, index, tf.cast(total, loss.dtype))


def _value_and_update(metric: Any) -> tuple[Any, Any]:
  if isinstance(metric, tf.keras.metrics.Metric):
    return metric.result(), metric.updates[0]
  return metric


def _op(update: Any) -> tf.Operation:
  return update if isinstance(update, tf.Operation) else update.op


def _made_from(loss: tf.Tensor, pairs: Iterable[tuple[Any, Any]],
               ) -> set[tf.Operation]:
  """Returns all ops behind those updates that `loss` is behind of."""
  made = set()
  for _, update in pairs:
    pending, behind = [_op(update)], set()
    while pending:
      op = pending.pop()
      if op not in behind:
        behind.add(op)
        pending += [tensor.op for tensor in op.inputs] + op.control_inputs
    if loss.op in behind:
      made |= behind
  return made


def _after(updates: Sequence[Any]) -> Any:
  """Returns the last of `updates` when all of them are done."""
  *others, last = updates
  if not others:
    return last
  with tf.control_dependencies([_op(update) for update in others]):
    return (tf.group(last) if isinstance(last, tf.Operation)
            else tf.identity(last))


def _uses(run: tower_run.TowerRun, tower: int) -> list[tf.Operation]:
  """Returns the ops of `tower` that read or write a metric's variable."""
  own = set(run.ops_of(tower))
  return [op for variable in run.variables.streaming
          for op in variable.handle.consumers() if op in own]


def _skip_if_empty(uses: Sequence[tf.Operation], rows: Any,
                   before: Sequence[tf.Operation]) -> None:
  """Lets the assignments among `uses` keep the value if there are no `rows`.

  A mean over no rows is NaN, which no metric would ever get rid of.
  """
  if isinstance(rows, int) and rows > 0:
    return
  with tf.control_dependencies(before):
    has_rows = tf.greater(rows, 0)
  for op in uses:
    if op.type in _ADDITIONS:
      _keep_unless(op, has_rows, tf.zeros_like(op.inputs[1]))
    elif op.type == 'AssignVariableOp':
      with tf.control_dependencies([*before, *op.control_inputs]):
        now = tf.raw_ops.ReadVariableOp(
            resource=op.inputs[0], dtype=op.inputs[1].dtype)
      _keep_unless(op, has_rows, now)


def _keep_unless(op: tf.Operation, has_rows: tf.Tensor, kept: tf.Tensor,
                 ) -> None:
  _tf_internals.redirect_input(
      op, 1, tf.where(has_rows, op.inputs[1], kept))
