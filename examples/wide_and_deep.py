# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recommends the next word: wide and deep columns on a cluster with servers.

A program as it was written for TensorFlow 1: sparse columns, embeddings cut
into parts over the parameter servers, workers that never wait for each other.
Gradients that come too late are dropped, and no word vector grows beyond its
bound. For tfplugin two names changed: the import of `contrib`, and
`train_and_evaluate`, tfplugin's own, which starts and ends all processes in
order.

  tfplugin-launch --workers=2 --ps=2 --evaluator -- \
      python examples/wide_and_deep.py --model_dir=/tmp/recommender
"""

from __future__ import annotations

import re

import numpy as np
import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin import contrib
from tfplugin import estimator as tfplugin_estimator
from tfplugin.bin import datasets

tf1 = tf.compat.v1

_MODEL_DIR = flags.DEFINE_string('model_dir', None, 'Where the model is kept.')
_STEPS = flags.DEFINE_integer('steps', 2000, 'Steps to train for.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 128, 'Rows of one step.')
_STALENESS = flags.DEFINE_integer('staleness', 20,
                                  'How many steps late a gradient may be.')
_MAX_NORM = flags.DEFINE_float('max_norm', 1.5, 'Largest norm of a vector.')

_NUM_WORDS = 500
_CONTEXT = 3
_DIMENSIONS = 16


def make_columns():
  """Returns the columns of the wide and of the deep part."""
  context = tf.feature_column.categorical_column_with_identity(
      'context', _NUM_WORDS)
  last = tf.feature_column.categorical_column_with_identity('last', _NUM_WORDS)
  candidate = tf.feature_column.categorical_column_with_identity(
      'candidate', _NUM_WORDS)
  pair = tf.feature_column.crossed_column([last, candidate], 20_000)
  wide = [candidate, pair]
  deep = [tf.feature_column.embedding_column(c, _DIMENSIONS)
          for c in (context, last, candidate)]
  return wide, deep


def make_logits(features, num_parts):
  """Returns the logits of [rows, 1]; tables are cut into `num_parts` parts."""
  wide, deep = make_columns()
  with tf1.variable_scope(
      'model', partitioner=tf1.fixed_size_partitioner(num_parts)):
    hidden = tf1.feature_column.input_layer(features, deep)
    with tf1.variable_scope('deep', partitioner=None):
      hidden = tf1.layers.dense(hidden, 32, tf.nn.relu, name='hidden')
      logits = tf1.layers.dense(hidden, 1, name='logits')
    return logits + tf1.feature_column.linear_model(features, wide)


def model_fn(features, labels, mode, params):
  """Estimates whether the candidate is the next word."""
  logits = make_logits(features, params['num_parts'])
  score = tf.sigmoid(logits)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions={'score': score})
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    metrics = {'accuracy': tf1.metrics.accuracy(labels, score > 0.5),
               'auc': tf1.metrics.auc(labels, score)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
  tables = [v for v in tf1.trainable_variables()
            if 'embedding_weights' in v.name]
  optimizer = contrib.opt.VariableClippingOptimizer(
      tf1.train.AdagradOptimizer(params['learning_rate']),
      {table: [1] for table in tables}, params['max_norm'])
  optimizer = contrib.opt.DropStaleGradientOptimizer(
      optimizer, params['staleness'])
  train_op = optimizer.minimize(
      loss, global_step=tf1.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def load_rows():
  """Returns features and labels: half true next words, half drawn ones."""
  lines = datasets.find_data_file(datasets.TEXT_FILE).read_text().splitlines()
  words = re.findall(r"[a-z']+", ' '.join(
      line.split(' ', 1)[1] for line in lines).lower())
  names, counts = np.unique(words, return_counts=True)
  frequent = names[np.argsort(-counts, kind='stable')][:_NUM_WORDS]
  ids = {word: index for index, word in enumerate(frequent)}
  text = np.array([ids[word] for word in words if word in ids], np.int64)
  windows = np.lib.stride_tricks.sliding_window_view(text, _CONTEXT + 2)
  random = np.random.RandomState(1)
  drawn = random.permutation(windows[:, -1])
  is_true = random.rand(len(windows)) < 0.5
  features = {
      'context': windows[:, :_CONTEXT],
      'last': windows[:, _CONTEXT],
      'candidate': np.where(is_true, windows[:, -1], drawn),
  }
  return features, is_true.astype(np.float32)[:, np.newaxis]


def make_input_fn(batch_size: int, train: bool):
  """Returns an input_fn; every fifth row is held out for evaluation."""

  def input_fn():
    features, labels = load_rows()
    held_out = np.arange(len(labels)) % 5 == 4
    chosen = ~held_out if train else held_out
    data = tf.data.Dataset.from_tensor_slices(
        ({k: v[chosen] for k, v in features.items()}, labels[chosen]))
    if train:
      data = data.shuffle(50_000).repeat()
    options = tf.data.Options()
    options.autotune.enabled = False  # Or the end takes up to a minute.
    return data.batch(batch_size).map(sparse_context).with_options(options)

  return input_fn


def sparse_context(features, labels):
  """Returns the row with the words of its context as a sparse tensor."""
  context = features['context']
  # Plus one, since `from_dense` takes a 0 for no word.
  places = tf.sparse.from_dense(context + 1)
  sparse = places.with_values(tf.reshape(context, [-1]))
  return {**features, 'context': sparse}, labels


def main(argv):
  del argv
  config = tf.estimator.RunConfig(
      model_dir=_MODEL_DIR.value, tf_random_seed=1, save_checkpoints_secs=10,
      experimental_max_worker_delay_secs=0)
  estimator = tf.estimator.Estimator(
      model_fn, config=config,
      params={'learning_rate': 0.2, 'staleness': _STALENESS.value,
              'max_norm': _MAX_NORM.value,
              'num_parts': max(1, config.num_ps_replicas)})
  metrics = tfplugin_estimator.train_and_evaluate(
      estimator,
      tf.estimator.TrainSpec(make_input_fn(_BATCH_SIZE.value, True),
                             max_steps=_STEPS.value),
      tf.estimator.EvalSpec(make_input_fn(_BATCH_SIZE.value, False), steps=None,
                            start_delay_secs=0, throttle_secs=1))
  if metrics:  # A single process; in a cluster the evaluator logs them.
    print(f'metrics: {metrics}')


if __name__ == '__main__':
  flags.mark_flag_as_required('model_dir')
  logging.set_verbosity(logging.INFO)
  app.run(main)
