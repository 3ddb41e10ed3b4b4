# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The share of a batch that each of its parts is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf


def row_shares(rows: Sequence[Union[int, tf.Tensor]],
               ) -> list[Union[float, tf.Tensor]]:
  """Returns `rows[i] / sum{j} rows[j]`; the shares sum to 1.

  A batch without any row belongs to the first part.

  Args:
    rows: Ints, or scalar tensors of one integer dtype, or both.

  Returns:
    Floats where all `rows` are ints, else scalar float32 tensors.
  """
  if all(isinstance(count, int) for count in rows):
    total = sum(rows)
    return ([count / total for count in rows] if total
            else [1.0] + [0.0] * (len(rows) - 1))
  counts = [tf.cast(count, tf.float32) for count in rows]
  total = tf.add_n(counts)
  counts[0] = tf.where(total > 0, counts[0], 1.0)
  return [count / tf.maximum(total, 1.0) for count in counts]
