# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check of the argument `loss_reduction`, which contrib's towers needed.

No number depends on the argument.
"""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1


def check(loss_reduction: Optional[str]) -> None:
  """Raises unless `loss_reduction` makes the loss of a tower a scalar."""
  reduction = tf1.losses.Reduction
  known = {key for key in reduction.all() if key != reduction.NONE}
  if loss_reduction is not None and loss_reduction not in known:
    raise ValueError(
        f'`loss_reduction` must be one of {sorted(known)}. '
        f'Received: {loss_reduction!r}. Losses of towers can be joined only '
        'where each is a scalar.')
