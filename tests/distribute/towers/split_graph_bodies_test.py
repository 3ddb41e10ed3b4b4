# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients by rows that a loop, branch or function takes in towers."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.testing import one_device

tf1 = tf.compat.v1

_RANDOM = np.random.RandomState(0)
_X = _RANDOM.randn(7, 3).astype(np.float32)
_Y = _RANDOM.rand(7, 2).astype(np.float32)
_CPUS = ['/cpu:0'] * 3


def _hessian(row, hidden):
  of_hidden, = tf.hessians(tf.reduce_sum(row ** 2), hidden)
  return tf.stop_gradient(of_hidden)


def _in_map(row, hidden):
  gradient, = tf.gradients(row, hidden)
  return tf.map_fn(lambda i: tf.gradients(
      tf.reduce_sum(gradient[:, i]), hidden)[0], tf.range(2), tf.float32)


def _in_function(row, hidden):
  gradient, = tf.gradients(row, hidden)
  return tf.function(lambda: tf.gradients(
      tf.reduce_sum(gradient ** 2), hidden)[0])()


def _in_branch(row, hidden):
  # By way of the loss of all towers, of a gradient, and of the rows.
  gradient, = tf.gradients(row, hidden)

  def branch():
    total = tf.reduce_sum(row) * tf.reduce_sum(hidden[0] ** 3) + (
        tf.reduce_sum(gradient ** 2))
    return tf.gradients(total, hidden)[0]

  return tf.cond(tf.reduce_sum(row) > 0, branch, lambda: hidden)


def _jacobian(row, hidden):
  # Shape inference of `TanhGrad` sees only one of its inputs.
  del row
  with tf.GradientTape() as tape:
    tape.watch(hidden)
    result = tf.tanh(hidden @ [[1., -1., 2.], [0.5, 1., 3.]])
  return tape.batch_jacobian(result, hidden)


def _model_fn(features, labels, mode, params):
  hidden = tf.tanh(tf1.layers.dense(
      features, 2, kernel_initializer=tf1.initializers.random_normal(seed=1)))
  row = tf.reduce_sum(tf.square(hidden - labels), 1, keepdims=True)
  found = params['use'](row, hidden)
  loss = tf.reduce_mean(tf.square(found)) + tf.reduce_mean(row)
  train_op = tf1.train.GradientDescentOptimizer(.1).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.filterwarnings('ignore:`tf.layers')
@pytest.mark.parametrize('drop_remainder', (False, True))
@pytest.mark.parametrize('use', (
    _hessian, _in_map, _in_function, _in_branch, _jacobian))
def test_gradients_in_a_body(behavior, use, drop_remainder):
  one_device.assert_equals_one_device(
      _model_fn, lambda: tf.data.Dataset.from_tensor_slices((_X, _Y)).batch(
          7, drop_remainder).repeat(), _CPUS, steps=1, params={'use': use},
      modes=['train'])
