# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of stale gradients: the staleness of a gradient, and its bound.

  staleness = apply_step - read_step

read_step is the global step when the worker's step began, before it read a
variable; apply_step is the global step when its gradients arrive. The
difference counts the updates by other workers in between.
"""

from __future__ import annotations

import operator
from typing import Union

import tensorflow as tf

# A number, or a scalar that may change from step to step.
Bound = Union[int, tf.Tensor]


def check_max_staleness(staleness: Bound) -> Bound:
  """Returns the bound as an int; a tensor that is no constant as it is.

  Raises unless it is an integer of at least 0, or a scalar tensor of integers.
  """
  if tf.is_tensor(staleness) and staleness.shape.rank == 0 and (
      staleness.dtype.is_integer):
    static = tf.get_static_value(staleness)
    if static is None:
      return staleness
    staleness = static.item()
  try:
    value = operator.index(staleness)
  except TypeError:
    value = None
  if value is None or isinstance(staleness, bool):
    raise TypeError('`staleness` must be an integer, the number of global '
                    f'steps. Received: {staleness!r}. Pass e.g. 10.')
  if value < 0:
    raise ValueError('`staleness` must be at least 0. '
                     f'Received: {staleness!r}. 0 drops every gradient that '
                     'another worker has overtaken.')
  return value


def staleness_of(read_step: tf.Tensor, apply_step: tf.Tensor) -> tf.Tensor:
  """Returns apply_step - read_step as an `int64` scalar.

  Example:
    >>> int(staleness_of(tf.constant(3), tf.constant(8)))
    5
  """
  return tf.cast(apply_step, tf.int64) - tf.cast(read_step, tf.int64)


def is_fresh(staleness: tf.Tensor, max_staleness: Bound) -> tf.Tensor:
  """Returns whether a gradient is applied: staleness <= max_staleness.

  Example:
    >>> bool(is_fresh(tf.constant(5, tf.int64), 5))
    True
    >>> bool(is_fresh(tf.constant(6, tf.int64), 5))
    False
  """
  return staleness <= tf.cast(max_staleness, staleness.dtype)


def dropped_fraction(num_dropped: tf.Tensor,
                     num_applied: tf.Tensor) -> tf.Tensor:
  """Returns dropped / (dropped + applied), a `float32` in [0, 1]; 0 at first.

  Example:
    >>> float(dropped_fraction(tf.constant(1), tf.constant(3)))
    0.25
    >>> float(dropped_fraction(tf.constant(0), tf.constant(0)))
    0.0
  """
  total = tf.cast(num_dropped, tf.int64) + tf.cast(num_applied, tf.int64)
  fraction = (tf.cast(num_dropped, tf.float64)
              / tf.cast(tf.maximum(total, 1), tf.float64))
  return tf.cast(fraction, tf.float32)
