# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws digits with a generator and a discriminator, each with an optimizer.

A program as it was written for TensorFlow 1: one model_fn, two optimizers that
take turns in one train_op. On several towers each optimizer is wrapped. For
tfplugin one line changed: the import of `contrib`.

  python examples/gan.py --model_dir=/tmp/gan --num_towers=2
"""

from __future__ import annotations

import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin import contrib
from tfplugin.bin import datasets

tf1 = tf.compat.v1

_MODEL_DIR = flags.DEFINE_string('model_dir', None, 'Where the model is kept.')
_NUM_TOWERS = flags.DEFINE_integer('num_towers', 2, 'CPU devices to use.')
_STEPS = flags.DEFINE_integer('steps', 1000, 'Steps to train for.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 64, 'Rows of one step.')

_NOISE = 16


def generator(noise):
  """Turns noise, `[batch, 16]`, into images, `[batch, 64]` in (0, 1)."""
  with tf1.variable_scope('generator', reuse=tf1.AUTO_REUSE):
    hidden = tf1.layers.dense(noise, 64, tf.nn.leaky_relu, name='hidden')
    return tf1.layers.dense(hidden, 64, tf.nn.sigmoid, name='image')


def discriminator(images):
  """Returns a logit for each image, `[batch, 1]`: large where it seems real."""
  with tf1.variable_scope('discriminator', reuse=tf1.AUTO_REUSE):
    hidden = tf1.layers.dense(images, 64, tf.nn.leaky_relu, name='hidden')
    return tf1.layers.dense(hidden, 1, name='logit')


def model_fn(features, mode, params):
  """Plays one round of the game."""
  fake = generator(features['noise'])
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions={'image': fake})
  real_logit = discriminator(features['image'])
  fake_logit = discriminator(fake)
  judge_loss = (
      tf1.losses.sigmoid_cross_entropy(tf.ones_like(real_logit), real_logit) +
      tf1.losses.sigmoid_cross_entropy(tf.zeros_like(fake_logit), fake_logit))
  maker_loss = tf1.losses.sigmoid_cross_entropy(
      tf.ones_like(fake_logit), fake_logit)
  if mode == tf.estimator.ModeKeys.EVAL:
    metrics = {
        'real_seems_real': tf1.metrics.mean(tf.sigmoid(real_logit)),
        'fake_seems_real': tf1.metrics.mean(tf.sigmoid(fake_logit)),
    }
    return tf.estimator.EstimatorSpec(
        mode, loss=judge_loss + maker_loss, eval_metric_ops=metrics)
  return tf.estimator.EstimatorSpec(
      mode, loss=judge_loss + maker_loss,
      train_op=_train_op(judge_loss, maker_loss, params))


def _train_op(judge_loss, maker_loss, params):
  judge, maker = (tf1.train.AdamOptimizer(params['learning_rate'], beta1=0.5)
                  for _ in range(2))
  if params['num_towers'] > 1:
    judge = contrib.estimator.TowerOptimizer(judge)
    maker = contrib.estimator.TowerOptimizer(maker)
  judge_grads = judge.compute_gradients(
      judge_loss, tf1.trainable_variables('discriminator'))
  maker_grads = maker.compute_gradients(
      maker_loss, tf1.trainable_variables('generator'))
  # Each plays against the other as it was before this round.
  with tf.control_dependencies(
      [gradient for gradient, _ in judge_grads + maker_grads]):
    judge_op = judge.apply_gradients(judge_grads)
    maker_op = maker.apply_gradients(
        maker_grads, tf1.train.get_or_create_global_step())
  return tf.group(judge_op, maker_op)


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
      params={'learning_rate': 1e-3, 'num_towers': num_towers})


def make_input_fn(examples: datasets.Examples, batch_size: int, train: bool):
  """Returns an input_fn of real images, each with noise for a false one."""

  def input_fn():
    data = tf.data.Dataset.from_tensor_slices(examples.inputs)
    if train:
      data = data.shuffle(len(examples.labels), seed=1).repeat()
    data = data.batch(batch_size)
    noise = tf.data.Dataset.random(seed=1).map(
        lambda seed: tf.random.stateless_normal(
            [batch_size, _NOISE], tf.stack([seed, seed])))
    options = tf.data.Options()
    options.autotune.enabled = False  # Or the end takes up to a minute.
    return tf.data.Dataset.zip((data, noise)).map(
        lambda image, noise: {'image': image,
                              'noise': noise[:tf.shape(image)[0]]}
    ).with_options(options)

  return input_fn


def main(argv):
  del argv
  split = datasets.load_digits()
  estimator = make_estimator(_MODEL_DIR.value, _NUM_TOWERS.value)
  estimator.train(make_input_fn(split.train, _BATCH_SIZE.value, True),
                  max_steps=_STEPS.value)
  metrics = estimator.evaluate(
      make_input_fn(split.test, _BATCH_SIZE.value, False))
  print(f"real images seem real: {metrics['real_seems_real']:.3f}, "
        f"drawn ones: {metrics['fake_seems_real']:.3f}")


if __name__ == '__main__':
  flags.mark_flag_as_required('model_dir')
  logging.set_verbosity(logging.INFO)
  app.run(main)
