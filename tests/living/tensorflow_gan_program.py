# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the GANEstimator of tensorflow-gan to draw digits.

  python -m tests.living.tensorflow_gan_program
"""

from __future__ import annotations

# isort: off
import tfplugin  # noqa: F401 (the one line that a program adds)
import tensorflow as tf
import tensorflow_gan as tfgan
# isort: on

import numpy as np

from tests.living import digits
from tests.living import trial

tf1 = tf.compat.v1

_STEPS = 20
_NOISE = 16


def generator_fn(noise, mode):
  """Draws, from noise."""
  del mode
  hidden = tf1.layers.dense(noise, 64, tf.nn.relu)
  return tf1.layers.dense(hidden, 64, tf.tanh)


def discriminator_fn(images, conditioning):
  """Judges images."""
  del conditioning
  return tf1.layers.dense(tf1.layers.dense(images, 64, tf.nn.leaky_relu), 1)


def input_fn():
  """Noise, and real images in [-1, 1]."""
  pixels, _ = digits.read()
  noise = np.random.RandomState(0).normal(size=(len(pixels), _NOISE))
  return tf.data.Dataset.from_tensor_slices(
      (noise.astype('float32'), (pixels / 8 - 1).astype('float32'))
      ).batch(digits.BATCH).repeat()


def main():
  estimator = tfgan.estimator.GANEstimator(
      generator_fn=generator_fn, discriminator_fn=discriminator_fn,
      generator_loss_fn=tfgan.losses.wasserstein_generator_loss,
      discriminator_loss_fn=tfgan.losses.wasserstein_discriminator_loss,
      generator_optimizer=lambda: tf1.train.AdamOptimizer(1e-3, 0.5),
      discriminator_optimizer=lambda: tf1.train.AdamOptimizer(1e-3, 0.5),
      config=tf.estimator.RunConfig(tf_random_seed=1), params={})
  result = trial.live(estimator, input_fn, _STEPS, labelled=False)
  # A Wasserstein GAN clips each weight of the critic.
  result['clipped'] = trial.clipped(
      estimator, input_fn, _STEPS, {'Discriminator/dense': []}, 0.01)
  trial.report({'GANEstimator': result})


if __name__ == '__main__':
  main()
