# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the end of a step that applies no gradients."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1


def test_a_step_without_gradients_communicates(behavior):
  del behavior

  def step():
    w = tf1.get_variable('w', initializer=0.0)
    return tf1.estimator.EstimatorSpec(
        'train', loss=w.value(), train_op=w.assign_add(4.0))

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=1, moving_rate=0.25)
  with tf.Graph().as_default(), strategy.scope():
    spec = strategy.run(tf.autograph.experimental.do_not_convert(step))
    w, = tf1.global_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      session.run(strategy.experimental_local_results(spec.train_op))
      assert session.run(w) == 1.0  # A quarter of 4.
