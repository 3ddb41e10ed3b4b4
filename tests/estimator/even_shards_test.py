# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that shards of a training step have the same number of rows."""

import pytest
import tensorflow as tf

from tfplugin.estimator import even_shards


def test_even_shards_pass():
  assert even_shards.check([2, 2, 2], 'owner') == []


@pytest.mark.parametrize('rows', ([2, 2, 1], [1, 0], [0, 0]))
def test_static_sizes_that_differ_or_are_zero_raise(rows):
  with pytest.raises(ValueError, match=(
      f'multiple of the {len(rows)} shards of `owner`.'
      f' Received: {sum(rows)} rows')):
    even_shards.check(rows, 'owner')


def test_sizes_of_the_step_are_asserted_in_it():
  even, uneven = (tf.constant([2, last], tf.int64) for last in (2, 1))
  check = tf.function(
      lambda rows: [*even_shards.check(tf.unstack(rows), 'owner'), 0][-1])
  check(even)
  with pytest.raises(tf.errors.InvalidArgumentError, match='multiple of the 2'):
    check(uneven)
