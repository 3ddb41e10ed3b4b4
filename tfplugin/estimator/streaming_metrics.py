# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics over towers: each tower updates the same variables, in turn.

A streaming metric that sees the first rows and then the next ones has the value
of one device with smaller batches. So towers share the variables of their
metrics, and tower i + 1 reads them when tower i has written them; metrics need
no merging, and need not be sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_run
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

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
    _weigh_batches(uses, metrics, weighted_sum.row_shares(rows))
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


def _check_rows(uses: Sequence[Use]) -> None:
  """Raises if a metric takes a batch as one, element by element.

  The variables of such a metric are no scalars, and it counts updates, by the
  same number whatever the batch. Other metrics count rows.
  """
  for variable, op in uses:
    if _tf_internals.adds_to_variable(op) and variable.shape.rank and (
        tf.get_static_value(op.inputs[1]) is not None or
        _tf_internals.is_mean_tensor(variable)):
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
  number for each batch. A tower's addition is multiplied by its share of the
  rows, so that means of rows become the mean of the batch, and a number that
  all towers have, such as the loss of the batch, stays the same.
  """
  for key in metrics[0]:
    additions = [
        [(variable, op) for variable, op in tower_uses
         if _tf_internals.adds_to_variable(op) and not variable.shape.rank
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
    The ops to run before the next use of the variables.
  """
  if isinstance(rows, int) and rows > 0:
    return []
  with tf.control_dependencies(before):
    has_rows = tf.greater(rows, 0)
  others = {}
  for variable, op in uses:
    if _tf_internals.adds_to_variable(op):
      _keep_unless(op, has_rows, tf.zeros_like(op.inputs[1]))
    elif _tf_internals.assigns_variable(op):
      with tf.control_dependencies([*before, *op.control_inputs]):
        _keep_unless(op, has_rows, variable.read_value())
    elif not _tf_internals.reads_variable(op):
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
  """Returns an op that undoes, unless `has_rows`, the work of `writers`.

  The values that they write are out of reach, inside a function, say.
  """
  with tf.control_dependencies(before):
    saved = variable.read_value()
  for writer in writers:
    _tf_internals.add_control_inputs(writer, [saved.op])
  with tf.control_dependencies(writers):
    return variable.assign(
        tf.where(has_rows, variable.read_value(), saved), read_value=False)
