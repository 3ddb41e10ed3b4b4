# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of elastic averaging, what they may be, and their defaults."""

from __future__ import annotations

import dataclasses
import numbers
import sys
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.ops import elastic

tf1 = tf.compat.v1

_CHOICES = {
    'update_order': ('gradient_first', 'elastic_first'),
    'count_steps': ('communications', 'local'),
    'statistics': ('average', 'shared'),
}


@dataclasses.dataclass(frozen=True)
class ElasticSettings:
  """The settings of an elastic optimizer, decorator or strategy.

  Attributes:
    num_worker: The number of workers; None until the cluster is known.
    communication_period: Local steps from one communication to the next.
    moving_rate: The share of the difference that moves, a number in [0, 1] or a
      tensor; None for the default of `ops.elastic`.
    rho: The strength of the exploration penalty, a number or a tensor; 0 for
      none, None for the default of the optimizer.
    synchronous: Whether the workers wait for each other before they start.
    update_order: `'gradient_first'` or `'elastic_first'`.
    count_steps: `'communications'` or `'local'`.
    statistics: `'average'` or `'shared'`.
    sparse_exchange: Whether to exchange only touched embedding rows.

  Raises:
    TypeError: One is of the wrong type.
    ValueError: One is out of range.
  """

  num_worker: Optional[int] = None
  communication_period: int = 10
  moving_rate: Optional[elastic.Rate] = None
  rho: Optional[elastic.Rate] = 0.0
  synchronous: bool = False
  update_order: str = 'gradient_first'
  count_steps: str = 'communications'
  statistics: str = 'average'
  sparse_exchange: bool = False

  def __post_init__(self):
    if self.num_worker is not None:
      check_count('num_worker', self.num_worker)
    check_count('communication_period', self.communication_period)
    _check_rate('moving_rate', self.moving_rate, 1.0, 'in [0, 1]',
                'None takes the default.')
    _check_rate('rho', self.rho, sys.float_info.max,
                'at least 0 and finite', 'Pass 0.0 for no penalty.')
    for argument in _CHOICES:
      check_choice(argument, getattr(self, argument))
    for argument in ('synchronous', 'sparse_exchange'):
      _check_flag(argument, getattr(self, argument))

  def rate(self, num_worker: int) -> elastic.Rate:
    """The moving rate among `num_worker` workers."""
    if self.moving_rate is not None:
      return self.moving_rate
    return elastic.default_moving_rate(self.communication_period,
                                       self.num_worker or num_worker)

  def who_counts(self, global_step: Optional[tf.Variable]) -> tuple:
    """Returns the step that every update advances, and what communications do.

    Args:
      global_step: The step that a user passed to an optimizer, or None.

    Returns:
      The step or None, and a list of the step or of none.
    """
    if global_step is None or self.count_steps == 'local':
      return global_step, []
    return None, [global_step]

  def check_of_strategy(self) -> None:
    """Raises for what an optimizer takes and a strategy does not."""
    for argument in ('moving_rate', 'rho'):
      value = getattr(self, argument)
      if tf.is_tensor(value):
        raise TypeError(
            f'`{argument}` must be a number: a strategy is copied from graph '
            f'to graph. Received: {value!r}. Pass its value.')
    if self.rho is None:
      raise TypeError(
          '`rho` must be a number: a strategy does not know the learning rate '
          'that a default could come from. Received: None. Pass 0.0 for no '
          'penalty, or `moving_rate / learning_rate`.')


def default_rho(moving_rate: elastic.Rate,
                optimizer: tf1.train.Optimizer) -> elastic.Rate:
  """Returns moving_rate / learning_rate.

  Args:
    moving_rate: The share of the difference that moves.
    optimizer: Has the learning rate; a wrapper's is that of what it wraps.

  Raises:
    ValueError: The optimizer has no learning rate, or that is 0.
  """
  rate = _tf_internals.learning_rate_of(optimizer)
  if not tf.is_tensor(moving_rate) and moving_rate == 0:
    return 0.0
  is_number = not (isinstance(rate, tf.Variable) or tf.is_tensor(rate))
  if rate is None or is_number and rate == 0:
    raise ValueError(
        '`rho` must be given where `opt` has no learning rate to derive it '
        f'from, or one of 0. Received: rho=None with {optimizer!r}. Pass 0.0 '
        'for no penalty.')
  if is_number:
    return moving_rate / rate
  rate = tf.convert_to_tensor(rate)
  return tf.cast(moving_rate, rate.dtype) / rate


def check_count(argument: str, value: int) -> None:
  """Raises unless `value` is an integer of 1 or more.

  Args:
    argument: The argument's name, for the message.
    value: What the user passed.

  Raises:
    TypeError: It is not an integer.
    ValueError: It is less than 1.
  """
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{argument}` must be an integer. Received: {value!r}. '
                    'Pass e.g. 10.')
  if value < 1:
    raise ValueError(f'`{argument}` must be at least 1. Received: {value!r}. '
                     'Pass e.g. 10.')


def check_choice(argument: str, value: str) -> None:
  """Raises unless `value` is one of the words that `argument` may be.

  Args:
    argument: The argument's name.
    value: What the user passed.

  Raises:
    ValueError: It is something else.
  """
  choices = _CHOICES[argument]
  if value not in choices:
    raise ValueError(f'`{argument}` must be one of {choices}. '
                     f'Received: {value!r}. Pass {choices[0]!r}.')


def _check_rate(argument, value, most, rule, remedy) -> None:
  """Raises unless `value` is None, a tensor or a number from 0 to `most`."""
  if value is None or tf.is_tensor(value):
    return
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError(f'`{argument}` must be a number or None. '
                    f'Received: {value!r}. {remedy}')
  if not 0 <= value <= most:
    raise ValueError(f'`{argument}` must be {rule}. '
                     f'Received: {value!r}. {remedy}')


def _check_flag(argument: str, value: bool) -> None:
  if not isinstance(value, bool):
    raise TypeError(f'`{argument}` must be True or False. '
                    f'Received: {value!r}. Pass a bool.')
