# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shape of DeepFM: a sum as loss, and then a mean of it for a metric."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand

tf1 = tf.compat.v1

_NUM_ITEMS, _WIDTH = 6, 2
_DECAY = 0.1


def _logits(items):
  """Linear weights, a factorisation machine, and one layer."""

  def table(name, width):
    size = _NUM_ITEMS * width
    return tf1.get_variable(
        name, initializer=tf.constant(np.sin(np.arange(1.0, 1 + size)).reshape(
            _NUM_ITEMS, width), tf.float32), regularizer=lambda values: (
                _DECAY * tf.nn.l2_loss(values)))

  with tf1.variable_scope('linear'):
    linear = tf.reduce_sum(tf.gather(table('weights', 1), items), axis=1)
  with tf1.variable_scope('dnn'):
    vectors = tf.gather(table('vectors', _WIDTH), items)
    pairs = 0.5 * tf.reduce_sum(
        tf.reduce_sum(vectors, axis=1)**2 - tf.reduce_sum(vectors**2, axis=1),
        axis=1, keepdims=True)
    deep = tf1.layers.dense(
        tf.reshape(vectors, [-1, 2 * _WIDTH]), 1, name='layer',
        kernel_initializer=tf1.constant_initializer(0.5))
  return linear + pairs + deep


def _train_op(loss):
  """One optimizer for each part; the step comes after both."""
  updates = [
      optimizer.minimize(loss, var_list=tf1.trainable_variables(scope))
      for scope, optimizer in (
          ('linear', tf1.train.FtrlOptimizer(0.2)),
          ('dnn', tf1.train.AdagradOptimizer(0.1)))]
  with tf.control_dependencies(updates):
    return tf1.train.get_or_create_global_step().assign_add(1).op


def _cross_entropy(logits, labels, reduction):
  return tf1.losses.sigmoid_cross_entropy(labels, logits, reduction=reduction)


def model_fn(features, labels, mode):
  """Guesses clicks; returns an EstimatorSpec."""
  logits = _logits(features)
  loss = _cross_entropy(logits, labels, tf1.losses.Reduction.SUM)
  loss += tf1.losses.get_regularization_loss()
  # The last loss that is built says how losses are reduced, to TensorFlow.
  mean = _cross_entropy(logits, labels, tf1.losses.Reduction.MEAN)
  tf1.summary.scalar('mean_loss', mean)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=_train_op(loss))


def dataset(rows):
  """Two items and a click in each of four rows, repeated."""
  items = np.array([[0, 1], [2, 3], [1, 4], [5, 0]])
  clicks = np.array([[1.0], [0.0], [0.0], [1.0]], np.float32)
  return tf.data.Dataset.from_tensor_slices((items, clicks)).batch(
      rows).repeat()


def _half_of_the_sum(rule):

  def build(features, labels):
    loss = _cross_entropy(_logits(features), labels, tf1.losses.Reduction.SUM)
    return _train_op(0.5 * loss + tf1.losses.get_regularization_loss())

  return by_hand.run_by_hand(build, rule)


PROGRAM = by_hand.Program(
    model_fn, dataset, state='Ftrl|Adagrad', rules={'vectors': 1}, max_norm=0.7,
    own_steps=True, splits={'mirrored': _half_of_the_sum},
    formulas={'mirrored': 'half of the sum, and the regularisation: TensorFlow '
                          'uses the reduction of the last loss that is built'})
