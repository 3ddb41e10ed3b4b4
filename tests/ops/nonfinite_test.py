# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what becomes of values that are not finite."""

import pytest
import tensorflow as tf

from tfplugin.ops import nonfinite

tf1 = tf.compat.v1

_VALUES = ([1.0, 2.0], [[float('nan'), 1.0]], float('-inf'))


def _values():
  dense = [tf.constant(value) for value in _VALUES]
  return [*dense, tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3])),
          tf.IndexedSlices(tf.constant([[float('inf')]]), tf.constant([3])),
          tf.constant([3.0], tf.float16), tf.constant([1.0 + 2.0j]),
          tf.constant(complex(1.0, float('inf')))]


def test_each_value_is_looked_at(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(nonfinite.are_finite(_values())).tolist() == [
        True, False, False, True, False, True, True, False]


def test_another_word_is_refused():
  with pytest.raises(ValueError, match=(
      "`on_nonfinite` must be one of .*Received: 'skip'")):
    nonfinite.check_policy('skip')
