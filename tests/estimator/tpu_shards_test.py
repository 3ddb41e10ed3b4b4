# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn over shards, in a plain Estimator, with numbers by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1
_X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


def _model_fn(features, labels, mode, params):
  assert params['batch_size'] == 2
  w = tf1.get_variable('w', initializer=[[0.0]])
  y = tf.matmul(features, w)
  loss = tf.reduce_mean(tf.square(labels - y))
  if mode == tf.estimator.ModeKeys.EVAL:
    largest = tf1.metrics.mean(tf.reduce_max(labels))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops={'largest': largest})
  train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.usefixtures('behavior')
def test_estimator_specs_are_joined_too(tmp_path):
  estimator = tf.estimator.Estimator(
      tpu_shards.shard_model_fn(_model_fn, 2, ['/cpu:0']), str(tmp_path),
      params={'batch_size': 4})

  def input_fn():
    return tf1.data.Dataset.from_tensors((_X, 2.0 * _X))

  estimator.train(input_fn)
  # 0.1 * 2 * mean(x * 2 x) = 0.1 * 60 * 2 / 4.
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[3.0]], rtol=1e-6)
  metrics = estimator.evaluate(input_fn)
  # Errors are x: mean(1, 4, 9, 16); each shard adds its own largest label.
  assert metrics['loss'] == pytest.approx(7.5)
  assert metrics['largest'] == pytest.approx((4.0 + 8.0) / 2)
