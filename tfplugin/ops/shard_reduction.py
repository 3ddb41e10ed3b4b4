# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduction of the losses of shards to their sum or mean, by one scale.

  loss = scale * sum over the group's shards of loss[shard]
  scale = 1 / number of shards in the group with MEAN, 1 with SUM
"""

from __future__ import annotations

import tensorflow as tf

SUM = tf.compat.v1.losses.Reduction.SUM
MEAN = tf.compat.v1.losses.Reduction.MEAN


def check(reduction: str) -> None:
  """Raises ValueError unless `reduction`, the user's, is SUM or MEAN."""
  if reduction not in (SUM, MEAN):
    raise ValueError(
        '`reduction` must be `tf.compat.v1.losses.Reduction.MEAN` '
        f'({MEAN!r}) or `SUM` ({SUM!r}). Received: {reduction!r}. Pass MEAN '
        'where the loss of a shard is a mean over its part of the batch.')


def factor(reduction: str, group_size: int, divided_by: int = 1) -> float:
  """Returns the remaining factor of a loss, `scale * divided_by`.

  `divided_by` is the number that the loss is divided by elsewhere.

  Example:
    >>> factor(MEAN, group_size=2), factor(MEAN, group_size=2, divided_by=4)
    (0.5, 2.0)
  """
  return divided_by / (group_size if reduction == MEAN else 1)
