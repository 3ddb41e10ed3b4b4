# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what towers return that does not fit together."""

import pytest
import tensorflow as tf

from tfplugin.estimator import spec_reduction


@pytest.mark.parametrize('make', (
    lambda tower: tf.constant([1.0] if tower else [1]),
    lambda tower: tf.ones([1, 2 + tower]),
    lambda tower: {'a': tf.ones([1]), 'b': None if tower else tf.ones([1])},
    lambda tower: [tf.ones([1])] * (1 + tower)))
def test_values_that_differ_are_named(make):
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='`p` must be the same structure'):
      spec_reduction.concat('p', [make(tower) for tower in range(2)])
