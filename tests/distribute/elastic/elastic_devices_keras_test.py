# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what Keras sees of a centre and its copies."""

import numpy as np
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_average_strategy


def test_a_model_is_evaluated_at_the_centre():
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.25, count_steps='local',
      devices=['/cpu:0', '/cpu:1'])
  with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(
        1, use_bias=False, kernel_initializer='ones', input_shape=(1,))])
    model.compile(tf.keras.optimizers.legacy.SGD(.1), 'mse')
  x, y = np.ones([2, 1], np.float32), np.full([2, 1], 5.0, np.float32)
  # The copies go from 1 to 1 + .1 * 2 * 4 = 1.8, and the centre stays.
  model.fit(x, y, batch_size=2, epochs=1, verbose=0)
  assert model.predict(x, batch_size=2, verbose=0).tolist() == [[1], [1]]
  assert model.evaluate(x, y, batch_size=2, verbose=0) == 16.0
  # Then to 1.8 + .1 * 2 * 3.2 = 2.44; each gives a quarter of 1.44.
  model.fit(x, y, batch_size=2, epochs=1, verbose=0)
  np.testing.assert_allclose(
      model.predict(x, batch_size=2, verbose=0), [[1.72], [1.72]], rtol=1e-6)


def test_a_statistic_is_written_by_each_device(behavior):
  # As the moving mean of a batch norm, which Keras lets TensorFlow reduce.
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      devices=['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    mean = tf.Variable(
        1.0, trainable=False, aggregation=tf.VariableAggregation.MEAN,
        synchronization=tf.VariableSynchronization.ON_READ)
    assert mean.synchronization == tf.VariableSynchronization.ON_WRITE
    assert len(mean.values) == 2
