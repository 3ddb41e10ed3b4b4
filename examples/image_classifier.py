# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Classifies hand-written digits with a Keras model on several towers.

A program as it was written for TensorFlow 1: the model is a Keras model, the
training is an Estimator's, and each batch is split over the devices of one
host. For tfplugin one line changed: the import of `contrib`.

  python examples/image_classifier.py --model_dir=/tmp/digits --num_towers=2
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin import contrib
from tfplugin.bin import datasets

tf1 = tf.compat.v1

_MODEL_DIR = flags.DEFINE_string('model_dir', None, 'Where the model is kept.')
_NUM_TOWERS = flags.DEFINE_integer('num_towers', 2, 'CPU devices to use.')
_STEPS = flags.DEFINE_integer('steps', 600, 'Steps to train for.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 50, 'Rows of one step.')


def make_model() -> tf.keras.Model:
  """Returns a small convolutional network, `[batch, 64]` to `[batch, 10]`."""
  return tf.keras.Sequential([
      tf.keras.layers.Reshape([8, 8, 1], input_shape=[64]),
      tf.keras.layers.Conv2D(16, 3, padding='same', activation='relu'),
      tf.keras.layers.MaxPooling2D(2),
      tf.keras.layers.Conv2D(32, 3, padding='same', activation='relu'),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(10),
  ])


def model_fn(features, labels, mode, params):
  """Trains, evaluates and serves the Keras model."""
  logits = make_model()(features['image'],
                        training=mode == tf.estimator.ModeKeys.TRAIN)
  predictions = {
      'classes': tf.argmax(logits, axis=1),
      'probabilities': tf.nn.softmax(logits),
  }
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(
        mode,
        predictions=predictions,
        export_outputs={
            'classify': tf.estimator.export.PredictOutput(predictions)
        })
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    accuracy = tf1.metrics.accuracy(labels, predictions['classes'])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops={'accuracy': accuracy})
  optimizer = tf1.train.AdamOptimizer(params['learning_rate'])
  if params['num_towers'] > 1:
    optimizer = contrib.estimator.TowerOptimizer(optimizer)
  train_op = optimizer.minimize(loss, tf1.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def make_estimator(model_dir: str, num_towers: int) -> tf.estimator.Estimator:
  """Returns an Estimator that splits each batch over `num_towers` CPUs."""
  replicated = model_fn
  if num_towers > 1:
    replicated = contrib.estimator.replicate_model_fn(
        model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)])
  config = tf.estimator.RunConfig(
      tf_random_seed=1,
      session_config=tf1.ConfigProto(device_count={'CPU': num_towers},
                                     allow_soft_placement=True))
  return tf.estimator.Estimator(
      replicated, model_dir, config,
      params={'learning_rate': 2e-3, 'num_towers': num_towers})


def make_input_fn(examples: datasets.Examples, batch_size: int, train: bool):
  """Returns an input_fn over `examples`; the last batch may be smaller."""

  def input_fn():
    rows = ({'image': examples.inputs.astype(np.float32)}, examples.labels)
    data = tf.data.Dataset.from_tensor_slices(rows)
    if train:
      data = data.shuffle(len(examples.labels), seed=1).repeat()
    options = tf.data.Options()
    options.autotune.enabled = False  # Or the end takes up to a minute.
    return data.batch(batch_size).with_options(options)

  return input_fn


def serving_input_fn():
  """Receives `[batch, 64]` images, any number of them."""
  image = tf1.placeholder(tf.float32, [None, 64], name='image')
  features = {'image': image}
  return tf.estimator.export.ServingInputReceiver(features, features)


def main(argv):
  del argv
  split = datasets.load_digits()
  estimator = make_estimator(_MODEL_DIR.value, _NUM_TOWERS.value)
  estimator.train(make_input_fn(split.train, _BATCH_SIZE.value, True),
                  max_steps=_STEPS.value)
  metrics = estimator.evaluate(
      make_input_fn(split.test, _BATCH_SIZE.value, False))
  print(f"accuracy: {metrics['accuracy']:.4f}")
  path = estimator.export_saved_model(f'{_MODEL_DIR.value}/export',
                                      serving_input_fn)
  print(f'exported to: {path.decode()}')


if __name__ == '__main__':
  flags.mark_flag_as_required('model_dir')
  logging.set_verbosity(logging.INFO)
  app.run(main)
