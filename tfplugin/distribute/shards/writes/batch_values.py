# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch values, which a shard computes from the rows of all shards.

A shard has some rows of a batch, and a number computed from them belongs to the
shard alone. The row-wise tensors nearest to the number (`row_analysis.py`) are
gathered from all shards, and the ops behind them are repeated with all rows. So
any number is as on one device, and the same in all shards.
"""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Union

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards.building import op_record
from tfplugin.distribute.towers import row_analysis
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_PART, _SLICE = row_analysis.PART, row_analysis.SLICE

# Returns the rows of all shards, from a shard's tensor and its row dimension.
Gather = Callable[[tf.Tensor, int], tf.Tensor]
Value = Union[tf.Tensor, tf.IndexedSlices]


_OPEN = (
    'The op does not fit the rows of all shards. If it was made for a static '
    'number of rows, leave that open: batch without `drop_remainder=True`.')


class UnknownValueError(ValueError):
  """Error about a number of a shard whose batch value is not known.

  Attributes:
    remedy: A remedy, or ''.
  """

  def __init__(self, message: str, remedy: str = ''):
    """Stores the `remedy`, and makes an error with the `message`."""
    super().__init__(message)
    self.remedy = remedy


class BatchValues:
  """Values of one shard that depend on its rows, and their batch values.

  Attributes:
    num_rows: The rows of the shard, where they are static; otherwise None.
    counts: Static numbers of the shard that a program may count by: its rows,
      and the elements in the first dimensions of its tensors.
  """

  def __init__(self, record: op_record.OpRecord, batch: Sequence[Any],
               shard: int):
    """Starts before anything is built.

    `batch` has the nest of tensors of each shard; a tensor that two shards
    share belongs to all. `record` has the ops of each shard.
    """
    leaves = [leaf for leaf, other in zip(
        *(tf.nest.flatten(batch[i]) for i in (shard, shard - 1)))
              if tf.is_tensor(leaf) and (
                  leaf is not other or len(batch) == 1)]
    self._record, self._graph, self._shard = record, record.graph, shard
    self._dense = [leaf for leaf in leaves if isinstance(leaf, tf.Tensor) and
                   leaf.shape.rank]
    self._composites = [leaf for leaf in leaves
                        if not isinstance(leaf, tf.Tensor)]
    self._leaves = {t.ref() for t in tf.nest.flatten(
        leaves, expand_composites=True)}
    sizes = [tf.compat.dimension_value(leaf.shape[0]) for leaf in self._dense]
    self.num_rows = next((size for size in sizes if size is not None), None)
    self.counts = {count for leaf in self._dense for count in _products(
        leaf.shape.as_list())} if (self.num_rows or 0) > 1 else set()
    self._with, self._without = set(self._leaves), set()
    self._analysis, self._added, self._pure = None, set(), set()

  def is_of_rows(self, value: Any) -> bool:
    """Returns whether a `value` of the shard depends on its rows."""
    return any(self._reaches(t) for t in tf.nest.flatten(
        value, expand_composites=True) if tf.is_symbolic_tensor(t))

  def of_all(self, value: Value, gather: Gather) -> Value:
    """Returns the batch value of `value`, which depends on the shard's rows.

    `gather` is called in the same order in each shard. An UnknownValueError is
    raised if the batch value is not known.
    """
    if isinstance(value, tf.IndexedSlices):
      values, indices = (self.of_all(each, gather)
                         for each in (value.values, value.indices))
      return tf.IndexedSlices(values, indices, value.dense_shape)
    order = {op: i for i, op in enumerate(self._graph.get_operations())}
    if value.graph is not self._graph:
      raise _unknown(value.op)
    self._analyse(value, order)
    whole, ops = self._gathered(value, gather)
    self.warn_of_counts(
        [t for t in whole.values() if t.ref() in whole], ops)
    for op in _behind_inputs(sorted(ops, key=order.get)):
      with tf.control_dependencies(self._order_of_copy(op, whole)):
        whole.update(zip((t.ref() for t in op.outputs),
                         self._copies(op, whole)))
    return whole[value.ref()]

  def _copies(self, op: tf.Operation, whole: dict) -> Sequence[tf.Tensor]:
    """Returns the outputs of `op` for all rows, from its inputs for them."""
    try:
      return _tf_internals.copy_op(
          self._graph, op, [whole[t.ref()] for t in op.inputs],
          'of_batch').outputs
    except ValueError as error:
      raise _unknown(op, _OPEN) from error

  def _order_of_copy(self, op: tf.Operation, whole: dict) -> list:
    """Returns the ops that a copy of `op` in a branch of v1 waits for."""
    start = _tf_internals.start_of_branch(op)
    if start is None or op.inputs and not _tf_internals.reads_only(op):
      return []
    # A read of a variable stays behind the writes that it follows.
    return [whole[start.ref()], *(
        other for other in op.control_inputs
        if not _tf_internals.is_part_of_branch(other))]

  def warn_of_counts(self, value: Any,
                     ops: Iterable[tf.Operation] = ()) -> None:
    """Warns of a constant that may count the rows of a shard.

    It may be behind the tensors of `value`, or an input of `ops`. Behind a sum
    over the shards it counts the rows that the shard adds.
    """
    if self._shard or not self.num_rows:
      return
    ops = {*ops, *graph_order.upstream([
        t.op for t in tf.nest.flatten(value, expand_composites=True)
        if tf.is_symbolic_tensor(t)], of_values=True, stop=_is_declared)}
    ops = {op for op in ops if not _is_declared(op)}
    for op in itertools.chain(ops, *map(_tf_internals.ops_of_bodies, ops)):
      for tensor in op.inputs:
        value = None if tensor.op.inputs else tf.get_static_value(tensor)
        if value is not None and self._may_count(value, tensor, op) and not (
            _may_be_axes(value, op)):
          tf1.logging.warning(
              '%s reads the constant %s, and a shard has %d row%s. The op is '
              'computed again for the rows of all shards, and the constant '
              'stays. If it counts rows, use `tf.shape(x)[0]` or '
              '`tf.ones_like(x)` in its place.',
              op.name, np.array2string(value, threshold=8),
              self.num_rows, 's' * (self.num_rows > 1))

  def _may_count(self, value: Any, tensor: tf.Tensor,
                 op: tf.Operation) -> bool:
    """Returns whether a constant is one of `counts`, or has as many rows.

    It is the `value` of `tensor`, an input of `op`. The number 1 has many uses;
    only a division by it must be a division by a count.
    """
    if self.num_rows == 1:
      return np.size(value) == 1 and np.all(value == 1) and (
          _tf_internals.divides_by(op, tensor))
    if np.ndim(value) and (np.ndim(value) > 1 or value.dtype.kind not in 'iu'):
      return self.num_rows in value.shape
    return value.dtype.kind in 'fiu' and any(
        np.isclose(value, number, rtol=1e-6).any()
        for count in self.counts for number in (count, 1 / count))

  def _is_own(self, op: tf.Operation) -> bool:
    """Returns whether an op of the graph is made for this shard alone."""
    # A function captures tensors while a shard is built.
    is_captured = op.graph.building_function and not op.inputs and (
        _tf_internals.gives_rows(op))
    return self._record.is_own(self._shard, op) and not (
        is_captured or _is_declared(op))

  def _reaches(self, tensor: tf.Tensor) -> bool:
    pending, seen = [tensor], set()
    while pending:
      last = pending.pop()
      if last.ref() in seen or last.ref() in self._without:
        continue
      if last.ref() in self._with:
        self._with.add(tensor.ref())
        return True
      seen.add(last.ref())
      if same_values.is_declared(last) or (
          last.graph is self._graph and not self._is_own(last.op)):
        continue
      # A fed value is the same for all shards.
      if _tf_internals.gives_rows(last.op) and last.op.inputs:
        return True
      pending += _tf_internals.sources_of(last)
    self._without |= seen
    return False

  def _analyse(self, value: tf.Tensor, order: dict) -> None:
    """Finds the row-wise ops behind `value`."""
    if self._analysis is None:
      self._analysis = row_analysis.RowAnalysis(
          self._dense, self.num_rows, True, self._composites)
    pending, found = [value.op], set()
    while pending:
      op = pending.pop()
      if op not in found and op not in self._added and any(
          t.ref() not in self._leaves and self._reaches(t)
          for t in op.outputs):
        found.add(op)
        pending += [t.op for t in op.inputs]
    self._added |= found
    for op in sorted(found, key=order.get):
      self._analysis.add(op)
      if self._is_pure_op(op):
        self._pure.add(op)

  def _gathered(self, value: tf.Tensor,
                gather: Gather) -> tuple[dict, set[tf.Operation]]:
    """Returns the ops behind `value`, after their inputs of all shards."""
    whole, ops, pending = {}, set(), [value]
    while pending:
      tensor = pending.pop()
      if tensor.ref() in whole or tensor.op in ops:
        continue
      start = _tf_internals.start_of_branch(tensor.op)
      if not self._reaches(tensor):
        whole[tensor.ref()] = tensor
      elif self._is_pure(tensor):
        whole[tensor.ref()] = gather(
            tensor, self._analysis.rows[tensor.ref()].axis)
      elif tensor.ref() in self._leaves or not self._can_be_copied(tensor.op):
        raise _unknown(tensor.op)
      else:
        ops.add(tensor.op)
        pending += [*tensor.op.inputs, *([] if start is None else [start])]
    return whole, ops

  def _can_be_copied(self, op: tf.Operation) -> bool:
    if _tf_internals.can_be_called_again(op):
      return True
    if _tf_internals.is_part_of_branch(op):
      return not op.op_def.is_stateful or _tf_internals.reads_only(op)
    return _tf_internals.can_be_copied(op) and not op.op_def.is_stateful

  def _is_pure(self, tensor: tf.Tensor) -> bool:
    """Returns whether each row of `tensor` depends on the same row alone."""
    if tensor.ref() not in self._analysis.rows:
      return False
    return tensor.ref() in self._leaves or tensor.op in self._pure

  def _is_pure_op(self, op: tf.Operation) -> bool:
    """Returns the same for the outputs of `op`, after the ops behind it."""
    plan = self._analysis.plans.get(op)
    return plan is not None and not any(
        mode == _SLICE or (
            t.ref() not in self._leaves and t.op not in self._pure
            if mode == _PART else self._reaches(t))
        for t, mode in zip(plan.inputs, plan.modes))


def _behind_inputs(ops: Sequence[tf.Operation]) -> Iterable[tf.Operation]:
  """Returns `ops`, each behind its inputs and the start of its branch.

  An op in a branch of control flow v1 is older than its `Switch`.
  """
  known, order = set(ops), graphlib.TopologicalSorter()
  for op in ops:
    start = _tf_internals.start_of_branch(op)
    order.add(op, *(t.op for t in (*op.inputs, *([] if start is None else [
        start])) if t.op in known))
  return order.static_order()


def _is_declared(op: tf.Operation) -> bool:
  """Returns whether the outputs of `op` are the same in all replicas."""
  return any(map(same_values.is_declared, op.outputs))


def _products(sizes: Sequence[int | None]) -> Iterable[int]:
  """Returns the products of the first sizes, as far as they are known."""
  known = itertools.takewhile(lambda size: size is not None, sizes)
  return itertools.accumulate(known, lambda count, size: count * size)


def _may_be_axes(value: Any, op: tf.Operation) -> bool:
  return value.dtype.kind == 'i' and all(
      t.shape.rank is None or np.max(value, initial=0) < t.shape.rank
      for t in list(op.inputs)[:1])


def _unknown(op: tf.Operation, remedy: str = '') -> UnknownValueError:
  return UnknownValueError(f'{op.type} ({op.name})', remedy)


def rows_of(record: op_record.OpRecord, batch: Sequence[Any],
            group: Sequence[int]) -> Gather:
  """Returns a function that gathers the rows of a group for the first shard."""
  leaves = [tf.nest.flatten(values) for values in batch]

  def gather(tensor: tf.Tensor, axis: int) -> tf.Tensor:
    index = next((i for i, leaf in enumerate(leaves[0]) if leaf is tensor), -1)
    try:
      twins = record.twins(tensor) if index < 0 else [
          own[index] for own in leaves]
    except RuntimeError as error:
      raise UnknownValueError(f'{tensor.name} in shards that differ') from error
    with tf.control_dependencies(None):
      return tf.concat([twins[shard] for shard in group], axis)

  return gather


def gathered(tensor: tf.Tensor, axis: int) -> tf.Tensor:
  """Returns the rows of all replicas of the group, concatenated."""
  if not tensor.dtype.is_floating and not tensor.dtype.is_integer and (
      not tensor.dtype.is_bool):
    raise UnknownValueError(f'rows of {tensor.dtype.name}')
  # The rank may be unknown, for axis 0.
  order = [axis, *(i for i in range(tensor.shape.rank or 0) if i != axis)]
  rows = tf.transpose(tensor, order) if axis else tensor
  number = tf.cast(rows, tf.int32) if tensor.dtype.is_bool else rows
  # A sum of IndexedSlices concatenates their rows.
  whole = tf.cast(all_reduce.sum_of_group(tf.IndexedSlices(
      number, tf.range(tf.shape(number)[0]))).values, tensor.dtype)
  whole.set_shape(tf.TensorShape([None]).concatenate(rows.shape[1:]))
  return tf.transpose(whole, [
      order.index(i) for i in range(len(order))]) if axis else whole
