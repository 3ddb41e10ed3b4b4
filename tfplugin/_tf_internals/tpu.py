# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The number of TPU shards."""

from __future__ import annotations

from typing import Optional

# How many TPU shards are being built; see `number_of_tpu_shards`.
from tensorflow.python.tpu import tpu_function as tpu_function


def number_of_tpu_shards() -> Optional[int]:
  """The number of shards of the `tpu_shard_context` around the call, or None.

  The public `tf.compat.v1.tpu.shard` makes the context; nothing public asks for
  it.
  """
  return tpu_function.get_tpu_context().number_of_shards
