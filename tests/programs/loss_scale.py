# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A dynamic loss scale around a v1 optimizer."""

from __future__ import annotations

import tensorflow as tf

from tests.programs import by_hand
from tests.programs import keras_losses

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
  """A regression; returns an EstimatorSpec."""
  kernel = tf1.get_variable('kernel', initializer=[[0.5], [-0.25]])
  loss = tf1.losses.mean_squared_error(labels, features @ kernel)
  optimizer = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      tf1.train.MomentumOptimizer(0.125, 0.5),
      tf1.mixed_precision.DynamicLossScale(2.0**10, increment_period=3))
  train_op = optimizer.minimize(loss, tf1.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


PROGRAM = by_hand.Program(
    model_fn, keras_losses.dataset,
    state='Momentum|current_loss_scale|good_steps', rules={'kernel': 0},
    max_norm=0.5)
