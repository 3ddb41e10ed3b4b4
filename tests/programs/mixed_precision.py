# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras layers that compute in 16 bits, with variables of 32."""

from __future__ import annotations

import tensorflow as tf

from tests.programs import by_hand
from tests.programs import forms
from tests.programs import keras_losses

tf1 = tf.compat.v1


def _model_fn(features, labels, mode, policy):
  """A regression; returns an EstimatorSpec."""
  output = tf.keras.layers.Dense(
      1, name='dense', dtype=tf.keras.mixed_precision.Policy(policy),
      kernel_initializer=tf1.constant_initializer([[0.5], [-0.25]]))(features)
  loss = tf1.losses.mean_squared_error(labels, tf.cast(output, tf.float32))
  optimizer = tf1.train.MomentumOptimizer(0.125, 0.5)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=optimizer.minimize(
          loss, tf1.train.get_or_create_global_step()))


def _program(policy, rounding, refused=()):

  def model_fn(features, labels, mode):
    return _model_fn(features, labels, mode, policy)

  return by_hand.Program(
      model_fn, keras_losses.dataset, state='Momentum', rules={'kernel': 0},
      max_norm=0.5, tolerance=rounding, refused=dict(refused))


# Keras goes by the classes of strategies, those of towers among them.
FLOAT16 = _program('mixed_float16', 2**-11, refused={
    name: by_hand.Refused('Mixed precision is not supported with',
                          'Keras cannot scale a loss in this strategy')
    for name, form in forms.FORMS.items() if name in (
        'DropStaleGradientStrategy', 'ElasticAverageStrategy',
        'ElasticAverageStrategy(devices)', 'the same over drop stale')
    or form.split and 'replicate' not in name and not (
        form.strategy and form.split in ('shards', 'mirrored'))})
BFLOAT16 = _program('mixed_bfloat16', 2**-8)
