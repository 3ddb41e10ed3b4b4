# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graph that is never run, in which TensorFlow infers the shapes of tensors.

It has a model for a whole batch, and for a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1

# Primes, so that no other size of a model is a multiple of them.
WHOLE_ROWS, _PART_ROWS, _OTHER_PART_ROWS = 20011, 10007, 10009
# Of the dimensions behind the rows: two of a tensor are not taken for equal.
_UNKNOWN = (23, 29, 31, 37, 41, 43, 47)
_MOST_ELEMENTS = 1000  # Of a constant whose value may matter for a shape.
_MOST_OPS = 20  # From a constant to a shape.
_MOST_SIZES = 8  # Of a tensor that may choose between sizes.
_OFFSET = 2 ** 40  # A size must not be negative; a difference of sizes may be.


class ScratchGraph:
  """Graph with copies of a model's ops, in other sizes.

  Attributes:
    depends: The references of the model's tensors that depend on the batch.
    whole: By `tensor.ref()` of the model, the tensors for the whole batch.
  """

  def __init__(self):
    """Starts empty."""
    self._graph = tf.Graph()
    self.depends, self.whole = set(), {}

  def whole_of(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` of the model for the whole batch."""
    if tensor.ref() not in self.whole:
      self.whole[tensor.ref()] = self.stand_in(
          tensor, tensor.ref() not in self.depends)
    return self.whole[tensor.ref()]

  def placeholder(self, dtype, shape) -> tf.Tensor:
    """Returns a tensor of this type and shape."""
    with self._graph.as_default(), tf.control_dependencies(None):
      return tf1.placeholder(dtype.base_dtype, shape)

  def constant(self, value: Any, dtype: tf.DType) -> tf.Tensor:
    """Returns a constant."""
    with self._graph.as_default(), tf.control_dependencies(None):
      return tf.constant(value, dtype)

  def stand_in(self, tensor: tf.Tensor, has_value: bool,
               depth: int = 0) -> tf.Tensor:
    """Returns a tensor like `tensor`: with its value only if `has_value`."""
    if tensor.dtype == tf.resource:
      made = None if tensor.op.inputs else self.copy(tensor.op, ())
      if made is not None:
        return made.outputs[tensor.value_index]
    elif tensor.shape.is_fully_defined() and (
        tensor.shape.num_elements() <= _MOST_ELEMENTS) and (
            has_value):
      value = tf.get_static_value(tensor)
      if value is not None:
        return self.constant(value, tensor.dtype)
      made = self._computed(tensor, depth + 1)
      if made is not None:
        return made
    return self.placeholder(tensor.dtype, tensor.shape)

  def _computed(self, tensor: tf.Tensor, depth: int) -> tf.Tensor | None:
    """Returns `tensor` computed again, if it is a size and no variable.

    Shape inference knows values that `tf.get_static_value` does not know.
    """
    op = tensor.op
    if not tensor.dtype.is_integer or not op.inputs or depth > _MOST_OPS or (
        op.op_def.is_stateful or not _tf_internals.can_be_copied(op)):
      return None
    made = self.copy(op, [self.stand_in(t, True, depth) for t in op.inputs])
    return None if made is None else made.outputs[tensor.value_index]

  def value_of_shape(self, sizes: tf.Tensor) -> list[int] | None:
    """Returns the value of `sizes`, a shape, or None if it is not known."""
    try:
      with self._graph.as_default():
        shape = tf.fill(sizes, 0).shape
    except ValueError:
      return None
    return shape.as_list() if shape.is_fully_defined() else None

  def values(self, sizes: tf.Tensor) -> list[int] | None:
    """Returns the values of a few sizes; None if they are not known."""
    count, dtype = sizes.shape.num_elements(), sizes.dtype
    if count is None or count > _MOST_SIZES or not (
        dtype.is_integer or dtype.is_bool or dtype.is_floating):
      return None
    with self._graph.as_default(), tf.control_dependencies(None):
      flat = tf.reshape(tf.cast(sizes, tf.int64) + _OFFSET, [-1])
      found = [tf.compat.dimension_value(tf.fill(flat[i:i + 1], 0).shape[0])
               for i in range(count)]
    return None if None in found else [size - _OFFSET for size in found]

  def copy(self, op: tf.Operation, inputs) -> tf.Operation | None:
    """Returns `op` with other inputs; None if they do not fit."""
    try:
      with self._graph.as_default(), tf1.device(None):
        return _tf_internals.copy_op(self._graph, op, list(inputs), 'copy')
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):
      return None

  def is_known_shape(self, sizes: tf.Tensor) -> bool:
    """Returns whether `sizes` are known, except for a -1 that is given.

    For a `Reshape` to an unknown size, TensorFlow infers the shape as for a -1.
    """
    if tf.get_static_value(sizes) is not None:
      return True
    try:
      with self._graph.as_default():
        shape = tf.fill(sizes, 0).shape
    except ValueError:
      return True  # It is a -1 that cannot be filled.
    values = tf.get_static_value(sizes, partial=True)
    inferred = 0 if values is None else sum(value == -1 for value in values)
    return shape.rank is not None and (
        shape.as_list().count(None) == inferred)


class SmallerBatch:
  """Model that is built again, as far as needed, for a batch of fewer rows.

  A size alone does not tell whether it counts rows: a constant may be as large.
  A size that counts rows is another one in a smaller batch.
  """

  def __init__(self, scratch: ScratchGraph):
    """Starts empty."""
    self._scratch = scratch
    self._made, self._inputs = {}, {}

  def put(self, tensor: tf.Tensor, made: tf.Tensor) -> None:
    """Notes that `made` stands for `tensor`."""
    self._made[tensor.ref()] = made

  def note(self, op: tf.Operation, inputs: Sequence[tf.Tensor]) -> None:
    """Notes an op that depends on the batch, and its inputs in the model."""
    self._inputs[op] = inputs

  def of(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` for the smaller batch."""
    pending = [tensor]
    while pending:
      last = pending[-1]
      inputs = self._inputs.get(last.op)
      missing = [t for t in inputs or () if t.ref() not in self._made]
      if last.ref() not in self._made and missing:
        pending += missing
        continue
      pending.pop()
      if last.ref() not in self._made:
        self._make(last, inputs)
    return self._made[tensor.ref()]

  def _make(self, tensor: tf.Tensor, inputs: Sequence[tf.Tensor]) -> None:
    if inputs is None:
      self.put(tensor, self._scratch.whole_of(tensor))
      return
    made = self._scratch.copy(
        tensor.op, [self._made[t.ref()] for t in inputs])
    for index, output in enumerate(tensor.op.outputs):
      self.put(output, made.outputs[index] if made else
               self._scratch.placeholder(output.dtype, None))

  def has_first_size(self, tensor: tf.Tensor, size: int) -> bool:
    """Returns whether the first dimension of `tensor` is `size` here."""
    shape = self.of(tensor).shape
    return bool(shape.rank) and shape[0] == size

  def is_chosen(self, op: tf.Operation, inputs: Sequence[tf.Tensor],
                whole: tf.Operation) -> bool:
    """Returns whether the size of the batch chooses the size that `op` makes.

    Then no two sizes of a batch show all values. `whole` is `op` for the whole
    batch.
    """
    return _tf_internals.is_choice(op) and (
        self._scratch.values(whole.outputs[0]) is not None) and any(
            self._scratch.values(own) != self._scratch.values(self.of(t))
            for own, t in zip(whole.inputs, inputs))

  def cuts_rows(self, op: tf.Operation, inputs: Sequence[tf.Tensor],
                rows: Mapping[int, _tf_internals.Rows]) -> bool:
    """Returns whether `op` cuts the rows of a batch that is larger than both.

    A bound of a slice that is the same in both sizes is not a size of the
    batch. `rows` are the places of rows in `inputs`.
    """
    for index, i in _tf_internals.bounds_of_rows(op, rows.get(0)):
      values = [self._scratch.values(t) for t in (
          self._scratch.whole_of(inputs[index]), self.of(inputs[index]))]
      if None in values or values[0][i] == values[1][i] != 0:
        return True
    return False


def part_rows(num_rows: int) -> int:
  """Returns the number of rows of a part, which the whole batch never has."""
  return _OTHER_PART_ROWS if num_rows == _PART_ROWS else _PART_ROWS


def behind_rows(sizes: Sequence[int | None]) -> list[int]:
  """Returns the sizes of a tensor behind its rows, each one known."""
  return [_UNKNOWN[i % len(_UNKNOWN)] if size is None else size
          for i, size in enumerate(sizes[1:])]


def has_unknown_sizes(leaves: Sequence[Any]) -> bool:
  """Returns whether a tensor of a batch has an unknown size behind its rows."""
  return any(leaf.shape.rank is not None and None in leaf.shape.as_list()[1:]
             for leaf in leaves)


def rows_between(whole: Any, part: Any, num_rows: int,
                 ) -> _tf_internals.Rows | None:
  """Returns the place of the rows in two shapes of a tensor, or None."""
  if whole.rank is None or whole.rank != part.rank:
    return None
  whole, part = whole.as_list(), part.as_list()
  axes = [i for i, sizes in enumerate(zip(whole, part)) if len(set(sizes)) > 1]
  if len(axes) != 1 or None in (whole[axes[0]], part[axes[0]]):
    return None
  axis = axes[0]
  factor, rest = divmod(part[axis], part_rows(num_rows))
  if rest or not factor or whole[axis] != factor * num_rows:
    return None
  return place_of(whole, axis, factor)


def place_of(sizes: Sequence[int | None], axis: int,
             factor: int) -> _tf_internals.Rows:
  """Returns the place of rows that have `factor` entries of a dimension."""
  return _tf_internals.Rows(
      axis, factor, len(sizes), _product(sizes[:axis]),
      _product([factor, *sizes[axis + 1:]]))


def _product(sizes: Sequence[int | None]) -> int | None:
  return None if None in sizes else math.prod(sizes)
