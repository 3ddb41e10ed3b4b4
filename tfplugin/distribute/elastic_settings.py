# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of an elastic strategy, and what they may be."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Optional

from tfplugin.ops import elastic

UPDATE_ORDERS = ('gradient_first', 'elastic_first')
COUNTED_STEPS = ('communication', 'local')
STATISTICS_POLICIES = ('average', 'shared')


@dataclasses.dataclass(frozen=True)
class ElasticSettings:
  """What a user asked of an elastic strategy.

  Attributes:
    num_worker: The number of workers; None until the cluster is known.
    communication_period: Local steps from one exchange to the next.
    moving_rate: The part of the difference that an exchange moves; None for
      the default of `ops.elastic`.
    rho: The weight of the exploration penalty; 0 for none.
    synchronous: Whether the workers wait for each other before they start.
    update_order: One of `UPDATE_ORDERS`.
    count_steps: One of `COUNTED_STEPS`.
    statistics: One of `STATISTICS_POLICIES`.
    sparse_exchange: Whether to exchange only touched embedding rows.
  """

  num_worker: Optional[int]
  communication_period: int
  moving_rate: Optional[float]
  rho: float
  synchronous: bool
  update_order: str
  count_steps: str
  statistics: str
  sparse_exchange: bool

  def __post_init__(self):
    if self.num_worker is not None:
      _check_positive('num_worker', self.num_worker)
    _check_positive('communication_period', self.communication_period)
    _check_moving_rate(self.moving_rate)
    _check_rho(self.rho)
    _check_choice('update_order', self.update_order, UPDATE_ORDERS)
    _check_choice('count_steps', self.count_steps, COUNTED_STEPS)
    _check_choice('statistics', self.statistics, STATISTICS_POLICIES)

  def rate(self, num_worker: int) -> float:
    """The moving rate among `num_worker` workers."""
    if self.moving_rate is not None:
      return self.moving_rate
    return elastic.default_moving_rate(self.communication_period,
                                       num_worker)


def _check_positive(argument: str, value) -> None:
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{argument}` must be an integer. Received: {value!r}. '
                    'Pass e.g. 10.')
  if value < 1:
    raise ValueError(f'`{argument}` must be at least 1. Received: {value!r}. '
                     'Pass e.g. 10.')


def _check_moving_rate(value) -> None:
  if value is None:
    return
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError('`moving_rate` must be a number or None. '
                    f'Received: {value!r}. None takes the default.')
  if not 0 <= value <= 1:
    raise ValueError('`moving_rate` must be in [0, 1]. '
                     f'Received: {value!r}. None takes the default.')


def _check_rho(value) -> None:
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError(
        '`rho` must be a number: a strategy does not know the learning rate '
        f'that a default could come from. Received: {value!r}. Pass 0.0 for '
        'no penalty, or `moving_rate / learning_rate`.')
  if value < 0:
    raise ValueError(f'`rho` must be at least 0. Received: {value!r}. '
                     'Pass 0.0 for no penalty.')


def _check_choice(argument: str, value, choices) -> None:
  if value not in choices:
    raise ValueError(f'`{argument}` must be one of {choices}. '
                     f'Received: {value!r}. Pass {choices[0]!r}.')
