# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics over towers: each tower updates the same variables, in turn.

A streaming metric that has seen the first rows and then the next ones is what
one device computes of smaller batches. So towers share the variables of their
metrics, and tower i + 1 reads them when tower i has written them; no metric has
to be merged, and none has to be one that can be added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_run
from tfplugin.ops import row_shares
from tfplugin.ops import weighted_sum

# The variable that `tf.compat.v1.metrics.mean_tensor` adds up in.
_MEAN_TENSOR = '/total_tensor'
_READS = ('ReadVariableOp', 'ResourceGather', 'VariableShape',
          'VarIsInitializedOp')
_ADDITIONS = ('AssignAddVariableOp', 'AssignSubVariableOp')


# A variable of a metric, and an op that reads or writes it.
Use = tuple[tf.Variable, tf.Operation]


def chain(run: tower_run.TowerRun, metrics: Sequence[Mapping[str, Any]],
          rows: Sequence[Any]) -> dict[str, Any]:
  """Returns the metrics of the whole batch.

  Args:
    run: The run that built the towers.
    metrics: For each tower its `eval_metric_ops`.
    rows: The number of rows of each tower. A tower without rows updates
      nothing.

  Returns:
    For each name the value of the shared variables and an update op that has
    updated them with every tower's rows, in order.

  Raises:
    ValueError: A metric is the mean over batches of a tensor.
  """
  uses = [_uses(run, tower) for tower in range(len(metrics))]
  if len(metrics) > 1:
    _check_rows(uses[0])
    _weigh_batches(uses, metrics, row_shares.row_shares(rows))
  before = []
  for tower, updates in enumerate(metrics):
    restored = []
    if tower:
      restored = _skip_if_empty(uses[tower], rows[tower], before)
      for _, op in uses[tower]:
        _tf_internals.add_control_inputs(op, before)
    before = [_op(update) for _, update in updates.values()] + restored
  return {
      key: (value, _after([*restored, *(tower[key][1] for tower in metrics)]))
      for key, (value, _) in metrics[0].items()}


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


def _check_rows(uses: Sequence[Use]) -> None:
  """Raises if a metric takes a batch as one, element by element.

  Its variables are no scalars, and it counts updates: by the same number
  whatever the batch. Others count rows.
  """
  for variable, op in uses:
    if op.type in _ADDITIONS and variable.shape.rank and (
        tf.get_static_value(op.inputs[1]) is not None or
        variable.op.name.endswith(_MEAN_TENSOR)):
      raise ValueError(
          '`eval_metric_ops` of a model_fn in several towers must be of rows, '
          'not the mean over batches of a tensor, which parts of a batch do '
          f'not give. Received: a `mean_tensor` in `{variable.name}`. Use '
          '`mean` for each element, or pass `replicate_eval=False`.')


def _op(update: Any) -> tf.Operation:
  return update if isinstance(update, tf.Operation) else update.op


def _weigh_batches(uses: Sequence[Sequence[Use]],
                   metrics: Sequence[Mapping[str, Any]],
                   shares: Sequence[weighted_sum.Weight]) -> None:
  """Lets means over batches of a number count each batch once.

  A mean that every tower adds the same count to is not of rows, but of one
  number for each batch. What a tower adds is multiplied by its share of the
  rows, so that means of rows become that of the batch, and a number that all
  towers have, such as the loss of the batch, stays what it is.
  """
  for key in metrics[0]:
    additions = [
        [(variable, op) for variable, op in tower_uses
         if op.type in _ADDITIONS and not variable.shape.rank
         and op in _behind(tower[key][1])]
        for tower_uses, tower in zip(uses, metrics)]
    counts = [{variable.ref(): tf.get_static_value(op.inputs[1])
               for variable, op in tower} for tower in additions]
    if any(count is not None and all(count == other.get(variable)
                                     for other in counts)
           for variable, count in counts[0].items()):
      for tower, share in zip(additions, shares):
        for _, op in tower:
          _tf_internals.redirect_input(op, 1, weighted_sum.weighted_sum(
              [op.inputs[1]], [share]))


def _behind(update: Any) -> set[tf.Operation]:
  """Returns the op of `update`, and all ops that it waits for."""
  pending, behind = [_op(update)], set()
  while pending:
    op = pending.pop()
    if op not in behind:
      behind.add(op)
      pending += [tensor.op for tensor in op.inputs] + op.control_inputs
  return behind


def _after(updates: Sequence[Any]) -> Any:
  """Returns the last of `updates` when all of them are done."""
  *others, last = updates
  if not others:
    return last
  with tf.control_dependencies([_op(update) for update in others]):
    return (tf.group(last) if isinstance(last, tf.Operation)
            else tf.identity(last))


def _uses(run: tower_run.TowerRun, tower: int) -> list[Use]:
  """Returns variables of metrics and the ops of `tower` that use them."""
  own = set(run.ops_of(tower))
  return [(variable, op) for variable in run.variables.streaming
          for op in variable.handle.consumers() if op in own]


def _skip_if_empty(uses: Sequence[Use], rows: Any,
                   before: Sequence[tf.Operation]) -> list[tf.Operation]:
  """Lets variables that `uses` write keep the value if there are no `rows`.

  A mean over no rows is NaN, which no metric would ever get rid of.

  Returns:
    What has to be done before the next use of the variables.
  """
  if isinstance(rows, int) and rows > 0:
    return []
  with tf.control_dependencies(before):
    has_rows = tf.greater(rows, 0)
  others = {}
  for variable, op in uses:
    if op.type in _ADDITIONS:
      _keep_unless(op, has_rows, tf.zeros_like(op.inputs[1]))
    elif op.type == 'AssignVariableOp':
      with tf.control_dependencies([*before, *op.control_inputs]):
        _keep_unless(op, has_rows, variable.read_value())
    elif op.type not in _READS:
      others.setdefault(variable.ref(), []).append(op)
  return [_restore_unless(has_rows, variable.deref(), writers, before)
          for variable, writers in others.items()]


def _keep_unless(op: tf.Operation, has_rows: tf.Tensor, kept: tf.Tensor,
                 ) -> None:
  _tf_internals.redirect_input(
      op, 1, tf.where(has_rows, op.inputs[1], kept))


def _restore_unless(has_rows: tf.Tensor, variable: tf.Variable,
                    writers: Sequence[tf.Operation],
                    before: Sequence[tf.Operation]) -> tf.Operation:
  """Returns an op that undoes, unless `has_rows`, what `writers` do.

  What they write is out of reach, such as that of a function.
  """
  with tf.control_dependencies(before):
    saved = variable.read_value()
  for writer in writers:
    _tf_internals.add_control_inputs(writer, [saved.op])
  with tf.control_dependencies(writers):
    return variable.assign(
        tf.where(has_rows, variable.read_value(), saved), read_value=False)
