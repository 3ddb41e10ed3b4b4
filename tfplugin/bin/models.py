# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Three model_fns as Estimator users write them, with plain v1 optimizers.

They do not use tfplugin: a decorator or a strategy is added from outside.

Params:
  num_classes: the number of digits or words.
  optimizer: a function of no argument that makes the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

tf1 = tf.compat.v1

EMBEDDING_TABLES = ('embedding', 'context')
_WORD_DIMENSIONS = 32
_NUM_NEGATIVES = 64
_IMAGE_SIDE = 8


def mlp(features, labels, mode, params):
  """Classifies images of digits, `[batch, 64]`, with two hidden layers."""
  hidden = tf.nn.relu(dense(features, 128, 'hidden1'))
  hidden = tf.nn.relu(dense(hidden, 64, 'hidden2'))
  logits = dense(hidden, params['num_classes'], 'logits')
  return _classifier_spec(logits, labels, mode, params)


def cnn(features, labels, mode, params):
  """Classifies images of digits, `[batch, 64]`, with two convolutions."""
  images = tf.reshape(features, [-1, _IMAGE_SIDE, _IMAGE_SIDE, 1])
  hidden = tf.nn.relu(_convolution(images, 16, 'convolution1'))
  hidden = tf.nn.max_pool2d(hidden, 2, 2, 'SAME')
  hidden = tf.nn.relu(_convolution(hidden, 32, 'convolution2'))
  hidden = tf.reshape(hidden, [-1, (_IMAGE_SIDE // 2)**2 * 32])
  logits = dense(hidden, params['num_classes'], 'logits')
  return _classifier_spec(logits, labels, mode, params)


def embedding(features, labels, mode, params):
  """Learns word vectors from words, `features`, and their neighbours, `labels`.

  Skip-gram with negative samples that all the batch shares. Evaluation counts
  how often the true neighbour scores higher than the neighbour of another pair.
  """
  num_words = params['num_classes']
  table, context = (
      tf1.get_variable(name, [num_words, _WORD_DIMENSIONS],
                       initializer=tf1.random_uniform_initializer(-0.1, 0.1))
      for name in EMBEDDING_TABLES)
  words = tf.nn.embedding_lookup(table, features)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions={'vectors': words})
  near = tf.reduce_sum(words * tf.nn.embedding_lookup(context, labels), 1)
  loss = tf.reduce_mean(_sampled_loss(words, near, labels, context, num_words))
  # The neighbour in a distant pair: the next pair may have the same word.
  half = tf.shape(labels)[0] // 2
  others = tf.nn.embedding_lookup(context, tf.roll(labels, half, 0))
  is_right = near > tf.reduce_sum(words * others, 1)
  metrics = {
      'accuracy': tf1.metrics.mean(tf.cast(is_right, tf.float32)),
      'max_row_norm': tf1.metrics.mean(
          tf.reduce_max([tf.reduce_max(tf.norm(t, axis=1))
                         for t in (table, context)]))
  }
  return _spec(mode, loss, metrics, params)


class Model(NamedTuple):
  """A model, and the settings with which it learns well.

  Attributes:
    model_fn: See the module for its `params`.
    clip_rules: For variable clipping: the weights that lead into one unit, or
      the vector of one word.
    optimizer: One of `OPTIMIZERS`.
  """

  model_fn: Callable
  clip_rules: dict
  optimizer: str
  learning_rate: float
  batch_size: int
  steps: int


MODELS = {
    'mlp': Model(mlp, {r'/kernel': 0}, 'adam', 2e-3, 32, 5000),
    'cnn': Model(
        cnn, {r'^convolution\d/kernel': (0, 1, 2), r'^logits/kernel': 0},
        'adam', 2e-3, 32, 3000),
    'embedding': Model(
        embedding, {r'^(embedding|context)': 1}, 'adagrad', 0.5, 256, 5000),
}

# Functions from a learning rate to an optimizer.
OPTIMIZERS = {
    'adagrad': tf1.train.AdagradOptimizer,
    'adam': tf1.train.AdamOptimizer,
    'momentum': lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    'sgd': tf1.train.GradientDescentOptimizer,
}


def _sampled_loss(words, near, labels, context, num_words):
  """Returns the loss of each pair, `[batch]`."""
  # Word ids are ranks of frequency, as the sampler's Zipf distribution expects.
  negatives, _, _ = tf.random.log_uniform_candidate_sampler(
      true_classes=tf.cast(labels, tf.int64)[:, tf.newaxis],
      num_true=1,
      num_sampled=_NUM_NEGATIVES,
      unique=False,
      range_max=num_words)
  far = tf.matmul(words, tf.nn.embedding_lookup(context, negatives),
                  transpose_b=True)
  # Weighted as five negatives for each true pair.
  return (tf.nn.softplus(-near) +
          5.0 * tf.reduce_mean(tf.nn.softplus(far), 1))


def dense(inputs: tf.Tensor, units: int, name: str) -> tf.Tensor:
  """Returns a layer without activation, its variables below `name`."""
  with tf1.variable_scope(name):
    kernel = tf1.get_variable('kernel', [inputs.shape[-1], units])
    bias = tf1.get_variable('bias', [units],
                            initializer=tf1.zeros_initializer())
    return tf.matmul(inputs, kernel) + bias


def _convolution(images, filters, name):
  with tf1.variable_scope(name):
    kernel = tf1.get_variable('kernel', [3, 3, images.shape[-1], filters])
    bias = tf1.get_variable('bias', [filters],
                            initializer=tf1.zeros_initializer())
    return tf.nn.conv2d(images, kernel, 1, 'SAME') + bias


def _classifier_spec(logits, labels, mode, params):
  classes = tf.argmax(logits, 1)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(
        mode,
        predictions={
            'classes': classes,
            'probabilities': tf.nn.softmax(logits)
        })
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  metrics = {'accuracy': tf1.metrics.accuracy(labels, classes)}
  return _spec(mode, loss, metrics, params)


def _spec(mode, loss, metrics, params):
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
  train_op = params['optimizer']().minimize(
      loss, global_step=tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
