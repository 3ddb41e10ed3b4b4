# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a batch that a shard computes from the rows of all shards.

A shard has some rows of a batch, and a number that it makes of them is its own.
The row-wise tensors nearest to the number (`row_analysis.py`) are gathered from
all shards, and the ops behind them are made again, with all rows. So the number
is that of one device, whatever it is made of, and the same in all shards.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.towers.splitting import row_analysis
from tfplugin.distribute.variables import same_values

_PART, _SLICE = row_analysis.PART, row_analysis.SLICE


class UnknownValueError(ValueError):
  """A number of a shard whose value of the batch is not known."""


class BatchValues:
  """Tells which tensors of a shard are made of its rows, and what all make.

  Attributes:
    num_rows: The rows of the shard, where they are static.
  """

  def __init__(self, graph: tf.Graph, batch: Sequence[Any], shard: int,
               is_own: Callable[[tf.Operation], bool]):
    """Starts before anything is built.

    Args:
      graph: The graph that the shards are built in.
      batch: The nest of tensors that each shard is given. What two shards have
        in common belongs to all.
      shard: The number of this one.
      is_own: Whether an op of `graph` is made for this shard.
    """
    leaves = [leaf for leaf, other in zip(
        *(tf.nest.flatten(batch[i]) for i in (shard, shard - 1)))
              if tf.is_tensor(leaf) and (
                  leaf is not other or len(batch) == 1)]
    self._graph, self._is_own = graph, is_own
    self._dense = [leaf for leaf in leaves if isinstance(leaf, tf.Tensor) and
                   leaf.shape.rank]
    self._composites = [leaf for leaf in leaves
                        if not isinstance(leaf, tf.Tensor)]
    self._leaves = {t.ref() for t in tf.nest.flatten(
        leaves, expand_composites=True)}
    sizes = [tf.compat.dimension_value(leaf.shape[0]) for leaf in self._dense]
    self.num_rows = next((size for size in sizes if size is not None), None)
    self._without, self._pure = set(), {}
    self._analysis, self._added = None, set()

  def is_of_rows(self, value: Any) -> bool:
    """Returns whether `value`, of the shard, is made of its rows."""
    return any(self._reaches(t) for t in tf.nest.flatten(
        value, expand_composites=True) if tf.is_symbolic_tensor(t))

  def of_all(self, value: all_reduce.Summand,
             groups: groups_lib.GroupAssignment = None) -> all_reduce.Summand:
    """Returns the value of the batch; call it in each shard.

    Args:
      value: Made of the rows of the shard.
      groups: The shards that have a batch to themselves; None: one group.

    Raises:
      UnknownValueError: It is not known.
    """
    if isinstance(value, tf.IndexedSlices):
      return tf.IndexedSlices(self.of_all(value.values, groups), self.of_all(
          value.indices, groups), value.dense_shape)
    order = {op: i for i, op in enumerate(self._graph.get_operations())}
    if value.graph is not self._graph:
      raise UnknownValueError(f'{value.op.name} inside of a function')
    self._analyse(value, order)
    whole, ops = self._gathered(value, groups)
    for op in sorted(ops, key=order.get):
      try:
        copied = _tf_internals.copy_op(
            self._graph, op, [whole[t.ref()] for t in op.inputs], 'of_batch')
      except ValueError as error:
        raise _unknown(op) from error
      whole.update(zip((t.ref() for t in op.outputs), copied.outputs))
    return whole[value.ref()]

  def _reaches(self, tensor: tf.Tensor) -> bool:
    pending, seen = [tensor], set()
    while pending:
      last = pending.pop()
      if last.ref() in seen or last.ref() in self._without:
        continue
      if last.ref() in self._leaves:
        return True
      seen.add(last.ref())
      if same_values.is_declared(last) or not self._is_made_here(last.op):
        continue
      if _tf_internals.gives_rows(last.op) and not (
          _tf_internals.is_input_of_function(last)) or self._counts(last.op):
        return True
      pending += _tf_internals.sources_of(last)
    self._without |= seen
    return False

  def _is_made_here(self, op: tf.Operation) -> bool:
    return op.graph is not self._graph or self._is_own(op)

  def _counts(self, op: tf.Operation) -> bool:
    """Returns whether `op` holds the static size of rows."""
    sizes = _tf_internals.static_size(op)
    return bool(sizes) and self.num_rows is not None and (
        sizes[0] == self.num_rows or len(sizes) == 1 and not (
            sizes[0] % self.num_rows) and sizes[0] > 0)

  def _analyse(self, value: tf.Tensor, order: dict) -> None:
    """Finds the row-wise ops behind `value`."""
    if self._analysis is None:
      self._analysis = row_analysis.RowAnalysis(
          self._dense, self.num_rows, True, self._composites)
    pending, found = [value.op], set()
    while pending:
      op = pending.pop()
      if op not in found and op not in self._added and self._reaches_op(op):
        found.add(op)
        pending += [t.op for t in op.inputs]
    self._added |= found
    for op in sorted(found, key=order.get):
      self._analysis.add(op)

  def _reaches_op(self, op: tf.Operation) -> bool:
    return any(t.ref() not in self._leaves and self._reaches(t)
               for t in op.outputs)

  def _gathered(self, value: tf.Tensor, groups: groups_lib.GroupAssignment,
                ) -> tuple[dict, set[tf.Operation]]:
    """Returns what the ops behind `value` read, of all shards, and those."""
    whole, ops, pending = {}, set(), [value]
    while pending:
      tensor = pending.pop()
      if tensor.ref() in whole or tensor.op in ops:
        continue
      if not self._reaches(tensor):
        whole[tensor.ref()] = tensor
      elif self._is_pure(tensor):
        whole[tensor.ref()] = _gather(
            tensor, self._analysis.rows[tensor.ref()].axis, groups)
      elif self._counts(tensor.op):
        whole[tensor.ref()] = _times_shards(tensor, groups)
      elif tensor.ref() in self._leaves or not (
          _tf_internals.can_be_copied(tensor.op)) or (
              tensor.op.op_def.is_stateful):
        raise _unknown(tensor.op)
      else:
        ops.add(tensor.op)
        pending += tensor.op.inputs
    return whole, ops

  def _is_pure(self, tensor: tf.Tensor) -> bool:
    """Returns whether the rows of `tensor` are made of those rows alone."""
    if tensor.ref() not in self._analysis.rows:
      return False
    return tensor.ref() in self._leaves or self._is_pure_op(tensor.op)

  def _is_pure_op(self, op: tf.Operation) -> bool:
    pending = [op]
    while pending:
      last = pending[-1]
      if last in self._pure:
        pending.pop()
        continue
      plan = self._analysis.plans.get(last)
      behind = [t for t, mode in zip(plan.inputs, plan.modes)
                if mode == _PART] if plan else []
      behind = [t.op for t in behind if t.ref() not in self._leaves]
      if all(other in self._pure for other in behind):
        self._pure[last] = plan is not None and all(
            self._pure[other] for other in behind) and not any(
                mode == _SLICE or mode != _PART and self._reaches(t)
                for t, mode in zip(plan.inputs, plan.modes))
      else:
        pending += [other for other in behind if other not in self._pure]
    return self._pure[op]


def _gather(tensor: tf.Tensor, axis: int,
            groups: groups_lib.GroupAssignment) -> tf.Tensor:
  """Returns the rows of all shards, one after the other."""
  if not (tensor.dtype.is_floating or tensor.dtype.is_integer or
          tensor.dtype.is_complex or tensor.dtype.is_bool):
    raise _unknown(tensor.op)
  order = [axis, *(i for i in range(tensor.shape.rank) if i != axis)]
  rows = tf.transpose(tensor, order) if axis else tensor
  number = tf.cast(rows, tf.int32) if tensor.dtype.is_bool else rows
  # Slices are added up by putting them one after the other.
  gathered = all_reduce.constant_sum(tf.IndexedSlices(
      number, tf.range(tf.shape(number)[0])), groups).values
  gathered = tf.cast(gathered, tensor.dtype)
  gathered.set_shape([None, *rows.shape[1:]])
  return tf.transpose(gathered, [
      order.index(i) for i in range(len(order))]) if axis else gathered


def _times_shards(size: tf.Tensor,
                  groups: groups_lib.GroupAssignment) -> tf.Tensor:
  """Returns a static size of all shards, of which each has as many rows."""
  value = tf.get_static_value(size).copy()
  shards = groups_lib.group_size(
      groups, tf.distribute.get_replica_context().num_replicas_in_sync)
  if value.ndim:
    value[0] *= shards
  else:
    value = value * shards
  return tf.constant(value, size.dtype)


def _unknown(op: tf.Operation) -> UnknownValueError:
  return UnknownValueError(f'{op.type} ({op.name})')
