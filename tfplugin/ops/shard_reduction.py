# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How the losses of shards become one: their sum or their mean."""

from __future__ import annotations

import tensorflow as tf

SUM = tf.compat.v1.losses.Reduction.SUM
MEAN = tf.compat.v1.losses.Reduction.MEAN


def check(reduction: str) -> None:
  """Raises unless `reduction` is one of the two.

  Args:
    reduction: The argument of the user.

  Raises:
    ValueError: `reduction` is neither.
  """
  if reduction not in (SUM, MEAN):
    raise ValueError(
        '`reduction` must be `tf.compat.v1.losses.Reduction.MEAN` '
        f'({MEAN!r}) or `SUM` ({SUM!r}). Received: {reduction!r}. Pass MEAN '
        'where the loss of a shard is a mean over its part of the batch.')
