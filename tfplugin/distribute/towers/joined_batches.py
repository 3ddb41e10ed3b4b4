# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of towers, joined in order into one batch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.ops import batch_parts

tf1 = tf.compat.v1


def join(batches: Sequence[Any]) -> batch_parts.DividedBatch | None:
  """Returns the batch of all towers; None if no tower has separate rows.

  Tensors that are the same in all towers stay as they are.
  """
  leaves = list(zip(*map(tf.nest.flatten, batches)))
  joined, dense, parts, composites, split = [], [], [], [], []
  with tf.name_scope('tower_batches'):
    for own in leaves:
      if all(leaf is own[0] for leaf in own[1:]):
        joined.append(own[0])
        continue
      own = [leaf if isinstance(leaf, batch_parts.COMPOSITES) else
             tf.convert_to_tensor(leaf) for leaf in own]
      if own[0].shape.rank == 0:
        joined.append(_first(own))
        continue
      split.append(own)
      if isinstance(own[0], batch_parts.COMPOSITES):
        joined.append(batch_parts.concat(own))
        composites.append(joined[-1])
      else:
        own = batch_parts.fill_up(own)
        joined.append(tf.concat(own, 0))
        if own[0].shape.rank is not None:
          dense.append(joined[-1])
          parts.append([_made_of(joined[-1], part) for part in own])
    if not split:
      return None
    rows = [_num_rows(own) for own in zip(*split)]
  is_static = all(isinstance(count, int) for count in rows)
  return batch_parts.DividedBatch(
      tf.nest.pack_sequence_as(batches[0], joined), dense, composites,
      sum(rows) if is_static else None, functools.partial(_bounds, rows), parts)


def _bounds(rows: Sequence[batch_parts.Rows]) -> batch_parts.Bounds:
  return [0, *itertools.accumulate(rows[:-1])], rows, ()


def _num_rows(leaves: Sequence[Any]) -> batch_parts.Rows:
  """Returns the number of rows of a tower, checked where it is static."""
  rows = batch_parts.static_rows(
      leaves, 'Repeat a value of the whole batch for each row.')
  return batch_parts.num_rows(leaves[0]) if rows is None else rows


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
