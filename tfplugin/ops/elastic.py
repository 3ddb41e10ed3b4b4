# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Equations of elastic averaging, as functions without state.

References:
  Zhang, Choromanska and LeCun. Deep learning with Elastic Averaging SGD.
  NeurIPS 2015. https://arxiv.org/abs/1412.6651
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

# The share of the differences that one exchange of every worker moves; the
# paper's experiments use 0.9.
BETA = 0.9

Rate = Union[float, tf.Tensor]


def default_moving_rate(communication_period: int,
                        num_worker: int | tf.Tensor) -> Rate:
  """Returns the moving rate that is used when none is given.

    moving_rate = BETA / communication_period / num_worker

  The period is in local steps.

  Example:
    >>> default_moving_rate(communication_period=10, num_worker=3)
    0.03
  """
  return BETA / communication_period / num_worker


def elastic_difference(local: tf.Tensor, center: tf.Tensor,
                       moving_rate: Rate) -> tf.Tensor:
  """Returns the value that an exchange moves from the copy to the centre.

    d = moving_rate * (local - center);   local -= d;   center += d

  Example:
    >>> elastic_difference(tf.constant([1.0]), tf.constant([0.0]), 0.5).numpy()
    array([0.5], dtype=float32)
  """
  return as_type_of(local, moving_rate) * (local - center)


def exploration_gradient(local: tf.Tensor, local_center: tf.Tensor,
                         rho: Rate) -> tf.Tensor:
  """Returns the gradient, at `local`, of the penalty on the distance.

    penalty  = rho / 2 * |local - local_center|^2
    gradient = rho * (local - local_center)

  `local_center` is the centre as the worker last read it.

  Example:
    >>> exploration_gradient(tf.constant([3.]), tf.constant([1.]), 2.0).numpy()
    array([4.], dtype=float32)
  """
  return as_type_of(local, rho) * (local - local_center)


def is_penalty(rho: Rate) -> bool:
  """Returns whether `rho` adds a penalty: it is a tensor, or not 0."""
  return tf.is_tensor(rho) or rho != 0


def is_exchange_due(local_step: tf.Tensor,
                    communication_period: int) -> tf.Tensor:
  """Returns whether the step after `local_step` finished ones exchanges.

    (local_step + 1) mod communication_period = 0
  """
  return tf.equal(tf.math.floormod(local_step + 1, communication_period), 0)


def distance(local: Sequence[tf.Tensor],
             centers: Sequence[tf.Tensor]) -> tf.Tensor:
  """Returns the L2 distance from the copies to the centres, as a `float32`.

  The sum is over all variables.

  Example:
    >>> float(distance([tf.constant([3.]), tf.constant(4.)], [0., 0.]))
    5.0
  """
  squares = [tf.reduce_sum(tf.square(tf.cast(copy - center, tf.float32)))
             for copy, center in zip(local, centers)]
  return tf.sqrt(tf.add_n(squares))


def as_type_of(value: tf.Tensor, rate: Rate) -> Rate:
  """Returns a tensor `rate` in the type of `value`; a number as it is."""
  return tf.cast(rate, value.dtype) if tf.is_tensor(rate) else rate
