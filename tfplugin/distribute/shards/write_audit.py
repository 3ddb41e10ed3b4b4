# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Audit of writes whose values differ between replicas.

The methods of a variable make a value the same in all replicas where these can
synchronize. In a loop, a branch or a function they cannot. An op that takes the
handle of a copy never does.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import op_record
from tfplugin.distribute.towers.splitting import batch_values
from tfplugin.distribute.towers.writes import plain_writes
from tfplugin.distribute.variables import agreed_writes
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


class WriteAudit:
  """The writes of the replicas of one call in a graph.

  `values` has the batch values of each replica of this process.
  """

  def __init__(self, batch: Sequence[Any]):
    """Starts before the first replica is built.

    `batch` has the nest of tensors that each replica gets.
    """
    graph = tf1.get_default_graph()
    self._record = op_record.OpRecord(graph, len(batch))
    self._batch = batch
    self.values = [batch_values.BatchValues(
        graph, batch, replica, functools.partial(self._is_of, replica))
                   for replica in range(len(batch))]

  @contextlib.contextmanager
  def replica(self, replica: int) -> Iterator[None]:
    """Assigns the ops that are made inside it to `replica`."""
    self._record.begin(replica)
    yield
    self._record.end(replica)

  @contextlib.contextmanager
  def waiting(self, replica: int) -> Iterator[None]:
    """Marks `replica` as waiting for the others inside it."""
    self._record.end(replica)
    yield
    self._record.begin(replica)

  def passing(self, graph: tf.Graph) -> contextlib.AbstractContextManager:
    """Accepts the ops made inside it in a branch's graph, for all replicas."""
    return self._record.passing(graph)

  def check(self, variables: Iterable[tf.Variable]) -> None:
    """Raises for a write of a replica-specific value, or to a table or queue.

    The error is a ValueError for the value, and a RuntimeError for the table or
    queue. `variables` have a copy for each replica.
    """
    self._record.check_no_stores()
    for variable in variables:
      for replica, copy in enumerate(variable.values[:len(self.values)]):
        for write in _tf_internals.writes_of(copy, self._record.graph):
          if self._is_own(replica, write):
            raise _refusal(variable, write.op)

  def settle(self, own: Iterable[tf.Tensor], is_alone: bool) -> None:
    """Aggregates writes to variables from outside the strategy.

    The result is as on one device. `own` are the handles of the strategy's
    variables. `is_alone` says whether all replicas are in this graph, and in
    one group.
    """
    gather = batch_values.rows_of(
        self._record, self._batch, range(len(self._batch)))

    def one_value(variable: Any, method: str, values: Sequence[Any]) -> Any:
      own = self.values[0]
      try:
        if not own.is_of_rows(values[0]) and same_values.are_same(values):
          agreed_writes.check_no_count(
              variable, method, values[0], own.num_rows)
          return values[0]
        if not is_alone:
          raise batch_values.UnknownValueError(values[0].name)
        return own.of_all(values[0], gather, len(self.values))
      except batch_values.UnknownValueError as error:
        raise agreed_writes.unknown(variable, method, error) from error

    plain_writes.PlainWrites(self._record, one_value, False).settle(own)

  def _is_of(self, replica: int, op: tf.Operation) -> bool:
    # A function captures tensors while a replica is built.
    is_captured = op.graph.building_function and not op.inputs and (
        _tf_internals.gives_rows(op))
    return self._record.is_own(replica, op) and not is_captured and not any(
        map(same_values.is_declared, op.outputs))

  def _is_own(self, replica: int, write: _tf_internals.Write) -> bool:
    if self._record.has_passed(write.op) or not (
        self._record.is_own(replica, write.root)) or (
            _tf_internals.initializes(write.op, write.op.inputs[0])):
      return False
    return self.values[replica].is_of_rows([
        *list(write.op.inputs)[1:], *_tf_internals.conditions_of(write.op)])


def _refusal(variable: tf.Variable, op: tf.Operation) -> ValueError:
  return ValueError(
      'A variable of which each shard has a copy must be written with what all '
      f'of them have in common. Received: {op.name} ({op.type}), which writes '
      f'`{variable.name}` with a value, or on a condition, made of the rows of '
      'one shard. Use the methods of the variable, outside of `tf.cond`, '
      '`tf.while_loop` and `tf.function`, where they make it the value of all '
      'shards; or give each shard its own, by `synchronization='
      'tf.VariableSynchronization.ON_READ` and an `aggregation`.')
