# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Number of rows of a batch, and padding of rows of different length."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


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


def num_rows(leaf: Any) -> tf.Tensor:
  """Returns the first size of a tensor, also a sparse or a ragged one."""
  if isinstance(leaf, tf.SparseTensor):
    return leaf.dense_shape[0]
  if isinstance(leaf, tf.RaggedTensor):
    return tf.cast(leaf.nrows(), tf.int64)
  return tf.shape(leaf, out_type=tf.int64)[0]
