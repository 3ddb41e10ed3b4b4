# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clips the L2 norm of a tensor's slices, and of a variable's, to a bound.

  norm  = sqrt(sum{x**2 over axes})
  x    *= max_norm / norm     where norm > max_norm
  x                           elsewhere, bit for bit

Accuracy: a norm counts as beyond the bound when it exceeds it by more than four
units of rounding (4 eps), so that what was clipped once stays as it is; after
clipping no norm exceeds max_norm * (1 + 8 eps), with eps = 1.2e-7 for float32,
2.2e-16 for float64 and 9.8e-4 for float16. Squares neither overflow nor vanish:
the slices are divided by their largest element where they would. Slices with an
infinity or a NaN are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.ops import branching
from tfplugin.ops import row_scaling

tf1 = tf.compat.v1


class ClipResult(NamedTuple):
  """What a clip did to a variable.

  Attributes:
    operation: Done when the variable is clipped.
    num_clipped: `int64` scalar, the slices that were beyond the bound.
    num_slices: `int64` scalar, the slices that were looked at.
  """

  operation: tf.Operation
  num_clipped: tf.Tensor
  num_slices: tf.Tensor


def clip_by_norm(x: tf.Tensor, axes: Sequence[int],
                 max_norm: float) -> tf.Tensor:
  """Returns `x` with every slice along `axes` clipped to norm `max_norm`.

  Args:
    x: A floating-point tensor.
    axes: The dimensions that one slice extends over, not negative.
    max_norm: The bound, positive.

  Example:
    >>> rows = tf.constant([[6., 8.], [0.3, 0.4]])
    >>> clip_by_norm(rows, [1], 2.0).numpy().astype(float).round(3).tolist()
    [[1.2, 1.6], [0.3, 0.4]]
  """
  norms = _norms(x, axes, max_norm)
  exceeds = _exceeds(norms, max_norm, x.dtype)
  return tf.cond(tf.reduce_any(exceeds),
                 lambda: _shrink(x, norms, axes, max_norm),
                 lambda: tf.identity(x))


def clip_variable(variable: tf.Variable, axes: Sequence[int],
                  max_norm: float) -> ClipResult:
  """Clips all of `variable`, after the current control dependencies.

  One pass over the variable measures; it is written only if a slice is beyond
  the bound, and as a rule only there. Everything runs on the variable's device.
  """
  with _tf_internals.colocate_with(variable):
    x = variable.read_value()
    norms = _norms(x, axes, max_norm)
    exceeds = _exceeds(norms, max_norm, x.dtype)
    num_clipped = tf.math.count_nonzero(exceeds)

    def write():
      # The branches read for themselves: a value that is held on to would make
      # TensorFlow copy the variable before it writes rows.
      if not _scales_in_place(variable, axes):
        return _write_all(variable, norms, axes, max_norm)
      return tf.cond(
          tf.reduce_all(tf.math.is_finite(norms)),
          lambda: _scale_rows(variable, norms, exceeds, max_norm),
          lambda: _write_all(variable, norms, axes, max_norm))

    done = branching.cond(num_clipped > 0, write, lambda: tf.constant(True),
                          [variable])
    return ClipResult(tf.group(done), num_clipped,
                      tf.size(norms, out_type=tf.int64))


def _write_all(variable: tf.Variable, norms: tf.Tensor, axes: Sequence[int],
               max_norm: float) -> tf.Tensor:
  return _done(variable.assign(
      _shrink(variable.read_value(), norms, axes, max_norm)))


def _scales_in_place(variable: tf.Variable, axes: Sequence[int]) -> bool:
  """Whether rows can be multiplied where they are, without loss of accuracy."""
  return (0 not in axes and variable.dtype.size >= 4 and
          not _tf_internals.is_compiled())


def _scale_rows(variable: tf.Variable, norms: tf.Tensor, exceeds: tf.Tensor,
                max_norm: float) -> tf.Tensor:
  """Multiplies the rows that hold a slice beyond the bound."""
  positions = tf.where(_rows_beyond(exceeds))[:, 0]
  norms, exceeds = tf.gather(norms, positions), tf.gather(exceeds, positions)
  scales = tf.where(exceeds, tf.constant(max_norm, norms.dtype) / norms,
                    tf.ones_like(norms))
  done = row_scaling.scale_rows(variable, positions, scales)
  with tf.control_dependencies([done]):
    return tf.constant(True)


def clip_rows(variable: tf.Variable, ids: tf.Tensor, axes: Sequence[int],
              max_norm: float) -> ClipResult:
  """Clips the rows `ids` of `variable`, after the current dependencies.

  The cost depends on the number of ids, not on the variable's size. An id that
  occurs k times is measured k times and written the same value: the clip looks
  at the row as it is after the update, not at the gradient.

  Args:
    variable: Its dimension 0 counts the rows.
    ids: Integers of shape `[num_ids]`; repeats are allowed.
    axes: The dimensions that one slice extends over; 0 is not among them.
    max_norm: The bound, positive.
  """
  with _tf_internals.colocate_with(variable):
    rows = _gather(variable, ids)
    norms = _norms(rows, axes, max_norm)
    beyond = _exceeds(norms, max_norm, rows.dtype)
    done = _write_rows(variable, rows, norms, beyond, axes, max_norm, ids)
    return ClipResult(tf.group(done), tf.math.count_nonzero(beyond),
                      tf.size(norms, out_type=tf.int64))


def _write_rows(variable: tf.Variable, rows: tf.Tensor, norms: tf.Tensor,
                exceeds: tf.Tensor, axes: Sequence[int], max_norm: float,
                ids: tf.Tensor) -> tf.Tensor:
  """Clips and writes those of `rows` that hold a slice beyond the bound."""
  positions = tf.where(_rows_beyond(exceeds))[:, 0]
  clipped = _shrink(tf.gather(rows, positions), tf.gather(norms, positions),
                    axes, max_norm)
  return _done(tf1.scatter_update(variable, tf.gather(ids, positions), clipped))


def _rows_beyond(exceeds: tf.Tensor) -> tf.Tensor:
  """Returns `[num_rows]`: whether any slice of the row is beyond the bound."""
  other_axes = list(range(1, len(exceeds.shape)))
  return tf.reduce_any(exceeds, axis=other_axes) if other_axes else exceeds


def clip_jointly(parts: Sequence[tf.Variable], axes: Sequence[int],
                 max_norm: float) -> ClipResult:
  """Clips slices that extend over several variables.

  Args:
    parts: The parts of a variable that is partitioned along one of `axes`.
    axes: The dimensions that one slice extends over.
    max_norm: The bound on the norm of a slice across all parts.
  """
  values = [part.read_value() for part in parts]
  largest = tf.reduce_max(
      tf.stack([_largest(x, axes, part) for x, part in zip(values, parts)]), 0)
  largest = _safe_divisor(largest)
  unit_norms = []
  for x, part in zip(values, parts):
    with _tf_internals.colocate_with(part):
      unit_norms.append(_euclidean(_wide(x) / largest, axes))
  unit_norm = tf.math.reduce_euclidean_norm(tf.stack(unit_norms), axis=0)
  exceeds = tf.math.is_finite(unit_norm) & _exceeds(
      unit_norm * largest, max_norm, parts[0].dtype.base_dtype)
  num_clipped = tf.math.count_nonzero(exceeds)

  def write():
    return tf.stack([
        _done(part.assign(_rescale(x, largest, unit_norm, exceeds, max_norm)))
        for x, part in zip(values, parts)])

  done = branching.cond(num_clipped > 0, write,
                        lambda: tf.constant([True] * len(parts)), parts)
  return ClipResult(tf.group(done), num_clipped,
                    tf.size(unit_norm, out_type=tf.int64))


def _wide(x: tf.Tensor) -> tf.Tensor:
  """Returns `x` in a type whose sums of squares are accurate."""
  return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def _euclidean(x: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
  if _tf_internals.is_compiled():  # XLA lacks the op below, and fuses these.
    return tf.sqrt(tf.reduce_sum(tf.square(x), axis=list(axes), keepdims=True))
  # One fused pass; reduce_sum(square(x)) would write the squares to memory.
  return tf.math.reduce_euclidean_norm(x, axis=list(axes), keepdims=True)


def _norms(x: tf.Tensor, axes: Sequence[int], max_norm: float) -> tf.Tensor:
  """Returns the norms, dimensions kept; infinite where a square overflows."""
  x = _wide(x)
  if max_norm > np.sqrt(x.dtype.as_numpy_dtype(np.finfo(
      x.dtype.as_numpy_dtype).tiny)) * 1e4:
    return _euclidean(x, axes)
  # The bound is so small that the squares around it vanish.
  largest = _safe_divisor(
      tf.reduce_max(tf.abs(x), axis=list(axes), keepdims=True))
  return largest * _euclidean(x / largest, axes)


def _exceeds(norms: tf.Tensor, max_norm: float, dtype) -> tf.Tensor:
  eps = float(np.finfo(dtype.as_numpy_dtype).eps
              if dtype != tf.bfloat16 else 2.0**-7)
  bound = min(max_norm * (1.0 + 4.0 * eps), float(norms.dtype.max))
  return norms > tf.constant(bound, norms.dtype)


def _shrink(x: tf.Tensor, norms: tf.Tensor, axes: Sequence[int],
            max_norm: float) -> tf.Tensor:
  """Returns `x` clipped, given its norms."""

  def plain():
    bound = tf.constant(max_norm, norms.dtype)
    scale = tf.where(_exceeds(norms, max_norm, x.dtype), bound / norms,
                     tf.ones_like(norms))
    # Times 1 leaves every bit as it is.
    return tf.cast(_wide(x) * scale, x.dtype)

  def careful():
    largest = _safe_divisor(
        tf.reduce_max(tf.abs(_wide(x)), axis=list(axes), keepdims=True))
    unit_norm = _euclidean(_wide(x) / largest, axes)
    exceeds = tf.math.is_finite(unit_norm) & _exceeds(
        largest * unit_norm, max_norm, x.dtype)
    return _rescale(x, largest, unit_norm, exceeds, max_norm)

  return tf.cond(tf.reduce_all(tf.math.is_finite(norms)), plain, careful)


def _rescale(x, largest, unit_norm, exceeds, max_norm: float) -> tf.Tensor:
  """Clips where no product may overflow or vanish on the way."""
  clipped = (_wide(x) / largest) * (
      tf.constant(max_norm, unit_norm.dtype) / unit_norm)
  return tf.where(exceeds, tf.cast(clipped, x.dtype), x)


def _largest(x: tf.Tensor, axes: Sequence[int], part: tf.Variable) -> tf.Tensor:
  with _tf_internals.colocate_with(part):
    return tf.reduce_max(tf.abs(_wide(x)), axis=list(axes), keepdims=True)


def _safe_divisor(largest: tf.Tensor) -> tf.Tensor:
  usable = tf.math.is_finite(largest) & (largest > 0)
  return tf.where(usable, largest, tf.ones_like(largest))


def _gather(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Reads rows as they are now."""
  if branching.is_reference(variable):
    # A ref: `tf.gather` would take the alias that was read with the model.
    return tf.gather(variable.read_value(), ids)
  return tf.gather(variable, ids)


def _done(assignment) -> tf.Tensor:
  """A scalar that is there when `assignment` is; None in eager execution."""
  if tf.executing_eagerly():
    return tf.constant(True)
  with tf.control_dependencies([getattr(assignment, 'op', assignment)]):
    return tf.constant(True)
