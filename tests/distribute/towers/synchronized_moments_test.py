# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of moments over the rows of all towers."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import synchronized_moments
from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1

# Far from 0: a mean of squares minus a square of means would lose the variance.
_X = np.random.RandomState(0).randn(4, 3, 2).astype(np.float32) + 1000
_ROWS = slice(0, 3), slice(3, 4)
_WEIGHTS = tower_weights.TowerWeights([.75, .25], [.75, .25])


def _in_towers(fn):
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      _, results = strategy.build_towers(fn, _WEIGHTS)
    session.run(tf1.global_variables_initializer())
    return session.run(results)


@pytest.mark.parametrize('keepdims', (False, True))
def test_moments_are_those_of_all_rows(behavior, keepdims):
  x = _X.astype(np.float64)
  for mean, variance, count in _in_towers(
      lambda tower: synchronized_moments.moments(
          tf.constant(_X[_ROWS[tower]]), [0, 1], keepdims)):
    np.testing.assert_allclose(
        mean, x.mean(axis=(0, 1), keepdims=keepdims), rtol=1e-6)
    np.testing.assert_allclose(
        variance, x.var(axis=(0, 1), keepdims=keepdims), rtol=1e-3)
    assert np.unique(count) == [12.0]


def test_masked_elements_do_not_count(behavior):
  mask = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]], bool)
  kept = _X[mask].astype(np.float64)
  for mean, variance, count in _in_towers(
      lambda tower: synchronized_moments.moments(
          tf.constant(_X[_ROWS[tower]]), [0, 1],
          mask=tf.constant(mask[_ROWS[tower]]))):
    np.testing.assert_allclose(mean, kept.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(variance, kept.var(axis=0), rtol=1e-3)
    assert np.unique(count) == [4.0]


def test_gradient_is_that_of_all_rows(behavior):
  # loss = sum{towers} share * variance(w * x) = w^2 * variance(x).
  def fn(tower):
    w = tf1.get_variable('w', initializer=3.0)
    _, variance, _ = synchronized_moments.moments(
        w * tf.constant(_X[_ROWS[tower]] - 1000), [0, 1])
    return tf.gradients(variance[0], [w])[0]

  expected = 2 * 3.0 * np.var(_X[..., 0].astype(np.float64))
  np.testing.assert_allclose(_in_towers(fn), [expected] * 2, rtol=1e-3)
