# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training that stops early, as its loss does not fall, and goes on.

The hook stops it after the first step, with every strategy too: TensorFlow's
own would stop after the second one there.
"""

from __future__ import annotations

import tensorflow as tf

from tests.programs import by_hand
from tests.programs import keras_losses

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
  """A regression; returns an EstimatorSpec."""
  kernel = tf1.get_variable('kernel', initializer=[[0.5], [-0.25]])
  loss = tf1.losses.mean_squared_error(labels, features @ kernel)
  optimizer = tf1.train.MomentumOptimizer(0.125, 0.5)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=optimizer.minimize(
          loss, tf1.train.get_or_create_global_step()))


def _write_losses(eval_dir):
  """Writes what evaluations leave; they were better at the first step."""
  with tf.Graph().as_default(), tf1.summary.FileWriter(eval_dir) as writer:
    for step, loss in ((1, 1.0), (5, 2.0)):
      writer.add_summary(tf1.Summary(
          value=[tf1.Summary.Value(tag='loss', simple_value=loss)]), step)


def _train(estimator, input_fn, steps, hooks):
  """Trains twice: the hook stops the first training."""
  _write_losses(estimator.eval_dir())
  stop = tf.estimator.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', max_steps_without_decrease=2, run_every_secs=None,
      run_every_steps=1)
  estimator.train(input_fn, hooks=[stop, *hooks])
  estimator.train(input_fn, steps=steps, hooks=hooks)


PROGRAM = by_hand.Program(
    model_fn, keras_losses.dataset, state='Momentum', rules={'kernel': 0},
    max_norm=0.5, stops_after=1, train=_train)
