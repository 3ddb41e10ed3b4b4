# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The equations of elastic averaging, with numbers that a reader can check."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import elastic

tf1 = tf.compat.v1


def _run(tensor):
  with tf1.Session() as session:
    return session.run(tensor)


@pytest.mark.parametrize('period, workers, expected', [
    (10, 3, 0.03), (1, 1, 0.9), (100, 9, 0.001)])
def test_default_moving_rate(period, workers, expected):
  assert elastic.default_moving_rate(period, workers) == pytest.approx(expected)


def test_elastic_difference_keeps_the_sum(behavior):
  del behavior
  with tf.Graph().as_default():
    # .25 * (8 - 4), .25 * (1 - 3)
    difference = elastic.elastic_difference(
        tf.constant([8.0, 1.0]), tf.constant([4.0, 3.0]), 0.25)
    np.testing.assert_array_equal(_run(difference), [1.0, -0.5])


@pytest.mark.parametrize('dtype', [tf.float16, tf.float32, tf.float64])
def test_rate_may_be_a_tensor_of_another_type(dtype):
  with tf.Graph().as_default():
    difference = elastic.elastic_difference(
        tf.constant([2.0], dtype), tf.constant([0.0], dtype), tf.constant(.5))
    assert difference.dtype == dtype
    np.testing.assert_array_equal(_run(difference), [1.0])


def test_exploration_gradient_is_that_of_the_penalty(behavior):
  del behavior
  with tf.Graph().as_default():
    local = tf.constant([4.0, -1.0])
    center = tf.constant([1.0, 0.5])
    penalty = 0.5 / 2 * tf.reduce_sum((local - center)**2)
    derived, = tf1.gradients(penalty, local)
    stated = elastic.exploration_gradient(local, center, 0.5)
    np.testing.assert_array_equal(_run(derived), [1.5, -0.75])
    np.testing.assert_array_equal(_run(stated), [1.5, -0.75])


@pytest.mark.parametrize('rho, expected', [
    (0, False), (0.0, False), (0.5, True), (1, True)])
def test_a_penalty_of_strength_0_is_none(rho, expected):
  assert elastic.is_penalty(rho) is expected


def test_a_tensor_may_become_a_penalty():
  with tf.Graph().as_default():
    assert elastic.is_penalty(tf.constant(0.0)) is True


def test_every_third_step_is_a_communication():
  with tf.Graph().as_default():
    steps = [elastic.is_exchange_due(tf.constant(i, tf.int64), 3)
             for i in range(6)]
    assert _run(steps) == [False, False, True, False, False, True]


def test_distance_is_over_all_variables():
  with tf.Graph().as_default():
    # sqrt(2**2 + 3**2 + 6**2)
    value = elastic.distance(
        [tf.constant([2.0, 3.0]), tf.constant(7.0, tf.float64)],
        [tf.constant([0.0, 0.0]), tf.constant(1.0, tf.float64)])
    assert _run(value) == 7.0
