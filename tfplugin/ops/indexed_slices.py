# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sparse gradients: unique ids, and one function for both kinds of gradient."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfplugin import types


def deduplicate(slices: tf.IndexedSlices) -> tf.IndexedSlices:
  """Returns the same sparse gradient with every id once, its values summed.

  A row that is looked up k times has k slices; whatever is not linear in the
  gradient (a norm, a clip, a write) must see their sum once.

  Args:
    slices: Values of shape `[num_slices, ...]` and integer indices of shape
      `[num_slices]`, in any order, with repeats.

  Returns:
    Slices with unique indices, in the order of their first occurrence.

  Raises:
    TypeError: `slices` is not a `tf.IndexedSlices`.

  Example:
    >>> slices = tf.IndexedSlices(tf.constant([[1.], [2.], [4.]]), [7, 3, 7])
    >>> unique = deduplicate(slices)
    >>> unique.indices.numpy().tolist(), unique.values.numpy().tolist()
    ([7, 3], [[5.0], [2.0]])
  """
  if not isinstance(slices, tf.IndexedSlices):
    raise TypeError('`slices` must be a `tf.IndexedSlices`. '
                    f'Received: {slices!r}')
  indices, positions = tf.unique(slices.indices)
  values = tf.math.unsorted_segment_sum(
      slices.values, positions, tf.shape(indices)[0])
  return tf.IndexedSlices(values, indices, slices.dense_shape)


def map_values(fn: Callable[[tf.Tensor], tf.Tensor],
               gradient: types.Gradient) -> types.Gradient:
  """Applies `fn` to a dense gradient, or to the values of a sparse one.

  Args:
    fn: An elementwise function, such as a scaling.
    gradient: A tensor, slices or None.

  Returns:
    The same kind of gradient; None stays None.
  """
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(
        fn(gradient.values), gradient.indices, gradient.dense_shape)
  return None if gradient is None else fn(tf.convert_to_tensor(gradient))


def components(gradient: types.Gradient) -> list[tf.Tensor]:
  """Returns the tensors that a gradient is made of; none for None."""
  if isinstance(gradient, tf.IndexedSlices):
    return [gradient.values, gradient.indices]
  return [] if gradient is None else [tf.convert_to_tensor(gradient)]
