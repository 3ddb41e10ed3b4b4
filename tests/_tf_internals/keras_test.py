# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Keras runs, updates and reduces is what the functions expect."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests._tf_internals import recording
from tfplugin._tf_internals import keras
from tfplugin._tf_internals import strategies

_X = np.arange(8, dtype=np.float32).reshape(4, 2)
_Y = _X[:, :1]


def _model(optimizer='sgd'):
  model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2])])
  model.compile(optimizer, 'mse')
  return model


def _inferences(strategy):
  return [keras.is_keras_inference(fn) for fn in strategy.extended.calls]


@pytest.mark.parametrize('verb, expected', [
    (lambda model: model.evaluate(_X, _Y, verbose=0), True),
    (lambda model: model.predict(_X, verbose=0), True),
    (lambda model: model.fit(_X, _Y, verbose=0), False),
], ids=['evaluate', 'predict', 'fit'])
def test_inference_is_told_from_training(verb, expected):
  strategy = recording.recording_strategy()
  with strategy.scope():
    model = _model()
  verb(model)
  assert expected in _inferences(strategy)
  assert (not expected) not in _inferences(strategy)


def test_a_function_of_the_users_is_no_inference():
  assert not keras.is_keras_inference(lambda: None)
  assert not keras.is_keras_inference(recording.Recorder())


def _updates(make_optimizer):
  """The functions by which an optimizer has a strategy update a variable."""
  strategy = recording.recording_strategy()
  with strategy.scope():
    variable = tf.Variable([1.0])
    optimizer = make_optimizer(0.5)

  @tf.function
  def apply():
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])

  strategy.run(apply)
  assert strategy.extended.updates
  return strategy.extended.updates


@pytest.mark.parametrize('optimizer', [
    tf.keras.optimizers.SGD, tf.keras.optimizers.legacy.SGD])
def test_the_update_of_a_keras_optimizer_is_from_keras(optimizer):
  # The optimizer also counts its steps, by an assignment.
  updates = [fn for fn in _updates(optimizer)
             if not strategies.is_variable_assignment(fn)]
  assert updates
  for fn in updates:
    assert keras.keras_module_of(fn).startswith(('keras.', 'tf_keras.'))
    assert keras.keras_3_module_of(fn) is None


def test_the_update_of_a_v1_optimizer_is_not_from_keras():
  for fn in _updates(tf.compat.v1.train.GradientDescentOptimizer):
    assert keras.keras_module_of(fn) is None


def test_losses_are_means_where_it_applies():
  strategy = tf.distribute.MirroredStrategy(['/cpu:0'])
  y, loss = tf.constant([[0.0], [0.0]]), tf.keras.losses.MeanSquaredError()
  with strategy.scope():
    with keras.keras_means_of_losses(lambda: True):
      mean = strategy.run(lambda: loss(y, y + [[1.0], [3.0]]))
    assert mean.numpy() == 5.0  # (1 + 9) / 2
    with keras.keras_means_of_losses(lambda: False):
      with pytest.raises(ValueError, match='Reduction'):
        strategy.run(lambda: loss(y, y))


@pytest.mark.parametrize('shape', [[2, 1], [2, 1, 1, 1]])
def test_batch_norm_takes_the_moments_it_is_given(shape):
  # A tensor of four dimensions would go through the fused kernel.
  layer = tf.keras.layers.BatchNormalization(epsilon=0.0)
  x = tf.reshape(tf.constant([3.0, 5.0]), shape)

  def moments(inputs, axes, keep_dims, unused_mask=None):
    total = tf.reduce_sum(inputs, axes, keep_dims)
    return tf.ones_like(total), 4.0 * tf.ones_like(total), 2.0

  with keras.batch_norm_moments(moments, lambda: True):
    y = layer(x, training=True)
  # (x - 1) / sqrt(4)
  np.testing.assert_allclose(y.numpy().ravel(), [1.0, 2.0], rtol=1e-6)
  # The methods are those of Keras again: (x - 4) / sqrt(1).
  y = layer(x, training=True)
  np.testing.assert_allclose(y.numpy().ravel(), [-1.0, 1.0], rtol=1e-6)
