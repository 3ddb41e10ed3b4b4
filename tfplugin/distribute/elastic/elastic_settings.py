# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of an elastic strategy, and what they may be."""

from __future__ import annotations

import dataclasses
from typing import Optional

import tensorflow as tf

from tfplugin.ops import elastic
from tfplugin.ops import elastic_arguments


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
    update_order: `'gradient_first'` or `'elastic_first'`.
    count_steps: `'communications'` or `'local'`.
    statistics: `'average'` or `'shared'`.
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
    _check_numbers(self.moving_rate, self.rho)
    elastic_arguments.check_settings(
        1 if self.num_worker is None else self.num_worker,
        self.communication_period, self.moving_rate, self.rho,
        self.update_order, self.count_steps)
    elastic_arguments.check_choice('statistics', self.statistics,
                                   elastic_arguments.STATISTICS_POLICIES)
    elastic_arguments.check_flag('synchronous', self.synchronous)
    elastic_arguments.check_flag('sparse_exchange', self.sparse_exchange)

  def rate(self, num_worker: int) -> float:
    """The moving rate among `num_worker` workers."""
    if self.moving_rate is not None:
      return self.moving_rate
    return elastic.default_moving_rate(self.communication_period,
                                       num_worker)


def _check_numbers(moving_rate, rho) -> None:
  """Raises for what an optimizer takes and a strategy does not."""
  for argument, value in (('moving_rate', moving_rate), ('rho', rho)):
    if tf.is_tensor(value):
      raise TypeError(
          f'`{argument}` must be a number: a strategy is copied from graph to '
          f'graph. Received: {value!r}. Pass its value.')
  if rho is None:
    raise TypeError(
        '`rho` must be a number: a strategy does not know the learning rate '
        'that a default could come from. Received: None. Pass 0.0 for no '
        'penalty, or `moving_rate / learning_rate`.')
