# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Audit of writes and reports whose values differ between replicas.

The methods of a variable make a value the same in all replicas where these can
synchronize. In a loop, a branch or a function they cannot. An op that takes the
handle of a copy never does.

Plain writes bypass the methods of a shared variable. Each shard has an op that
writes to a variable made before the shards, or through the handle of a shared
variable. With an EstimatorSpec only the first shard's op runs, with a value
computed from that shard's rows. Such ops are found in the finished graph, and
get the value of one device. Writes in a branch, a loop or a function must be
the same in all shards, or they are refused.

The first shard also reports numbers: summaries and named tensors. They get the
value of one device, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute.shards.building import op_record
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import batch_values
from tfplugin.distribute.shards.writes import shard_writes
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

# The same write in each shard.
_Twins = Sequence[_tf_internals.Write]


def check_copies(run: shard_run.ShardRun,
                 variables: Iterable[tf.Variable]) -> None:
  """Raises ValueError if a replica writes a value of its own to its copy."""
  for variable in variables:
    for replica, copy in enumerate(variable.values[:len(run.values)]):
      for write in _tf_internals.writes_of(copy, run.record.graph):
        if _is_own(run, replica, write):
          raise _copy_refusal(variable, write.op)


def settle(run: shard_run.ShardRun, group: Sequence[int], *,
           others: Iterable[tf.Tensor] = (), is_alone: bool = True,
           first_alone: bool = False) -> None:
  """Aggregates plain writes of shards to the value that one device writes.

  `group` has the shards that reduce together with the first one. `others` are
  handles of variables that are written otherwise. `is_alone` says whether all
  shards are in this graph, and in one group. `first_alone` says whether only
  the ops of the first shard run. A RuntimeError is raised if the shards' values
  cannot be aggregated, and a ValueError if the value of one device is not
  known.
  """
  one_value = functools.partial(_one_value, run, group, is_alone)
  skipped = {handle.op for handle in others}
  # Before aggregation, which adds ops to the graph.
  order = {op: i for i, op in enumerate(run.record.graph.get_operations())}
  for op in order:
    if op not in skipped and _tf_internals.makes_variable(op):
      for twins in _twins_of(run.record, op.outputs[0], order):
        _settle(op.outputs[0], twins, one_value, first_alone)


def _one_value(run: shard_run.ShardRun, group: Sequence[int], is_alone: bool,
               variable: Any, method: str, values: Sequence[Any]) -> Any:
  """Returns the value that one device writes, from the value of each shard."""
  own, first = run.values[0], values[0]
  of_gradients = any(map(run.gradients.made, values))
  try:
    if own.is_of_rows(first) and not of_gradients:
      if not is_alone:
        raise batch_values.UnknownValueError(first.name)
      return own.of_all(
          first, batch_values.rows_of(run.record, run.batch, group))
    if not is_alone and not same_values.are_same(values):
      raise batch_values.UnknownValueError(first.name)
  except batch_values.UnknownValueError as error:
    raise shard_writes.unknown(
        variable, method, error, error.remedy) from error
  if not of_gradients:
    shard_writes.check_no_count(variable, method, first, own)
    own.warn_of_counts(first)
  return shard_writes.one_value(run, variable, method, values, group)


def _is_own(run: shard_run.ShardRun, replica: int,
            write: _tf_internals.Write) -> bool:
  """Returns whether a replica writes a replica-specific value."""
  if run.record.is_for_all_shards(write.op) or not (
      run.record.is_own(replica, write.root)) or (
          _tf_internals.initializes(write.op, write.op.inputs[0])):
    return False
  return run.values[replica].is_of_rows([
      *list(write.op.inputs)[1:], *_tf_internals.conditions_of(write.op)])


def _copy_refusal(variable: tf.Variable, op: tf.Operation) -> ValueError:
  return ValueError(
      'A variable of which each shard has a copy must be written with a value '
      f'that all shards have in common. Received: {op.name} ({op.type}), which '
      f'writes `{variable.name}` with a value, or on a condition, computed '
      'from the rows of one shard. Use the methods of the variable, outside of '
      '`tf.cond`, `tf.while_loop` and `tf.function`, where they make it the '
      'value of all shards.')


def _twins_of(record: op_record.OpRecord, variable: tf.Tensor,
              order: dict[tf.Operation, int]) -> list[_Twins]:
  """Returns the plain writes of a variable, with the twin in each shard."""
  writes = [write for write in _tf_internals.writes_through(variable)
            if not record.is_for_all_shards(write.op)]
  writes.sort(key=lambda write: order[write.root])
  by_shard = [[write for write in writes
               if record.is_own(shard, write.root) and not (
                   _tf_internals.initializes(write.op, variable))]
              for shard in range(record.num_shards)]
  if len({tuple(write.op.type for write in own) for own in by_shard}) > 1:
    raise _refusal(variable, next(own for own in by_shard if own)[0].op)
  return list(zip(*by_shard))


def _settle(variable: tf.Tensor, twins: _Twins, one_value: Callable,
            first_alone: bool) -> None:
  """Aggregates the writes of all shards; see `settle`."""
  ops = [write.op for write in twins]
  is_same = not any(map(_tf_internals.is_in_loop, ops)) and _are_same(ops)
  is_inside = any(write.root is not write.op or
                  _tf_internals.is_in_branch_or_loop(write.op)
                  for write in twins)
  method = _tf_internals.method_of_write(ops[0])
  _wait_for_all([write.root for write in twins])
  if is_inside or method is None:
    if not (is_same and first_alone):
      raise _refusal(variable, ops[0])
  else:
    values = [tf.IndexedSlices(op.inputs[2], op.inputs[1]) if (
        method.startswith('scatter')) else op.inputs[1] for op in ops]
    _share(method, ops, values[0] if (
        is_same and _is_global_step(variable)) else (
            one_value(variable, method, values)))


def _wait_for_all(ops: Sequence[tf.Operation]) -> None:
  """Makes the first of `ops`, twins in all shards, wait for the inputs of all.

  That may read the variable: a late shard would otherwise read the new value.
  """
  def can_wait(op: tf.Operation) -> bool:
    return op not in ops and _tf_internals.can_precede(op, ops[0])

  _tf_internals.add_control_inputs(ops[0], list(filter(
      can_wait, graph_order.upstream(ops[1:], stop=can_wait))))


def _share(method: str, ops: Sequence[tf.Operation], value: Any) -> None:
  """Makes the first shard write `value`, and the others change nothing."""
  if isinstance(value, tf.IndexedSlices):
    # With any number of rows, not only the first shard's.
    inputs = {i: tf1.placeholder_with_default(
        t, tf.TensorShape([None]).concatenate(t.shape[1:]))
              for i, t in ((1, value.indices), (2, value.values))}
  else:
    inputs = {1: tf.convert_to_tensor(value, ops[0].inputs[1].dtype)}
  last = max(inputs)
  for shard, op in enumerate(ops):
    for index, written in inputs.items():
      adds_nothing = shard and index == last and method not in (
          'assign', 'scatter_update')
      _tf_internals.redirect_input(
          op, index, tf.zeros_like(written) if adds_nothing else written)
    if shard:
      _tf_internals.add_control_inputs(op, ops[:1])


def _are_same(ops: Sequence[tf.Operation]) -> bool:
  """Returns whether all shards write the same, on the same conditions."""
  return same_values.are_same([
      [*list(op.inputs)[1:], *_tf_internals.conditions_of(op)] for op in ops])


def _is_global_step(variable: tf.Tensor) -> bool:
  step = tf1.train.get_global_step(variable.graph)
  return step is not None and step.name == variable.name


def _refusal(variable: tf.Tensor, op: tf.Operation) -> RuntimeError:
  return RuntimeError(
      'A variable must be updated once for all shards. Received: '
      f'{op.name} ({op.type}), an op of each shard that writes '
      f'`{variable.name}`. Make the variable in the model_fn, outside of loops '
      'and branches. Use the methods of the variable there, '
      '`variable.scatter_add(slices)` for `tf.compat.v1.scatter_add`.')


def show_batch_values(run: shard_run.ShardRun, group: Sequence[int],
                      loss: Any) -> None:
  """Replaces numbers that the first shard reports by numbers of all rows.

  The `loss` of the first shard is not changed.
  """
  left, own = [], run.values[0]
  gather = batch_values.rows_of(run.record, run.batch, group)
  for op in run.record.built_in(0):
    value = _tf_internals.reported_value(op)
    if value is None:
      if _tf_internals.is_summary(op) and own.is_of_rows(list(op.inputs)):
        left.append(op.name)
      continue
    if op.outputs[0] is loss or not own.is_of_rows(value):
      continue
    if run.gradients.made(value) or _tf_internals.is_in_branch_or_loop(op):
      left.append(op.name)
      continue
    try:
      _tf_internals.redirect_input(
          op, list(op.inputs).index(value),
          own.of_all(value, gather))
    except batch_values.UnknownValueError:
      left.append(op.name)
  if left:
    tf1.logging.warning(
        'Summaries and named tensors that are not computed for the rows of '
        'all shards show the first of %s: %s.', len(run.batch), ', '.join(left))


def merge_metrics(metrics: dict[str, Any],
                  local_results: Callable[[Any], Sequence]) -> None:
  """Gives one value to each of the metrics of a spec of all replicas.

  Raises ValueError if a value differs between replicas. `local_results` returns
  the value of each.
  """
  for name, (value, update) in list(metrics.items()):
    values = [value] if isinstance(value, tf.Variable) else local_results(value)
    if not same_values.are_same(values):
      raise ValueError(
          'A metric in `eval_metric_ops` must have one value for all shards. '
          f'Received: `{name}` with {values[0]!r}, of which each shard has its '
          'own. Use `tf.compat.v1.metrics`; or read the value from a variable, '
          'made without `synchronization`, that the update writes.')
    metrics[name] = values[0], update


def readers_of(losses: Sequence[Any]) -> list[set[tf.Operation]]:
  """Returns the ops that read each of `losses`, which may be no tensors."""
  return [set(unnamed(loss).consumers() if isinstance(loss, tf.Tensor) else ())
          for loss in losses]


def show_loss(losses: Sequence[tf.Tensor],
              readers: Sequence[set[tf.Operation]], total: tf.Tensor) -> None:
  """Makes the `readers` of the shards' losses read the loss of the batch.

  A metric of the loss, or its summary, then has one value per batch. `total` is
  made from `losses`; the readers are not on the way to it.
  """
  if losses[0].op.name == 'loss' and not _tf_internals.names_tensor(
      losses[0].op):
    tf1.logging.warning(
        'The tensor `loss` of the model_fn is the loss of the first of %s '
        'shards; the loss of the batch is `%s`. Name the loss by '
        "`tf.identity(loss, name='loss')`, which becomes the loss of the "
        'batch.', len(losses), total.name)
  for loss, ops in zip(losses, readers):
    if ops:
      _tf_internals.redirect(ops, unnamed(loss), tf.cast(total, loss.dtype))


def unnamed(loss: tf.Tensor) -> tf.Tensor:
  """Returns the tensor behind identity ops that only name a loss.

  An identity with a name can be redirected to another tensor; a name cannot.
  """
  while isinstance(loss, tf.Tensor) and _tf_internals.names_tensor(loss.op):
    loss = loss.op.inputs[0]
  return loss
