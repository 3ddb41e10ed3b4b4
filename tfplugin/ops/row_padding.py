# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Padding of rows of different length to one length."""

from __future__ import annotations

import functools
from collections.abc import Sequence

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
