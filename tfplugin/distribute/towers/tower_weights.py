# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights of towers in the loss and in the batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class TowerWeights:
  """Weights of towers, as floats or scalar float tensors.

  Attributes:
    rows: The tower's share of the rows of the batch; the shares sum to 1.
    loss: The factor of the tower's loss and gradients in the sum over its
      group.
    groups: Towers whose losses contribute to one mean. None: all towers.
  """

  rows: Sequence[weighted_sum.Weight]
  loss: Sequence[weighted_sum.Weight]
  groups: Optional[Sequence[Sequence[int]]] = None


def check_reduction(loss_reduction: Optional[str]) -> None:
  """Raises unless `loss_reduction` makes the loss of a tower a scalar."""
  reduction = tf1.losses.Reduction
  known = {key for key in reduction.all() if key != reduction.NONE}
  if loss_reduction is not None and loss_reduction not in known:
    raise ValueError(
        f'`loss_reduction` must be one of {sorted(known)}. '
        f'Received: {loss_reduction!r}. Losses of towers can be joined only '
        'where each is a scalar.')
