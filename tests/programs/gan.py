# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two players with losses of their own, trained by one optimizer."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
  """A generator of one layer and a critic; returns an EstimatorSpec."""
  with tf1.variable_scope('generator'):
    made = tf1.layers.dense(
        features, 2, name='layer', kernel_initializer=(
            tf1.constant_initializer([[0.5, 1.0], [-1.0, 0.25]])))
  with tf1.variable_scope('critic') as scope:
    kernel = tf1.get_variable('kernel', initializer=[[1.0], [-0.5]])
    of_made, of_real = made @ kernel, labels @ kernel
  generator = tf1.trainable_variables('generator')
  critic = tf1.trainable_variables(scope.name)
  critic_loss = tf.reduce_mean(
      of_made - of_real) + 0.5 * tf.reduce_sum(kernel**2)
  generator_loss = tf.reduce_mean(tf.square(of_made - 1.0))
  optimizer = tf1.train.MomentumOptimizer(0.125, 0.5)
  of_critic = optimizer.compute_gradients(critic_loss, critic)
  of_generator = optimizer.compute_gradients(generator_loss, generator)
  # Both see the variables as they were before the step.
  with tf.control_dependencies([g for g, _ in of_critic + of_generator]):
    first = optimizer.apply_gradients(of_critic)
  with tf.control_dependencies([first]):
    train_op = optimizer.apply_gradients(
        of_generator, tf1.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=generator_loss, train_op=train_op)


def dataset(rows):
  """Noise, and a real point beside it, in each of four rows, repeated."""
  noise = np.array([[1, -2], [0.5, 1], [-1.5, 1], [2, 0.25]], np.float32)
  real = np.array([[2, 1], [1.5, 1], [1, 0.5], [2, 2]], np.float32)
  return tf.data.Dataset.from_tensor_slices((noise, real)).batch(rows).repeat()


PROGRAM = by_hand.Program(
    model_fn, dataset, state='Momentum', rules={'kernel': 0}, max_norm=0.75)
