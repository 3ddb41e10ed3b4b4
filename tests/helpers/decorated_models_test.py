# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models that decorators are tested with train as numpy says."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models

tf1 = tf.compat.v1


def test_one_step_is_that_of_numpy():
  x, y = decorated_models.first_batch()
  weight, bias = np.array([[0.5], [-0.25]]), 0.125
  error = x @ weight + bias - y
  values = decorated_models.train(decorated_models.regression(), 1)
  np.testing.assert_allclose(values['losses'], [np.mean(error**2)], rtol=1e-5)
  np.testing.assert_allclose(
      values['weight'], weight - 0.125 * 2 * x.T @ error / 4, rtol=1e-5)


def test_styles_of_clipping_agree_and_differ_from_the_others():
  weights = {style: decorated_models.train(
      decorated_models.regression(style))['weight']
             for style in decorated_models.STYLES}
  np.testing.assert_array_equal(weights['clip_by_hand'],
                                weights['tf_gradients'])
  np.testing.assert_allclose(weights['minimize'], weights['two_optimizers'],
                             rtol=1e-6)
  assert not np.allclose(weights['minimize'], weights['tf_gradients'])


@pytest.mark.parametrize('other', (
    {'w': np.zeros(2)}, {'w': np.array([0.0, 1e-9])},
    {'w': np.zeros(2), 'v': 0}))
def test_assert_equal(other):
  expected = {'w': np.zeros(2)}
  if other.keys() == expected.keys() and not other['w'].any():
    decorated_models.assert_equal(other, expected)
  else:
    with pytest.raises(AssertionError):
      decorated_models.assert_equal(other, expected)
