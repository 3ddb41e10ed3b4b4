# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer to guess hidden words, over several shards.

A program as it was written for TensorFlow 1 and TPUEstimator: an Adam with
weight decay made by hand, gradients from `tf.gradients`, clipped by their
global norm, and reduced over the shards by CrossShardOptimizer. For tfplugin
two names changed: the import of `contrib`, and the Estimator's class.

  python examples/transformer_pretraining.py --model_dir=/tmp/words
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
_USE_TPU = flags.DEFINE_bool('use_tpu', False, 'Whether there is a TPU.')
_NUM_SHARDS = flags.DEFINE_integer('num_shards', 2, 'Shards of each batch.')
_STEPS = flags.DEFINE_integer('train_steps', 300, 'Steps to train for.')
_BATCH_SIZE = flags.DEFINE_integer('train_batch_size', 32,
                                   'Rows of one step, over all shards.')

_LENGTH = 16
_NUM_MASKED = 3
_MASK_ID = 0
_WIDTH = 32
_NUM_HEADS = 4
_NUM_LAYERS = 2


class DecayedAdamOptimizer(tf1.train.Optimizer):
  """Adam with decoupled weight decay, and no correction of the bias."""

  def __init__(self, rate, decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6):
    super().__init__(False, 'DecayedAdam')
    self.rate = rate
    self.decay = decay
    self.beta1 = beta1
    self.beta2 = beta2
    self.epsilon = epsilon

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    """Makes the updates by hand, without the base class."""
    updates = []
    for gradient, variable in grads_and_vars:
      if gradient is None:
        continue
      stem = re.sub(':[0-9]+$', '', variable.name)
      mean, square = (
          tf1.get_variable(f'{stem}/{moment}', variable.shape.as_list(),
                           initializer=tf1.zeros_initializer(),
                           trainable=False)
          for moment in ('moment1', 'moment2'))
      gradient = tf.convert_to_tensor(gradient)
      new_mean = self.beta1 * mean + (1 - self.beta1) * gradient
      new_square = self.beta2 * square + (1 - self.beta2) * tf.square(gradient)
      update = new_mean / (tf.sqrt(new_square) + self.epsilon)
      if 'bias' not in stem and 'norm' not in stem:
        update += self.decay * variable
      updates += [mean.assign(new_mean), square.assign(new_square),
                  variable.assign(variable - self.rate * update)]
    return tf.group(*updates, name=name)


def create_train_op(loss, rate, num_steps, use_shards):
  """Returns the op of one training step: clip, reduce, update, count."""
  global_step = tf1.train.get_or_create_global_step()
  rate = tf1.train.polynomial_decay(rate, global_step, num_steps, 0.0)
  optimizer = DecayedAdamOptimizer(rate)
  if use_shards:
    optimizer = contrib.tpu.CrossShardOptimizer(optimizer)
  variables = tf1.trainable_variables()
  gradients = tf.gradients(loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
  update = optimizer.apply_gradients(zip(gradients, variables),
                                     global_step=global_step)
  return tf.group(update, [global_step.assign(global_step + 1)])


def _norm(inputs, name):
  with tf1.variable_scope(name):
    gain = tf1.get_variable('norm_gain', [_WIDTH],
                            initializer=tf1.ones_initializer())
    bias = tf1.get_variable('norm_bias', [_WIDTH],
                            initializer=tf1.zeros_initializer())
  mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
  return (inputs - mean) * tf.math.rsqrt(variance + 1e-6) * gain + bias


def _dense(inputs, units, name, activation=None):
  return tf1.layers.dense(
      inputs, units, activation, name=name,
      kernel_initializer=tf1.truncated_normal_initializer(stddev=0.02))


def _attention(inputs, name):
  """Attends to every position; `[batch, length, width]` in and out."""
  with tf1.variable_scope(name):
    shape = [-1, _LENGTH, _NUM_HEADS, _WIDTH // _NUM_HEADS]
    query, key, value = (
        tf.reshape(_dense(inputs, _WIDTH, part), shape)
        for part in ('query', 'key', 'value'))
    scores = tf.einsum('bqhd,bkhd->bhqk', query, key)
    weights = tf.nn.softmax(scores / np.sqrt(_WIDTH // _NUM_HEADS))
    heads = tf.einsum('bhqk,bkhd->bqhd', weights, value)
    return _dense(tf.reshape(heads, [-1, _LENGTH, _WIDTH]), _WIDTH, 'output')


def encode(words, num_words):
  """Returns the vectors of `words`, and the table of word vectors."""
  initializer = tf1.truncated_normal_initializer(stddev=0.02)
  table = tf1.get_variable('word_vectors', [num_words, _WIDTH],
                           initializer=initializer)
  positions = tf1.get_variable('positions', [_LENGTH, _WIDTH],
                               initializer=initializer)
  hidden = _norm(tf.gather(table, words) + positions, 'input_norm')
  for layer in range(_NUM_LAYERS):
    with tf1.variable_scope(f'layer_{layer}'):
      hidden = _norm(hidden + _attention(hidden, 'attention'), 'norm1')
      wide = _dense(hidden, 4 * _WIDTH, 'wide', tf.nn.gelu)
      hidden = _norm(hidden + _dense(wide, _WIDTH, 'narrow'), 'norm2')
  return hidden, table


def model_fn(features, labels, mode, params):
  """Guesses the words at the hidden places."""
  del labels
  hidden, table = encode(features['words'], params['num_words'])
  hidden = tf.gather(hidden, features['masked_places'], batch_dims=1)
  bias = tf1.get_variable('output_bias', [params['num_words']],
                          initializer=tf1.zeros_initializer())
  logits = tf.einsum('bmw,vw->bmv', hidden, table) + bias
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=features['masked_words'], logits=logits)
  loss = tf.reduce_mean(losses)
  if mode == tf.estimator.ModeKeys.EVAL:

    def metric_fn(logits, masked_words):
      return {'accuracy': tf1.metrics.accuracy(masked_words,
                                               tf.argmax(logits, -1))}

    return tf1.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss,
        eval_metrics=(metric_fn, [logits, features['masked_words']]))
  train_op = create_train_op(loss, params['learning_rate'],
                             params['train_steps'], params['use_shards'])
  return tf1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def load_features():
  """Returns windows of a text with three hidden words each, and word count.

  The hidden places are drawn once, from a fixed seed.
  """
  lines = datasets.find_data_file(datasets.TEXT_FILE).read_text().splitlines()
  words = re.findall(r"[a-z']+", ' '.join(
      line.split(' ', 1)[1] for line in lines).lower())
  names, counts = np.unique(words, return_counts=True)
  frequent = names[np.argsort(-counts, kind='stable')][:998]
  ids = {word: index + 2 for index, word in enumerate(frequent)}
  text = np.array([ids.get(word, 1) for word in words], np.int32)
  rows = text[:len(text) // _LENGTH * _LENGTH].reshape([-1, _LENGTH]).copy()
  random = np.random.RandomState(1)
  places = np.stack([random.permutation(_LENGTH)[:_NUM_MASKED] for _ in rows])
  hidden = np.take_along_axis(rows, places, 1)
  np.put_along_axis(rows, places, _MASK_ID, 1)
  return {'words': rows, 'masked_places': places.astype(np.int32),
          'masked_words': hidden}, 1000


def make_input_fn(features, train):
  """Returns an input_fn that reads its batch size from `params`."""

  def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(features)
    if train:
      data = data.repeat()
    data = data.batch(params['batch_size'], drop_remainder=True)
    options = tf.data.Options()
    options.autotune.enabled = False  # Or the end takes up to a minute.
    data = data.with_options(options)
    return data.map(lambda x: (x, tf.zeros([params['batch_size']])))

  return input_fn


def make_estimator(model_dir, num_shards, batch_size, params):
  """Returns the Estimator that runs `num_shards` shards of each batch."""
  config = tf1.estimator.tpu.RunConfig(
      model_dir=model_dir, tf_random_seed=1,
      tpu_config=tf1.estimator.tpu.TPUConfig(
          num_shards=num_shards, iterations_per_loop=50))
  return tfplugin_estimator.ShardedTPUEstimator(
      model_fn, config=config, use_tpu=_USE_TPU.value,
      train_batch_size=batch_size, eval_batch_size=batch_size,
      params={**params, 'use_shards': num_shards > 1 or _USE_TPU.value})


def main(argv):
  del argv
  features, num_words = load_features()
  estimator = make_estimator(
      _MODEL_DIR.value, _NUM_SHARDS.value, _BATCH_SIZE.value,
      {'num_words': num_words, 'learning_rate': 3e-3,
       'train_steps': _STEPS.value})
  estimator.train(make_input_fn(features, True), max_steps=_STEPS.value)
  metrics = estimator.evaluate(
      make_input_fn(features, False),
      steps=len(features['words']) // _BATCH_SIZE.value)
  print(f"hidden words guessed: {metrics['accuracy']:.4f}")


if __name__ == '__main__':
  flags.mark_flag_as_required('model_dir')
  logging.set_verbosity(logging.INFO)
  app.run(main)
