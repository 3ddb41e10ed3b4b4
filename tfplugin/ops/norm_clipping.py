# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bound on the L2 norm of every slice of a tensor.

  norm  = sqrt(sum{x**2 over axes})
  x    *= max_norm / norm     where norm > max_norm
  x                           elsewhere, bit for bit

Accuracy: a norm counts as beyond the bound if it exceeds it by more than four
units of rounding (4 eps). A clipped slice is therefore not clipped again. After
clipping no norm exceeds max_norm * (1 + 8 eps), with eps = 1.2e-7 for float32,
2.2e-16 for float64 and 9.8e-4 for float16. Where squares would overflow or
vanish, the slices are divided by their largest element first. Slices with an
infinity or a NaN are left alone.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Sequence
from typing import Union

import numpy as np
import tensorflow as tf

# A number, or a scalar that may change from step to step.
Bound = Union[float, tf.Tensor]


def check_max_norm(max_norm: Bound) -> Bound:
  """Returns the bound as a float; a tensor that is no constant as it is.

  Raises unless it is a positive, finite number or a scalar tensor.
  """
  if tf.is_tensor(max_norm) and max_norm.shape.rank == 0 and (
      max_norm.dtype.is_floating or max_norm.dtype.is_integer):
    value = tf.get_static_value(max_norm)
    if value is None:
      return max_norm
    max_norm = value.item()
  if isinstance(max_norm, bool) or not isinstance(max_norm, numbers.Real):
    raise TypeError('`max_norm` must be a number. '
                    f'Received: {max_norm!r}. Pass e.g. 1.0.')
  if not (math.isfinite(max_norm) and max_norm > 0):
    raise ValueError('`max_norm` must be finite and greater than 0. '
                     f'Received: {max_norm!r}. Pass e.g. 1.0.')
  return float(max_norm)


@dataclasses.dataclass(frozen=True)
class NormBound:
  """Bound on the norms of slices along some axes, given as not negative.

  Norms have the shape of the tensor, with a 1 for each of the axes. They are
  `float32` where its type has less than four bytes. `fused` measures with
  TensorFlow's fused op, in one pass; XLA lacks it, and fuses by itself.

  Example:
    >>> bound = NormBound([1], 2.0)
    >>> x = tf.constant([[6., 8.], [0.3, 0.4]])
    >>> bound.shrink(x, bound.norms(x)).numpy().astype(float).round(3).tolist()
    [[1.2, 1.6], [0.3, 0.4]]
  """

  axes: Sequence[int]
  max_norm: Bound
  fused: bool = True

  def norms(self, x: tf.Tensor) -> tf.Tensor:
    """Returns the norms of the slices; infinite where a square overflows."""
    x = _wide(x)
    tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
    if isinstance(self.max_norm, float) and (
        self.max_norm > np.sqrt(x.dtype.as_numpy_dtype(tiny)) * 1e4):
      return self._euclidean(x)
    # The bound is, or may be, so small that the squares around it vanish.
    largest = safe_divisor(self.largest(x))
    return largest * self._euclidean(x / largest)

  def largest(self, x: tf.Tensor) -> tf.Tensor:
    """Returns the largest magnitude in each slice."""
    return tf.reduce_max(tf.abs(_wide(x)), axis=list(self.axes), keepdims=True)

  def unit_norms(self, x: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """Returns the norms of the slices of `x / divisor`."""
    return self._euclidean(_wide(x) / divisor)

  def exceeds(self, norms: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns where norms of a tensor of type `dtype` are beyond the bound."""
    eps = float(np.finfo(dtype.as_numpy_dtype).eps
                if dtype != tf.bfloat16 else 2.0**-7)
    if not isinstance(self.max_norm, float):
      return norms > self._bound(norms.dtype) * (1.0 + 4.0 * eps)
    limit = min(self.max_norm * (1.0 + 4.0 * eps), float(norms.dtype.max))
    return norms > tf.constant(limit, norms.dtype)

  def scales(self, norms: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the factors `max_norm / norm` where beyond the bound, else 1."""
    return tf.where(self.exceeds(norms, dtype),
                    self._bound(norms.dtype) / norms,
                    tf.ones_like(norms))

  def shrink(self, x: tf.Tensor, norms: tf.Tensor) -> tf.Tensor:
    """Returns `x` clipped, given its `norms()`."""

    def plain():
      # Times 1 leaves every bit as it is.
      return tf.cast(_wide(x) * self.scales(norms, x.dtype), x.dtype)

    return tf.cond(tf.reduce_all(tf.math.is_finite(norms)), plain,
                   lambda: self.shrink_wide(x))

  def shrink_wide(self, x: tf.Tensor) -> tf.Tensor:
    """Returns `x` clipped, where squares may overflow: in several passes."""
    largest = safe_divisor(self.largest(x))
    return self.rescale(x, largest, self.unit_norms(x, largest))

  def rescale(self, x: tf.Tensor, divisor: tf.Tensor,
              unit_norms: tf.Tensor) -> tf.Tensor:
    """Returns `x` clipped, without a product that may overflow or vanish.

    `divisor` is `safe_divisor` of the largest magnitudes in the slices;
    `unit_norms` are the norms of the slices after division by it.
    """
    clipped = (_wide(x) / divisor) * (
        self._bound(unit_norms.dtype) / unit_norms)
    return tf.where(self.exceeds_scaled(divisor, unit_norms, x.dtype),
                    tf.cast(clipped, x.dtype), x)

  def exceeds_scaled(self, divisor: tf.Tensor, unit_norms: tf.Tensor,
                     dtype: tf.DType) -> tf.Tensor:
    """Returns where `divisor * unit_norms` is finite and beyond the bound."""
    return tf.math.is_finite(unit_norms) & self.exceeds(
        divisor * unit_norms, dtype)

  def _bound(self, dtype: tf.DType) -> tf.Tensor:
    if isinstance(self.max_norm, float):
      return tf.constant(self.max_norm, dtype)
    return tf.cast(self.max_norm, dtype)

  def _euclidean(self, x: tf.Tensor) -> tf.Tensor:
    axes = list(self.axes)
    if self.fused:  # reduce_sum(square(x)) would write the squares to memory.
      return tf.math.reduce_euclidean_norm(x, axis=axes, keepdims=True)
    return tf.sqrt(tf.reduce_sum(tf.square(x), axis=axes, keepdims=True))


def safe_divisor(largest: tf.Tensor) -> tf.Tensor:
  """Returns `largest`, and 1 where it is 0 or not finite."""
  usable = tf.math.is_finite(largest) & (largest > 0)
  return tf.where(usable, largest, tf.ones_like(largest))


def _wide(x: tf.Tensor) -> tf.Tensor:
  """Returns `x` in a type whose sums of squares are accurate."""
  return tf.cast(x, tf.float32) if x.dtype.size < 4 else x
