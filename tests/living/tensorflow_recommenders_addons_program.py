# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a model_fn with tables of tensorflow-recommenders-addons.

  python -m tests.living.tensorflow_recommenders_addons_program
"""

from __future__ import annotations

# isort: off
import tfplugin  # noqa: F401 (the one line that a program adds)
import tensorflow as tf
from tensorflow_recommenders_addons import dynamic_embedding as de
# isort: on

from tests.living import digits
from tests.living import trial

tf1 = tf.compat.v1

_STEPS = 20


def input_fn():
  """Is the digit five or more? A pixel and its shade are one key."""
  pixels, labels = digits.read()
  keys = pixels.astype('int64') + 17 * tf.range(64, dtype=tf.int64)[None]
  return tf.data.Dataset.from_tensor_slices((
      {'keys': keys}, (labels >= 5).astype('float32')[:, None],
  )).batch(digits.BATCH).repeat()


def model_fn(features, labels, mode):
  """A sum of what tables that grow have for the keys."""
  table = de.get_variable('shades', key_dtype=tf.int64, dim=4, initializer=0.0)
  rows = de.embedding_lookup(table, features['keys'], name='lookup')
  rows = tf.reshape(rows, [-1, 64 * 4])
  weights = tf1.get_variable('weights', [64 * 4, 1])
  logits = tf.matmul(rows, weights)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, {'five': tf.sigmoid(logits)})
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
  optimizer = de.DynamicEmbeddingOptimizer(tf1.train.AdamOptimizer(0.05))
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, eval_metric_ops={
          'auc': tf1.metrics.auc(labels, tf.sigmoid(logits))},
      train_op=optimizer.minimize(loss, tf1.train.get_global_step()))


def main():
  estimator = tf.estimator.Estimator(
      model_fn, config=tf.estimator.RunConfig(tf_random_seed=1))
  serving = (
      tf.estimator.export.build_parsing_serving_input_receiver_fn(
          {'keys': tf.io.FixedLenFeature([64], tf.int64)}))
  result = trial.live(estimator, input_fn, _STEPS, serving)
  result['clipped'] = trial.clipped(
      estimator, input_fn, _STEPS, {'weights': 0}, 0.5, 'shades')
  trial.report({'dynamic_embedding': result})


if __name__ == '__main__':
  main()
