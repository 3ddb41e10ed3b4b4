# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""CrossShardOptimizer in the towers of `replicate_model_fn`."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('by_hand', [False, True])
def test_towers_of_one_model_fn_are_one_shard(by_hand):
  # x = 1, 2, 3, 4 and labels 2 x: the gradient at w = 0 is -2 * mean(2 x**2),
  # -30, and a step at 0.1 ends at 3 however the batch is split.
  @tfplugin.replicate_model_fn(devices=['/cpu:0', '/cpu:1'])
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[0.0]])
    loss = tf1.losses.mean_squared_error(labels, tf.matmul(features, w))
    optimizer = cross_shard.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(0.1))
    step = tf1.train.get_global_step()
    if by_hand:
      gradients = tf.gradients(loss, [w])
      train_op = optimizer.apply_gradients(zip(gradients, [w]), step)
    else:
      train_op = optimizer.minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  def input_fn():
    x = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    return tf1.data.Dataset.from_tensors((x, 2.0 * x))

  config = tf.estimator.RunConfig(session_config=tf1.ConfigProto(
      device_count={'CPU': 2}, allow_soft_placement=True))
  estimator = tf.estimator.Estimator(model_fn, config=config)
  estimator.train(input_fn)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[3.0]], rtol=1e-6)
