# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation with the moments of all towers' rows.

  mean     = sum{towers, elements} x / n
  variance = sum{towers, elements} (x - mean)^2 / n

where n counts the elements of all towers. Each element counts the same, so that
towers may have different numbers of rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_run

tf1 = tf.compat.v1

_SUM = tf.distribute.ReduceOp.SUM


@contextlib.contextmanager
def in_batch_norm(strategy: tf1.distribute.Strategy) -> Iterator[None]:
  """Lets batch normalisation in the towers of `strategy` use `moments`.

  It applies to Keras layers and `tf.layers`, in training.

  Args:
    strategy: The strategy whose towers are built inside.
  """

  def is_tower() -> bool:
    context = tower_run.current_tower()
    return context is not None and context.strategy is strategy

  with _tf_internals.batch_norm_moments(moments, is_tower):
    yield


def moments(x: tf.Tensor, axes: Sequence[int], keepdims: bool = False,
            mask: Optional[tf.Tensor] = None,
            ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns mean, variance and number of elements over all towers.

  Call it in each tower.

  Args:
    x: The elements of this tower, of a floating type.
    axes: The dimensions to reduce; the dimension of the batch is one of them.
    keepdims: Whether the results keep reduced dimensions, with size 1.
    mask: True where an element counts, `x.shape[:-1]`; all by default.
  """
  weights = tf.ones_like(x) if mask is None else tf.broadcast_to(
      tf.expand_dims(tf.cast(mask, x.dtype), -1), tf.shape(x))
  context = tf.distribute.get_replica_context()

  def add_up(*parts: tf.Tensor) -> list[tf.Tensor]:
    return context.all_reduce(_SUM, [
        tf.reduce_sum(part, axes, keepdims=True) for part in parts])

  total, count = add_up(x * weights, weights)
  mean = total / count
  squares, = add_up(weights * tf.math.squared_difference(x, mean))
  results = mean, squares / count, count
  if not keepdims:
    results = tuple(tf.squeeze(result, axes) for result in results)
  return results
