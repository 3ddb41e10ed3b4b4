# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shape of the official ResNet.

A block with batch normalisation and a shortcut; a loss of its own weights; a
learning rate of the global step; moving statistics in a group with the update.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand

tf1 = tf.compat.v1

_MOMENTUM = 0.75
_DECAY = 0.05


def _values(low, high):
  return lambda shape, **kwargs: tf.constant(
      np.sin(np.linspace(low, high, int(np.prod(shape)))).reshape(shape),
      tf.float32)


def _block(images):
  """Returns logits, and what was normalised."""
  hidden = tf1.layers.conv2d(
      images, 2, 3, padding='same', use_bias=False, name='conv',
      kernel_initializer=_values(0.0, 9.0))
  normalised = tf1.layers.batch_normalization(
      hidden, momentum=_MOMENTUM, training=True, name='norm')
  block = tf.nn.relu(normalised) + images
  logits = tf1.layers.dense(
      tf.reduce_mean(block, axis=[1, 2]), 3, name='dense',
      kernel_initializer=_values(1.0, 5.0))
  return logits, hidden


def _loss(logits, labels):
  """Returns the cross entropy and the decay of all weights but the norm's."""
  cross_entropy = tf1.losses.sparse_softmax_cross_entropy(
      logits=logits, labels=labels)
  return cross_entropy + _DECAY * tf.add_n([
      tf.nn.l2_loss(v) for v in tf1.trainable_variables()
      if 'norm' not in v.name])


def _minimize(loss):
  """The rate falls after the first step that is counted."""
  step = tf1.train.get_or_create_global_step()
  rate = tf1.train.piecewise_constant(step, [0, 2], [0.5, 0.25, 0.125])
  return tf1.train.MomentumOptimizer(rate, 0.5).minimize(loss, step)


def model_fn(features, labels, mode):
  """Tells pictures apart; returns an EstimatorSpec."""
  logits, _ = _block(features)
  loss = _loss(logits, labels)
  updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf.group(_minimize(loss), updates))


def dataset(rows):
  """Four pictures of four points in two colours, repeated."""
  pictures = np.cos(np.arange(32) * 1.3).reshape(4, 2, 2, 2)
  return tf.data.Dataset.from_tensor_slices(
      (pictures.astype(np.float32), [0, 1, 2, 1])).batch(rows).repeat()


def _halves(rule):
  """Normalises each half by itself; moving statistics take the means."""

  def build(features, labels):
    losses, moments = [], []
    with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
      for x, y in zip(tf.split(features, 2), tf.split(labels, 2)):
        logits, hidden = _block(x)
        losses.append(_loss(logits, y))
        moments.append(tf.nn.moments(hidden, [0, 1, 2]))
      # The fused layer estimates: it divides by the count less one.
      count = by_hand.ROWS // 2 * 4
      mean, variance = [tf.add_n(values) / 2 for values in zip(*moments)]
      updates = [
          tf1.get_variable(f'norm/{name}').assign(
              _MOMENTUM * tf1.get_variable(f'norm/{name}') +
              (1 - _MOMENTUM) * value)
          for name, value in (('moving_mean', mean), (
              'moving_variance', variance * count / (count - 1)))]
    with tf.control_dependencies(updates):
      return _minimize(tf.add_n(losses) / 2)

  return by_hand.run_by_hand(build, rule)


PROGRAM = by_hand.Program(
    model_fn, dataset, state='Momentum', rules={'dense/kernel': 0},
    max_norm=0.75, splits={'towers': _halves, 'shards': _halves},
    formulas=dict.fromkeys(('towers', 'shards'), (
        'each half is normalised by itself; moving statistics: the means')))
