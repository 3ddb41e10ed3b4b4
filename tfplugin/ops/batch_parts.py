# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of a batch: number and padding of rows, weights, weighted sum."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Union

import tensorflow as tf

Weight = Union[float, tf.Tensor]
Rows = Union[int, tf.Tensor]
Value = Union[tf.Tensor, tf.IndexedSlices]

# The first row of each part, and its number of rows; assertions about the batch
# that precede slices.
Bounds = tuple[Sequence[Rows], Sequence[Rows], Sequence[tf.Operation]]

COMPOSITES = (tf.SparseTensor, tf.RaggedTensor)


@dataclasses.dataclass(frozen=True)
class DividedBatch:
  """A batch, and its division into parts.

  Attributes:
    values: The nest of its tensors.
    dense: The dense tensors of `values` that have rows.
    composites: The sparse and ragged tensors of `values`.
    num_rows: The number of rows, or None where it is not static.
    divide: Returns the bounds of the parts. It may make ops.
    parts: For each of `dense` the tensor of each part; () for slices.
  """

  values: Any
  dense: Sequence[tf.Tensor]
  composites: Sequence[Any]
  num_rows: int | None
  divide: Callable[[], Bounds]
  parts: Sequence[Sequence[tf.Tensor]] = ()


def fill_up(leaves: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
  """Pads the rows of `leaves` to the largest sizes, unless sizes are static.

  Each leaf has the shape `[rows, ...]`, and all have one rank. Zeros are added;
  to strings, empty strings.
  """
  if any(leaf.shape.rank is None for leaf in leaves) or all(
      leaf.shape[1:].is_fully_defined() for leaf in leaves):
    return leaves
  sizes = [tf.shape(leaf)[1:] for leaf in leaves]
  largest = functools.reduce(tf.maximum, sizes)
  filled = []
  for leaf, size in zip(leaves, sizes):
    behind = tf.concat([[0], largest - size], 0)
    full = tf.pad(leaf, tf.stack([tf.zeros_like(behind), behind], 1))
    full.set_shape([leaf.shape[0], *([None] * (leaf.shape.rank - 1))])
    filled.append(full)
  return filled


def concat(leaves: Sequence[Any]) -> Any:
  """Returns the rows of all leaves, dense ones as `fill_up` returns them."""
  if isinstance(leaves[0], tf.SparseTensor):
    return tf.sparse.concat(0, list(leaves), expand_nonconcat_dims=True)
  if not isinstance(leaves[0], tf.RaggedTensor):
    leaves = fill_up(leaves)
  return tf.concat(leaves, axis=0)


def static_rows(leaves: Sequence[Any], remedy: str) -> int | None:
  """Returns the number of rows of all leaves of a batch, if one is static.

  Raises ValueError, with the `remedy`, if they have different numbers.
  """
  static = {tf.compat.dimension_value(leaf.shape[0]) for leaf in leaves
            if leaf.shape.rank is not None} - {None}
  if len(static) > 1:
    raise ValueError('Every tensor of a batch must have the same first '
                     f'dimension. Received: {sorted(static)} in {leaves}. '
                     f'{remedy}')
  return static.pop() if static else None


def num_rows(leaf: Any) -> tf.Tensor:
  """Returns the first size of a tensor, also a sparse or a ragged one."""
  if isinstance(leaf, tf.SparseTensor):
    return leaf.dense_shape[0]
  if isinstance(leaf, tf.RaggedTensor):
    return tf.cast(leaf.nrows(), tf.int64)
  return tf.shape(leaf, out_type=tf.int64)[0]


def at_least_one_row(
    begins: Sequence[Rows],
    rows: Sequence[Rows]) -> tuple[Sequence[Rows], Sequence[Rows]]:
  """Returns bounds of parts in which an empty part has the batch's last row.

  Some ops cannot be computed on no rows. A batch without any row has none to
  give. A size that cannot be 0 is returned as it is, the same object.
  """
  if all(isinstance(count, int) for count in rows):
    total = sum(rows)
    last, least = max(total - 1, 0), min(total, 1)
    return ([min(begin, last) for begin in begins],
            [count or least for count in rows])
  total = tf.add_n([tf.cast(count, tf.int64) for count in rows])
  last, least = tf.maximum(total - 1, 0), tf.minimum(total, 1)
  return ([tf.minimum(tf.cast(begin, tf.int64), last) for begin in begins],
          [count if isinstance(count, int) and count else
           tf.maximum(tf.cast(count, tf.int64), least) for count in rows])


def bounds_if_rows(
    tensor: tf.Tensor, rows: Sequence[Rows], begin: Rows,
    size: Rows) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the bounds of a part; of all entries if there are no rows."""
  count = num_rows(tensor)
  has_rows = tf.equal(
      count, tf.add_n([tf.cast(number, tf.int64) for number in rows]))
  return (tf.where(has_rows, tf.cast(begin, tf.int64), 0),
          tf.where(has_rows, tf.cast(size, tf.int64), count))


def entries_of_rows(part: tf.Tensor, axis: int, count: Rows) -> Any:
  """Returns the number of entries of a part with `count` rows; None for all.

  A part without rows has one that is left out. A row may have any number of
  adjacent entries.
  """
  if isinstance(count, int):
    return None if count else 0
  size = tf.shape(part, out_type=tf.int64)[axis]
  return size * tf.minimum(tf.cast(count, tf.int64), 1)


def row_shares(rows: Sequence[int | tf.Tensor]) -> list[Weight]:
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


def filled(part: tf.Tensor, batch: tf.Tensor, begin: Any,
           count: Any) -> tf.Tensor:
  """Returns `part` and, behind it, `count` rows of the `batch` from `begin`."""
  rows = tf.concat([part, batch[begin:begin + count]], 0)
  rows.set_shape([None, *part.shape[1:]])
  return rows


def joined(parts: Sequence[tf.Tensor], held: Sequence[Any],
           counts: Sequence[Any], axis: int) -> tf.Tensor:
  """Returns the rows of all `parts`, without the added row of an empty one.

  `held` are the rows of each part, and `counts` the rows of the batch in each.
  """
  before = [slice(None)] * axis
  return tf.concat([
      part if rows is count else
      part[(*before, slice(entries_of_rows(part, axis, count)))]
      for part, rows, count in zip(parts, held, counts)], axis)


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
