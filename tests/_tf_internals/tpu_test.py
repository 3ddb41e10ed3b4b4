# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The number of TPU shards is found where TensorFlow keeps it."""

from __future__ import annotations

from tfplugin._tf_internals import tpu


def test_the_number_of_shards_is_that_of_the_context_around():
  assert tpu.number_of_tpu_shards() is None
  with tpu.tpu_function.tpu_shard_context(4):
    assert tpu.number_of_tpu_shards() == 4
  assert tpu.number_of_tpu_shards() is None
