# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets adanet grow an ensemble, from networks of its own and from estimators.

  python -m tests.living.adanet_program
"""

from __future__ import annotations

# isort: off
import tfplugin  # noqa: F401 (the one line that a program adds)
import adanet
import tensorflow as tf
from adanet.examples import simple_dnn
# isort: on

from tests.living import digits
from tests.living import trial

tf1 = tf.compat.v1

_STEPS = 20
_COLUMNS = [tf.feature_column.numeric_column('pixels', (64,))]
_SPEC = {'pixels': tf.io.FixedLenFeature([64], tf.float32)}


def input_fn():
  """Which digit is it?"""
  pixels, labels = digits.read()
  return tf.data.Dataset.from_tensor_slices((
      {'pixels': (pixels / 16).astype('float32')}, labels[:, None],
  )).batch(digits.BATCH).repeat()


def head():
  """Returns a head for ten classes."""
  return tf.estimator.MultiClassHead(10)


def candidates(config):
  """Returns estimators of TensorFlow, of which the better one is kept."""
  def sgd():
    return tf.keras.optimizers.legacy.SGD(0.05)

  return {
      'deep': tf.estimator.DNNEstimator(
          head(), [16], _COLUMNS, optimizer=sgd, config=config),
      'linear': tf.estimator.LinearEstimator(
          head(), _COLUMNS, optimizer=sgd, config=config)}


def main():
  config = tf.estimator.RunConfig(tf_random_seed=1)
  grown = adanet.Estimator(
      head=head(), max_iteration_steps=_STEPS // 2, max_iterations=2,
      subnetwork_generator=simple_dnn.Generator(
          _COLUMNS, optimizer=tf1.train.AdagradOptimizer(0.1), layer_size=16),
      config=config)
  mixed = adanet.AutoEnsembleEstimator(
      head=head(), candidate_pool=candidates, max_iteration_steps=_STEPS // 2,
      config=config)
  serving = (
      tf.estimator.export.build_parsing_serving_input_receiver_fn(_SPEC))
  trial.report({
      'Estimator': trial.live(grown, input_fn, _STEPS, serving),
      'AutoEnsembleEstimator': trial.live(mixed, input_fn, _STEPS, serving)})


if __name__ == '__main__':
  main()
