# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shape of the official MNIST: a Keras model inside a model_fn.

What it logs are tensors that it names.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand

tf1 = tf.compat.v1

_SIDE, _NUM_CLASSES = 4, 3


def _values(low, high):
  """Initial values that no seed decides."""
  return lambda shape, dtype=None, **kwargs: tf.constant(
      np.sin(np.linspace(low, high, int(np.prod(shape)))).reshape(shape),
      tf.float32)


def create_model():
  """Returns a convolution, a pool and a layer of logits."""
  layers = tf.keras.layers
  return tf.keras.Sequential([
      layers.Reshape((_SIDE, _SIDE, 1), input_shape=(_SIDE * _SIDE,)),
      layers.Conv2D(2, 3, padding='same', activation=tf.nn.relu, name='conv',
                    kernel_initializer=_values(0.0, 7.0)),
      layers.MaxPooling2D(2, 2),
      layers.Flatten(),
      layers.Dense(_NUM_CLASSES, name='logits',
                   kernel_initializer=_values(1.0, 9.0)),
  ])


def model_fn(features, labels, mode):
  """Tells digits apart; returns an EstimatorSpec."""
  logits = create_model()(features, training=True)
  loss = tf1.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
  accuracy = tf1.metrics.accuracy(
      labels=labels, predictions=tf.argmax(logits, axis=1))
  optimizer = tf1.train.AdamOptimizer(0.1, epsilon=1e-3)
  tf.identity(0.1, 'learning_rate')
  tf.identity(loss, 'cross_entropy')
  tf.identity(accuracy[1], 'train_accuracy')
  tf1.summary.scalar('train_accuracy', accuracy[1])
  logged = tf1.train.LoggingTensorHook(
      ['learning_rate', 'cross_entropy', 'train_accuracy'], every_n_iter=2)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, training_hooks=[logged], train_op=optimizer.minimize(
          loss, tf1.train.get_or_create_global_step()))


def dataset(rows):
  """Four pictures, in the order of their digits, repeated."""
  pictures = np.cos(np.arange(4 * _SIDE**2) * 1.7).reshape(4, -1)
  return tf.data.Dataset.from_tensor_slices(
      (pictures.astype(np.float32), [0, 1, 2, 1])).batch(rows).repeat()


PROGRAM = by_hand.Program(
    model_fn, dataset, state='Adam|beta[12]_power', rules={'logits/kernel': 0},
    max_norm=1.5)
