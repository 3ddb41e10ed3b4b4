# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which sums and means over parts are those of all rows.

Each case is checked by numbers: it is exact if and only if the values of two
parts make the value of all rows.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import loss_kinds
from tfplugin.distribute.towers.writes import exact_kinds

tf1 = tf.compat.v1
_X = np.float32([[1, 5], [2, 6], [3, 7], [10, 3], [30, 9]])
_PARTS = (_X[:3], _X[3:])


def _rows(x):
  return tf.cast(tf.shape(x)[0], tf.float32)


@pytest.mark.parametrize('make, is_exact', [
    (tf.reduce_sum, True),
    (tf.reduce_mean, True),
    (lambda x: tf.reduce_mean(x, 0), True),
    (lambda x: tf.reduce_sum(tf.square(x - 1.0)), True),
    (lambda x: tf.nn.l2_loss(x), True),
    (lambda x: tf.reduce_sum(x) / _rows(x), True),
    (lambda x: tf.reduce_sum(x / _rows(x)), True),
    (lambda x: tf.reduce_mean(tf.nn.relu(x @ [[1.0], [-1.0]])), True),
    (lambda x: tf.reduce_mean(tf.where(x > 2.0, x, 0.0)), True),
    (lambda x: tf.reduce_mean(x[:, 0]), True),
    (lambda x: tf.reduce_mean(tf.reduce_max(x, 1)), True),
    (lambda x: tf.reduce_sum(tf.gather([1.0, 2.0] * 20, tf.cast(x, tf.int32))),
     True),
    (lambda x: tf.matmul(x, x, transpose_a=True), True),
    (lambda x: tf1.losses.mean_squared_error(tf.zeros_like(x), x), True),
    (lambda x: 0.9 * 7.0 + 0.1 * tf.reduce_mean(x), True),
    (lambda x: tf.reduce_sum(tf.transpose(x)), True),
    (lambda x: tf.where(tf.constant(True), tf.reduce_sum(x),
                        tf.reduce_sum(x * x)), True),
    (lambda x: tf.where(tf.constant(False), tf.reduce_sum(x), 7.0), False),
    (_rows, True),
    (lambda x: _rows(x) - 1.0, False),
    (lambda x: tf.sqrt(_rows(x)), False),
    (lambda x: tf.reduce_sum(x) / (_rows(x) + 7.0), False),
    (lambda x: tf.math.reduce_variance(x), False),
    (lambda x: tf.nn.moments(x, [0])[1], False),
    (lambda x: tf.reduce_mean(x - tf.reduce_mean(x) + 1.0), False),
    (lambda x: tf.reduce_sum(x) / tf.reduce_sum(x * x), False),
    (lambda x: tf.reduce_mean(tf.boolean_mask(x, x[:, 0] > 2.0)), False),
    (lambda x: tf.reduce_mean(x[:1]), False),
    (lambda x: tf.reduce_sum(tf.reduce_max(x, 0)), False),
    (lambda x: tf.reduce_sum(tf.square(x / _rows(x))), False),
    (lambda x: tf.cast(tf.cast(tf.reduce_mean(x), tf.int32), tf.float32),
     False),
    (lambda x: tf.where(tf.reduce_mean(x) > 5.0, tf.reduce_sum(x), 0.0), False),
    (lambda x: tf.reduce_mean(tf.cumsum(x)), False),
])
def test_exact_is_what_the_numbers_say(make, is_exact):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder(tf.float32, [None, 2])
    value = make(x)
    kinds = loss_kinds.Kinds({x.ref(): loss_kinds.ROWS}, lambda op: True)
    first = exact_kinds.first_inexact(value, kinds)
    kind = kinds.of(value)
    assert (first is None and (kind.is_sum or kind.is_mean)) == is_exact
    whole, one, other = (session.run(value, {x: part})
                         for part in (_X, *_PARTS))
  joined = one + other if kind.is_sum else 0.6 * one + 0.4 * other
  # What is not exact may be right by chance, as a difference from the mean is.
  if is_exact:
    np.testing.assert_allclose(joined, whole, rtol=1e-5)
