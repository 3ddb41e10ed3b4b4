# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of batches that must be a multiple of the shards."""

import pytest
import tensorflow as tf

from tfplugin.estimator import batch_sharding


@pytest.mark.parametrize('rows, num_shards', ((1, 1), (4, 2), (6, 3)))
def test_shards_of_the_same_size_pass(rows, num_shards):
  with tf.Graph().as_default():
    shards = batch_sharding.split_batch(tf.ones([rows]), None, num_shards)
    assert shards.check_even('owner') == []


@pytest.mark.parametrize('rows, num_shards', ((0, 1), (0, 2), (3, 2), (1, 2)))
def test_other_shards_are_refused(rows, num_shards):
  with tf.Graph().as_default():
    shards = batch_sharding.split_batch(tf.ones([rows]), None, num_shards)
    with pytest.raises(ValueError, match=(
        f'multiple of the {num_shards} shards of `owner`. '
        f'Received: {rows} rows')):
      shards.check_even('owner')
