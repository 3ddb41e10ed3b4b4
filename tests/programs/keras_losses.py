# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras layers and losses, with a v1 optimizer."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand
from tests.programs import forms

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
  """A regression; returns an EstimatorSpec."""
  output = tf.keras.layers.Dense(
      1, name='dense', kernel_initializer=tf1.constant_initializer(
          [[0.5], [-0.25]]))(features)
  # The default reduction: the mean of the batch.
  loss = tf.keras.losses.MeanSquaredError()(labels, output)
  optimizer = tf1.train.MomentumOptimizer(0.1, 0.5)
  train_op = optimizer.minimize(loss, tf1.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def dataset(rows):
  """Two features and a number in each of four rows, repeated."""
  features = np.array([[1, -2], [0.5, 3], [-1.5, 1], [2, 0.25]], np.float32)
  return tf.data.Dataset.from_tensor_slices(
      (features, features @ np.array([[1.0], [-1.0]], np.float32))).batch(
          rows).repeat()


# Right in towers, to which Keras says the same.
_REFUSED = {
    name: by_hand.Refused('Reduction.SUM', 'Keras refuses a loss that is a '
                          'mean in this strategy')
    for name, form in forms.FORMS.items()
    if form.strategy and form.split != 'towers'}
PROGRAM = by_hand.Program(
    model_fn, dataset, state='Momentum', rules={'kernel': 0}, max_norm=0.5,
    refused=_REFUSED)
