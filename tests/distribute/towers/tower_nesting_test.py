# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrappers that apply in a branch build their towers inside other towers.

With x = 1, 2, labels 2 x and w = v = 0 the gradients of the summed squares of
2 x - w x - v are -2 * (1 * 2 + 2 * 4) = -20 for w and -2 * (2 + 4) = -12 for v.
The model doubles both; the rate is 0.01.
"""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1
SUM = tf1.losses.Reduction.SUM
DEVICES = ['/cpu:0', '/cpu:1']


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.01)


def _model_fn(features, labels, mode):
  w = tf1.get_variable('w', initializer=[[0.0]])
  v = tf1.get_variable('v', initializer=[[0.0]])
  loss = tf.reduce_sum(tf.square(labels - features @ w - v))
  of_w, of_v = tf.gradients(loss, [w, v])
  first = tfplugin.DropStaleGradientOptimizer(_sgd(), 0).apply_gradients(
      [(2.0 * of_w, w)], tf1.train.get_global_step())
  second = _sgd().apply_gradients([(2.0 * of_v, v)])
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf.group(first, second))


def _input_fn():
  x = np.array([[1.0], [2.0]], np.float32)
  return tf.data.Dataset.from_tensors((x, 2 * x)).repeat(2)


def _values(estimator):
  estimator.train(_input_fn, steps=1)
  return [float(estimator.get_variable_value(name)[0, 0]) for name in 'wv']


def test_summed_losses_are_summed_once_in_one_batch(behavior):
  estimator = tf.estimator.Estimator(
      tfplugin.replicate_model_fn(_model_fn, SUM, DEVICES))
  assert _values(estimator) == pytest.approx([0.4, 0.24])


def test_summed_losses_are_summed_once_over_a_batch_each(behavior):
  strategy = tfplugin.distribute.TowerStrategy(DEVICES, loss_reduction=SUM)
  estimator = tf.estimator.Estimator(
      _model_fn, config=tf.estimator.RunConfig(train_distribute=strategy))
  assert _values(estimator) == pytest.approx([0.8, 0.48])
