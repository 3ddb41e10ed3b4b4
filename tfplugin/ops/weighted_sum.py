# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights of the parts of a batch by their rows, and the weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

Weight = Union[float, tf.Tensor]
Value = Union[tf.Tensor, tf.IndexedSlices]


def row_shares(rows: Sequence[Union[int, tf.Tensor]]) -> list[Weight]:
  """Returns `rows[i] / sum{j} rows[j]`; the shares sum to 1.

  A batch without any row belongs to the first part. The shares are floats where
  all `rows` are ints, else scalar float64 tensors.
  """
  if all(isinstance(count, int) for count in rows):
    total = sum(rows)
    return ([count / total for count in rows] if total
            else [1.0] + [0.0] * (len(rows) - 1))
  counts = [tf.cast(count, tf.float64) for count in rows]
  total = tf.add_n(counts)
  counts[0] = tf.where(total > 0, counts[0], tf.ones_like(total))
  return [count / tf.maximum(total, 1.0) for count in counts]


def weighted_sum(values: Sequence[Value], weights: Sequence[Weight]) -> Value:
  """Returns `sum_i weights[i] * values[i]`.

  A value with weight 0 counts as 0 even where it is NaN or infinite. Weight 0
  stands for no rows, and the mean over no rows is NaN. Where all values are
  sparse, so is the result: rows are concatenated, never added up.
  """
  if all(isinstance(value, tf.IndexedSlices) for value in values):
    return tf.IndexedSlices(
        tf.concat([_scale(value.values, weight)
                   for value, weight in zip(values, weights)], axis=0),
        tf.concat([value.indices for value in values], axis=0),
        values[0].dense_shape)
  tensors = [tf.convert_to_tensor(value) for value in values]
  if all(isinstance(weight, float) for weight in weights) and (
      len(set(weights)) == 1):
    # One pass over the sum is cheaper than one over each value.
    return _scale(tf.add_n(tensors), weights[0])
  return tf.add_n([_scale(t, weight) for t, weight in zip(tensors, weights)])


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
