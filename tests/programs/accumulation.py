# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that are accumulated, and applied in every second step."""

from __future__ import annotations

import tensorflow as tf

from tests.programs import by_hand
from tests.programs import keras_losses

tf1 = tf.compat.v1

_EVERY = 2


def model_fn(features, labels, mode):
  """A regression; returns an EstimatorSpec."""
  kernel = tf1.get_variable('kernel', initializer=[[0.5], [-0.25]])
  loss = tf1.losses.mean_squared_error(labels, features @ kernel)
  optimizer = tf1.train.MomentumOptimizer(0.25, 0.5)
  (gradient, _), = optimizer.compute_gradients(loss, [kernel])
  total = tf1.get_variable(
      'total', shape=[2, 1], initializer=tf1.zeros_initializer(),
      trainable=False)
  count = tf1.get_variable(
      'count', shape=[], dtype=tf.int32, initializer=tf1.zeros_initializer(),
      trainable=False)

  def apply():
    update = optimizer.apply_gradients([(total.read_value(), kernel)])
    with tf.control_dependencies([update]):
      return tf.group(total.assign(tf.zeros_like(total)))

  with tf.control_dependencies(
      [total.assign_add(gradient / _EVERY), count.assign_add(1)]):
    is_due = tf.equal(count.read_value() % _EVERY, 0)
    train_op = tf.cond(is_due, apply, tf.no_op)
  with tf.control_dependencies([train_op]):
    advanced = tf1.train.get_or_create_global_step().assign_add(1).op
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=advanced)


PROGRAM = by_hand.Program(
    model_fn, keras_losses.dataset, state='Momentum', rules={'kernel': 0},
    max_norm=0.5, own_steps=True, applied_every=_EVERY, refused={
        'over mirrored': by_hand.Refused(
            'Devices cannot wait for each other inside a `tf.cond`',
            "TensorFlow's own strategy cannot update inside a branch")})
