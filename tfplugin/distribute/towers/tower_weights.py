# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much each tower counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class TowerWeights:
  """How much each tower counts, as floats or scalar float tensors.

  Attributes:
    rows: The tower's share of the rows of the batch; the shares sum to 1.
    loss: The factor of the tower's loss and gradients in the sum over its
      group.
    groups: The towers whose losses are parts of one mean. None: all of them.
    by_terms: Whether the terms of a loss that are sums over rows are found, and
      added up.
    means: The weights of means over towers, such as the moving statistics of
      batch normalisation. None: `rows`.
  """

  rows: Sequence[weighted_sum.Weight]
  loss: Sequence[weighted_sum.Weight]
  groups: Optional[Sequence[Sequence[int]]] = None
  by_terms: bool = False
  means: Optional[Sequence[weighted_sum.Weight]] = None

  @property
  def of_means(self) -> Sequence[weighted_sum.Weight]:
    """The weight of each tower in a mean over towers."""
    return self.rows if self.means is None else self.means


def weights_of(shares: Sequence[weighted_sum.Weight],
               loss_reduction: Optional[str]) -> TowerWeights:
  """Returns the weights of towers with these shares of the rows.

  Args:
    shares: They sum to 1.
    loss_reduction: How the model reduces the loss of a tower; None: as the ops
      of the loss tell.
  """
  shares = list(shares)
  is_sum = loss_reduction == tf1.losses.Reduction.SUM
  return TowerWeights(shares, [1.0] * len(shares) if is_sum else shares,
                      by_terms=loss_reduction is None)


def check_reduction(loss_reduction: Optional[str]) -> None:
  """Raises unless `loss_reduction` makes the loss of a tower a scalar."""
  reduction = tf1.losses.Reduction
  known = {key for key in reduction.all() if key != reduction.NONE}
  if loss_reduction is not None and loss_reduction not in known:
    raise ValueError(
        f'`loss_reduction` must be one of {sorted(known)}. '
        f'Received: {loss_reduction!r}. Losses of towers can be joined only '
        'where each is a scalar.')
