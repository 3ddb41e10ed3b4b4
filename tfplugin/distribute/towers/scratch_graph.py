# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graph that is never run, in which TensorFlow infers the shapes of tensors."""

from __future__ import annotations

from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1

_MOST_ELEMENTS = 1000  # Of a constant whose value may matter for a shape.
_MOST_OPS = 20  # From a constant to a shape.
_MOST_SIZES = 8  # Of a tensor that may choose between sizes.
_OFFSET = 2 ** 40  # A size must not be negative; a difference of sizes may be.


class ScratchGraph:
  """Graph with copies of a model's ops, in other sizes."""

  def __init__(self):
    """Starts empty."""
    self._graph = tf.Graph()

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

  def _computed(self, tensor: tf.Tensor, depth: int) -> Optional[tf.Tensor]:
    """Returns `tensor` computed again, if it is a size and no variable.

    Shape inference knows values that `tf.get_static_value` does not know.
    """
    op = tensor.op
    if not tensor.dtype.is_integer or not op.inputs or depth > _MOST_OPS or (
        op.op_def.is_stateful or not _tf_internals.can_be_copied(op)):
      return None
    made = self.copy(op, [self.stand_in(t, True, depth) for t in op.inputs])
    return None if made is None else made.outputs[tensor.value_index]

  def value_of_shape(self, sizes: tf.Tensor) -> Optional[list[int]]:
    """Returns the value of `sizes`, a shape, or None if it is not known."""
    try:
      with self._graph.as_default():
        shape = tf.fill(sizes, 0).shape
    except ValueError:
      return None
    return shape.as_list() if shape.is_fully_defined() else None

  def values(self, sizes: tf.Tensor) -> Optional[list[int]]:
    """Returns the values of a few sizes; None if they are not known."""
    count, dtype = sizes.shape.num_elements(), sizes.dtype
    if count is None or count > _MOST_SIZES or not (
        dtype.is_integer or dtype.is_bool or dtype.is_floating):
      return None
    with self._graph.as_default(), tf.control_dependencies(None):
      flat = tf.reshape(tf.cast(sizes, tf.int64) + _OFFSET, [-1])
      found = [tf.fill(flat[i:i + 1], 0).shape[0] for i in range(count)]
    return None if None in found else found

  def copy(self, op: tf.Operation, inputs) -> Optional[tf.Operation]:
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
