# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Audit of writes whose values differ between replicas.

The methods of a variable make a value the same in all replicas where these can
synchronize. In a loop, a branch or a function they cannot. An op that takes the
handle of a copy never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import agreed_writes
from tfplugin.distribute.shards.writes import batch_values
from tfplugin.distribute.shards.writes import plain_writes
from tfplugin.distribute.variables import same_values


def check_copies(run: shard_run.ShardRun,
                 variables: Iterable[tf.Variable]) -> None:
  """Raises ValueError if a replica writes a replica-specific value.

  `variables` have a copy for each replica of `run`.
  """
  for variable in variables:
    for replica, copy in enumerate(variable.values[:len(run.values)]):
      for write in _tf_internals.writes_of(copy, run.record.graph):
        if _is_own(run, replica, write):
          raise _refusal(variable, write.op)


def settle(run: shard_run.ShardRun, group: Sequence[int], *,
           others: Iterable[tf.Tensor] = (), is_alone: bool = True,
           first_alone: bool = False) -> None:
  """Aggregates plain writes of shards to the value that one device writes.

  `group` has the shards that reduce together with the first one. `others` are
  handles of variables that are written otherwise. `is_alone` says whether all
  shards are in this graph, and in one group. `first_alone` says whether only
  the ops of the first shard run. Errors are those of `PlainWrites.settle`.
  """
  gather = batch_values.rows_of(run.record, run.batch, group)

  def one_value(variable: Any, method: str, values: Sequence[Any]) -> Any:
    own, first = run.values[0], values[0]
    of_gradients = any(map(run.gradients.made, values))
    try:
      if own.is_of_rows(first) and not of_gradients:
        if not is_alone:
          raise batch_values.UnknownValueError(first.name)
        return own.of_all(first, gather, len(group))
      if not is_alone and not same_values.are_same(values):
        raise batch_values.UnknownValueError(first.name)
    except batch_values.UnknownValueError as error:
      raise agreed_writes.unknown(variable, method, error) from error
    if not of_gradients:
      agreed_writes.check_no_count(variable, method, first, own.num_rows)
    return agreed_writes.one_value(variable, method, values, group)

  plain_writes.PlainWrites(run.record, one_value, first_alone).settle(others)


def _is_own(run: shard_run.ShardRun, replica: int,
            write: _tf_internals.Write) -> bool:
  """Returns whether a replica writes a replica-specific value."""
  if run.record.has_passed(write.op) or not (
      run.record.is_own(replica, write.root)) or (
          _tf_internals.initializes(write.op, write.op.inputs[0])):
    return False
  return run.values[replica].is_of_rows([
      *list(write.op.inputs)[1:], *_tf_internals.conditions_of(write.op)])


def _refusal(variable: tf.Variable, op: tf.Operation) -> ValueError:
  return ValueError(
      'A variable of which each shard has a copy must be written with a value '
      f'that all shards have in common. Received: {op.name} ({op.type}), which '
      f'writes `{variable.name}` with a value, or on a condition, computed '
      'from the rows of one shard. Use the methods of the variable, outside of '
      '`tf.cond`, `tf.while_loop` and `tf.function`, where they make it the '
      'value of all shards; or give each shard its own value, by '
      '`synchronization=tf.VariableSynchronization.ON_READ` and an '
      '`aggregation`.')
