# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The default strength of the penalty, and the copy of the centre it needs."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.optimizers import elastic_custom_getter
from tfplugin.optimizers import elastic_penalty
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


@pytest.mark.parametrize('make', [
    tf1.train.GradientDescentOptimizer, tf1.train.AdamOptimizer,
    tf1.train.AdagradOptimizer, tf1.train.AdadeltaOptimizer,
    tf1.train.RMSPropOptimizer, tf1.train.FtrlOptimizer,
    tf1.train.ProximalGradientDescentOptimizer,
    tf1.train.ProximalAdagradOptimizer,
    lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    lambda rate: tf1.train.AdagradDAOptimizer(
        rate, tf.constant(0, tf.int64)),
    lambda rate: wrapper.OptimizerWrapper(
        tf1.train.AdamOptimizer(rate), False, 'around')])
def test_default_rho_of_every_optimizer(make):
  with tf.Graph().as_default():
    assert elastic_penalty.default_rho(0.1, make(0.25)) == 0.4


def test_default_rho_follows_a_schedule(behavior):
  del behavior
  with tf.Graph().as_default():
    rate = tf1.placeholder(tf.float32, [])
    rho = elastic_penalty.default_rho(
        0.5, tf1.train.GradientDescentOptimizer(rate))
    with tf1.Session() as session:
      assert session.run(rho, {rate: 0.25}) == 2.0


def test_no_moving_rate_no_penalty():
  with tf.Graph().as_default():
    assert elastic_penalty.default_rho(
        0.0, tf1.train.GradientDescentOptimizer(tf.constant(0.1))) == 0.0


def test_gradient_of_none_and_sparse_ones(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=[[1.0], [2.0], [3.0]])
    pair, = getter.pairs
    penalty = elastic_penalty.ElasticPenalty(getter, 0.5)
    gradients = [
        penalty.add_to(None, pair),
        penalty.add_to(tf.IndexedSlices(
            tf.constant([[1.0], [1.0]]), tf.constant([2, 2]),
            tf.constant([3, 1])), pair)]
    assert len(penalty.variables()) == 1
    with tf1.Session() as session:
      session.run(tf1.local_variables_initializer())
      session.run(w.assign([[3.0], [2.0], [3.0]]))  # .5 * (3 - 1)
      alone, added = session.run(gradients)
  assert alone.tolist() == [[1.0], [0.0], [0.0]]
  assert added.tolist() == [[1.0], [0.0], [2.0]]


def test_without_strength_nothing_is_made():
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      tf1.get_variable('w', [])
    penalty = elastic_penalty.ElasticPenalty(getter, 0.0)
    assert penalty.add_to(None, getter.pairs[0]) is None
    assert penalty.local_center_and_center(getter.pairs[0]) == []
    assert penalty.variables() == []
