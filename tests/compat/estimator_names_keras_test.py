# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn may use one Keras only: that whose variables are found again."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1
_IS_KERAS_3 = keras.__version__.startswith('3.')


def _input_fn():
  return tf.data.Dataset.from_tensors(({'x': np.ones([2, 1], np.float32)},
                                       np.ones([2, 1], np.float32)))


def _estimator(make_layer, directory):
  def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.square(make_layer()(features['x']) - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
  return tf.estimator.Estimator(model_fn, str(directory))


def test_the_keras_of_tensorflow_is_found_again(tmp_path):
  estimator = _estimator(lambda: tf.keras.layers.Dense(
      1, kernel_initializer='zeros', use_bias=False), tmp_path)
  estimator.train(_input_fn, steps=1)
  # v = 0 - .1 * 2 * (0 - 1) = .2, and the loss (.2 - 1) ** 2.
  np.testing.assert_allclose(
      estimator.evaluate(_input_fn, steps=1)['loss'], 0.64, rtol=1e-6)


def test_keras_3_is_refused_with_the_remedy(tmp_path):
  estimator = _estimator(lambda: keras.layers.Dense(1), tmp_path)
  if not _IS_KERAS_3:
    estimator.train(_input_fn, steps=1)  # It is `tf.keras`.
    return
  with pytest.raises(ValueError, match='must not use Keras 3') as error:
    estimator.train(_input_fn, steps=1)
  assert 'pip install tf-keras' in str(error.value)


def test_keras_3_outside_of_a_model_fn_is_left_alone():
  with tf.Graph().as_default():
    assert keras.layers.Dense(1)(tf.ones([2, 1])).shape == [2, 1]


def test_a_model_of_keras_3_is_no_model_for_estimator():
  if not _IS_KERAS_3:
    assert keras.Model is tf.keras.Model
    return
  model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
  model.compile('sgd', 'mse')
  with pytest.raises(TypeError, match='must be a model of Keras 2'):
    tf.keras.estimator.model_to_estimator(model)


def test_a_model_of_tensorflows_keras_is_one(tmp_path):
  model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
  model.compile('sgd', 'mse')
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # Estimator sets a learning phase.
    assert tf.keras.estimator.model_to_estimator(
        model, model_dir=str(tmp_path))
