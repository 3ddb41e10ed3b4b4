# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The equations of elastic averaging, as functions without state.

References:
  Zhang, Choromanska and LeCun. Deep learning with Elastic Averaging SGD.
  NeurIPS 2015. https://arxiv.org/abs/1412.6651
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

# The share of all differences that one round of all workers moves; 0.9 is what
# the paper's experiments use.
BETA = 0.9

Rate = Union[float, tf.Tensor]


def default_moving_rate(communication_period: int, num_worker: int) -> float:
  """The moving rate that is taken when none is given.

    moving_rate = BETA / communication_period / num_worker

  Args:
    communication_period: Local steps from one communication to the next.
    num_worker: How many workers share the centre.

  Example:
    >>> default_moving_rate(communication_period=10, num_worker=3)
    0.03
  """
  return BETA / communication_period / num_worker


def elastic_difference(local: tf.Tensor, center: tf.Tensor,
                       moving_rate: Rate) -> tf.Tensor:
  """What the local copy loses and the centre gains in one communication.

    d = moving_rate * (local - center);   local -= d;   center += d

  Args:
    local: A worker's copy, of any shape.
    center: The centre, of the same shape and type.
    moving_rate: The share of the distance that each of them moves.

  Returns:
    A tensor of that shape and type.

  Example:
    >>> elastic_difference(tf.constant([1.0]), tf.constant([0.0]), 0.5).numpy()
    array([0.5], dtype=float32)
  """
  return _cast(moving_rate, local) * (local - center)


def exploration_gradient(local: tf.Tensor, local_center: tf.Tensor,
                         rho: Rate) -> tf.Tensor:
  """The gradient, at `local`, of the penalty that keeps a worker near.

    penalty  = rho / 2 * |local - local_center|^2
    gradient = rho * (local - local_center)

  Args:
    local: A worker's copy, of any shape.
    local_center: The centre as the worker last saw it.
    rho: The strength of the penalty.

  Example:
    >>> exploration_gradient(tf.constant([3.]), tf.constant([1.]), 2.0).numpy()
    array([4.], dtype=float32)
  """
  return _cast(rho, local) * (local - local_center)


def is_penalty(rho: Rate) -> bool:
  """Whether a penalty of strength `rho` exists: it is not the number 0.

  Args:
    rho: A number, or a tensor, whose value is not known yet.
  """
  return tf.is_tensor(rho) or rho != 0


def is_communication(local_step: tf.Tensor,
                     communication_period: int) -> tf.Tensor:
  """Whether the step that follows `local_step` finished ones communicates.

    (local_step + 1) mod communication_period = 0

  Args:
    local_step: How many steps this worker has finished; an integer scalar.
    communication_period: Local steps from one communication to the next.

  Returns:
    A boolean scalar.
  """
  return tf.equal(tf.math.floormod(local_step + 1, communication_period), 0)


def distance(local: Sequence[tf.Tensor],
             centers: Sequence[tf.Tensor]) -> tf.Tensor:
  """The L2 distance between a worker and the centre, over all variables.

  Args:
    local: The worker's copies.
    centers: Their centres.

  Returns:
    A `float32` scalar.

  Example:
    >>> float(distance([tf.constant([3.]), tf.constant(4.)], [0., 0.]))
    5.0
  """
  squares = [tf.reduce_sum(tf.square(tf.cast(copy - center, tf.float32)))
             for copy, center in zip(local, centers)]
  return tf.sqrt(tf.add_n(squares))


def _cast(rate: Rate, like: tf.Tensor) -> Rate:
  """A tensor `rate` in the type of `like`; a number fits any type."""
  return tf.cast(rate, like.dtype) if tf.is_tensor(rate) else rate
