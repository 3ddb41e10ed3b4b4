# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The weighted sum of the values of several devices, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

Weight = Union[float, tf.Tensor]
Value = Union[tf.Tensor, tf.IndexedSlices]


def weighted_sum(values: Sequence[Value], weights: Sequence[Weight]) -> Value:
  """Returns `sum_i weights[i] * values[i]`.

  A value whose weight is 0 counts as 0 even where it is NaN or infinite: the
  mean over no rows is NaN, and no rows is what a weight of 0 stands for.

  Args:
    values: Tensors of one shape and dtype, or `tf.IndexedSlices` of one dense
      shape. Where all are sparse the result is sparse: rows are concatenated,
      never added up.
    weights: For each value a number or a scalar float tensor.

  Returns:
    A tensor or `tf.IndexedSlices` of the same dtype.
  """
  if all(isinstance(value, tf.IndexedSlices) for value in values):
    return tf.IndexedSlices(
        tf.concat([_scale(value.values, weight)
                   for value, weight in zip(values, weights)], axis=0),
        tf.concat([value.indices for value in values], axis=0),
        values[0].dense_shape)
  tensors = [tf.convert_to_tensor(value) for value in values]
  if _are_one_number(weights):
    # One pass over the sum is cheaper than one over each value.
    return _scale(tf.add_n(tensors), weights[0])
  return tf.add_n([_scale(t, weight) for t, weight in zip(tensors, weights)])


def _are_one_number(weights: Sequence[Weight]) -> bool:
  return all(isinstance(weight, float) for weight in weights) and (
      len(set(weights)) == 1 and weights[0] != 0.0)


def _scale(tensor: tf.Tensor, weight: Weight) -> tf.Tensor:
  """Returns `weight * tensor`; 0 where the weight is 0."""
  if isinstance(weight, float):
    if weight == 1.0:
      return tensor
    if not weight:
      return tf.zeros_like(tensor)
  if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
    scaled = tf.cast(tensor, tf.float64) * tf.cast(weight, tf.float64)
    return tf.cast(scaled, tensor.dtype)
  if isinstance(weight, float):
    return tensor * tf.constant(weight, tensor.dtype)
  return tf.math.multiply_no_nan(tensor, tf.cast(weight, tensor.dtype))
