# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of towers, joined in order into one batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Union

import tensorflow as tf

from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

Rows = Union[int, tf.Tensor]

_COMPOSITES = (tf.SparseTensor, tf.RaggedTensor)


@dataclasses.dataclass(frozen=True)
class JoinedBatches:
  """One batch, made of the batches of towers.

  Attributes:
    values: The nest of a tower, with the rows of all towers.
    dense: The dense tensors of `values` that have rows.
    parts: For each of `dense` the tensor of each tower.
    composites: The sparse and ragged tensors of `values`.
    rows: The number of rows of each tower; ints where they are static.
  """

  values: Any
  dense: Sequence[tf.Tensor]
  parts: Sequence[Sequence[tf.Tensor]]
  composites: Sequence[Any]
  rows: Sequence[Rows]

  @property
  def num_rows(self) -> int | None:
    """The number of rows, where it is static."""
    return sum(self.rows) if all(
        isinstance(rows, int) for rows in self.rows) else None

  def bounds(self) -> tuple[
      Sequence[Rows], Sequence[Rows], Sequence[tf.Operation]]:
    """Returns the first row and the number of rows of each tower; no checks."""
    begins = [0]
    for rows in self.rows[:-1]:
      begins.append(begins[-1] + rows)
    return begins, self.rows, ()


def join(batches: Sequence[Any]) -> JoinedBatches | None:
  """Returns the batch of all towers; None if no tower has separate rows.

  `batches` has a nest of tensors for each tower. Tensors that are the same in
  all of them stay as they are. A ValueError is raised if the tensors of a tower
  have different numbers of rows.
  """
  leaves = list(zip(*map(tf.nest.flatten, batches)))
  joined, dense, parts, composites, rows = [], [], [], [], []
  with tf.name_scope('tower_batches'):
    for own in leaves:
      if all(leaf is own[0] for leaf in own[1:]):
        joined.append(own[0])
        continue
      own = [leaf if isinstance(leaf, _COMPOSITES) else
             tf.convert_to_tensor(leaf) for leaf in own]
      if own[0].shape.rank == 0:
        joined.append(_first(own))
        continue
      rows.append([_num_rows(leaf) for leaf in own])
      if isinstance(own[0], _COMPOSITES):
        joined.append(_concat(own))
        composites.append(joined[-1])
      else:
        own = batch_parts.fill_up(own)
        joined.append(tf.concat(own, 0))
        if own[0].shape.rank is not None:
          dense.append(joined[-1])
          parts.append([_made_of(joined[-1], part) for part in own])
    if not rows:
      return None
    return JoinedBatches(tf.nest.pack_sequence_as(batches[0], joined), dense,
                         parts, composites, _rows_of_all(rows))


def _concat(leaves: Sequence[Any]) -> Any:
  return (tf.sparse.concat(0, leaves, expand_nonconcat_dims=True)
          if isinstance(leaves[0], tf.SparseTensor) else tf.concat(leaves, 0))


def _made_of(batch: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
  """Returns `part` as a tensor that Keras finds from `batch`."""
  sizes = tf.raw_ops.Shape(input=batch)[1:]
  made = tf.reshape(part, tf.concat([tf.shape(part)[:1], sizes], 0))
  made.set_shape(part.shape)
  return made


def _first(scalars: Sequence[tf.Tensor]) -> tf.Tensor:
  values = [tf.get_static_value(scalar) for scalar in scalars]
  if None in values or len({value.item() for value in values}) > 1:
    tf1.logging.warning(
        'Each of %s towers has a value of the scalar %s, and only the first '
        'one is used. Give it the dimension of the batch to use all.',
        len(scalars), scalars[0].name)
  return scalars[0]


def _num_rows(leaf: Any) -> Rows:
  rank = leaf.shape.rank
  rows = tf.compat.dimension_value(leaf.shape[0]) if rank else None
  return batch_parts.num_rows(leaf) if rows is None else rows


def _rows_of_all(by_leaf: Sequence[Sequence[Rows]]) -> Sequence[Rows]:
  """Returns the number of rows of each tower, checked where it is static."""
  found = []
  for counts in zip(*by_leaf):
    static = {count for count in counts if isinstance(count, int)}
    if len(static) > 1:
      raise ValueError(
          'Every tensor of a batch must have the same first dimension. '
          f'Received: {sorted(static)} in one batch. Repeat a value of the '
          'whole batch for each row.')
    found.append(static.pop() if static else counts[0])
  return found
