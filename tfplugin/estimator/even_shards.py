# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards of a training step must all have the same number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin.estimator import batch_sharding

tf1 = tf.compat.v1


def check(rows: Sequence[batch_sharding.Rows], owner: str,
          ) -> list[tf.Operation]:
  """Raises unless all shards have the same number of rows, and at least one.

  The mean over shards is then that of the batch.

  Args:
    rows: Of each shard, the largest first.
    owner: What splits the batch, for the message.

  Returns:
    Assertions to be run with the step; none where the sizes are static.

  Raises:
    ValueError: They are static, and differ.
  """
  rule = f'A batch must be a multiple of the {len(rows)} shards of `{owner}`.'
  if not all(isinstance(count, int) for count in rows):
    return [tf1.debugging.assert_equal(rows[0], rows[-1], message=rule)]
  if not rows[-1] or len(set(rows)) > 1:
    raise ValueError(
        f'{rule} Received: {sum(rows)} rows. Batch with '
        '`drop_remainder=True`, or use `tfplugin.replicate_model_fn`, which '
        'weighs shards by their rows.')
  return []
