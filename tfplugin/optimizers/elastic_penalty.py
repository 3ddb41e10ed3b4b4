# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exploration penalty of a worker, and the variables that it needs."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.ops import elastic
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

# Old graphs hold this name.
LOCAL_CENTER = 'local_center_variable'


def default_rho(moving_rate: elastic.Rate,
                optimizer: tf1.train.Optimizer) -> elastic.Rate:
  """Returns moving_rate / learning_rate.

  Args:
    moving_rate: The share of the difference that moves.
    optimizer: Has the learning rate; a wrapper's is that of what it wraps.

  Raises:
    ValueError: the optimizer has no learning rate, or that is 0.
  """
  rate = _tf_internals.learning_rate_of(optimizer)
  if not tf.is_tensor(moving_rate) and moving_rate == 0:
    return 0.0
  if rate is None or not (isinstance(rate, tf.Variable) or
                          tf.is_tensor(rate)) and rate == 0:
    raise ValueError(
        '`rho` must be given where `opt` has no learning rate to derive it '
        f'from, or one of 0. Received: rho=None with {optimizer!r}. Pass 0.0 '
        'for no penalty.')
  if isinstance(rate, tf.Variable) or tf.is_tensor(rate):
    rate = tf.convert_to_tensor(rate)
    return tf.cast(moving_rate, rate.dtype) / rate
  return moving_rate / rate


class ElasticPenalty:
  """Adds rho * (local - local_center) to gradients.

  The copies of the centre are made when they are needed first, so that there
  are none without a penalty.

  Variables created:
    local_center_variable/<name>: like <name>, local, on the worker.
  """

  def __init__(self,
               getter: elastic_custom_getter.ElasticAverageCustomGetter,
               rho: elastic.Rate):
    """Prepares a penalty.

    Args:
      getter: Makes local variables.
      rho: Its strength; with the number 0 there is none.
    """
    self._getter = getter
    self._rho = rho
    self._local_centers = {}
    self._is_on = tf.is_tensor(rho) or rho != 0

  def variables(self) -> list[tf.Variable]:
    """Returns the copies of the centre so far."""
    return list(self._local_centers.values())

  def add_to(self, gradient: types.Gradient,
             pair: elastic_custom_getter.CenteredVariable) -> types.Gradient:
    """Returns the gradient of the loss with the penalty.

    Args:
      gradient: That of the loss without it; None stands for 0.
      pair: The variable.
    """
    if not self._is_on:
      return gradient
    pull = elastic.exploration_gradient(
        pair.local.read_value(), self._local_center(pair).read_value(),
        self._rho)
    return pull if gradient is None else tf.convert_to_tensor(gradient) + pull

  def existing_local_center(self, pair):
    """Returns the worker's copy of a centre, or None if nothing reads one.

    Args:
      pair: The variable.
    """
    return self._local_centers.get(pair.local.ref())

  def local_center_and_center(self, pair) -> list:
    """Returns what to initialise: a list of one pair of variables, or of none.

    Args:
      pair: The variable.
    """
    if not self._is_on or not pair.trainable:
      return []
    return [(self._local_center(pair), pair.center)]

  def _local_center(self, pair) -> tf.Variable:
    key = pair.local.ref()
    if key not in self._local_centers:
      with self._getter.local_state(), tf.init_scope(), tf1.name_scope(None):
        self._local_centers[key] = tf1.Variable(
            pair.local.initial_value, trainable=False,
            dtype=pair.local.dtype.base_dtype,
            name=f'{LOCAL_CENTER}/{pair.local.op.name}')
    return self._local_centers[key]
