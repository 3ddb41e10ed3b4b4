# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the programs' model_fns: learning, predictions, imports."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import models

tf1 = tf.compat.v1

_MODES = tf.estimator.ModeKeys


def _params(num_classes=10):
  return {'num_classes': num_classes,
          'optimizer': lambda: tf1.train.GradientDescentOptimizer(0.1)}


def _train(model_fn, features, labels, params, steps=30):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.set_random_seed(0)
    step = tf1.train.create_global_step()
    spec = model_fn(tf.constant(features), tf.constant(labels), _MODES.TRAIN,
                    params)
    session.run(tf1.global_variables_initializer())
    losses = [session.run([spec.loss, spec.train_op])[0] for _ in range(steps)]
    return losses, session.run(step)


@pytest.mark.parametrize('name', ['mlp', 'cnn'])
def test_a_classifier_learns_its_batch(behavior, name):
  images = np.random.rand(20, 64).astype(np.float32)
  labels = np.arange(20, dtype=np.int32) % 10
  losses, step = _train(models.MODELS[name].model_fn, images, labels, _params())
  assert losses[-1] < losses[0]
  assert step == 30


def test_word_vectors_learn_their_pairs(behavior):
  words = np.arange(20, dtype=np.int32)
  losses, _ = _train(models.embedding, words, (words + 1) % 20, _params(20))
  # At first all scores are near 0: log 2 for the pair, 5 log 2 for the others.
  assert losses[0] == pytest.approx(6 * np.log(2), rel=0.01)
  assert losses[-1] < losses[0]


def test_the_gradients_of_word_vectors_are_sparse():
  with tf.Graph().as_default():
    seen = []

    class Recorder(tf1.train.GradientDescentOptimizer):
      """Keeps the gradients."""

      def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        seen.extend(gradient for gradient, _ in grads_and_vars)
        return super().apply_gradients(grads_and_vars, global_step, name)

    tf1.train.create_global_step()
    models.embedding(tf.constant([1, 2]), tf.constant([3, 4]), _MODES.TRAIN,
                     {**_params(20), 'optimizer': lambda: Recorder(0.1)})
  assert len(seen) == 2
  assert all(isinstance(gradient, tf.IndexedSlices) for gradient in seen)


@pytest.mark.parametrize('name, keys', [
    ('mlp', {'classes', 'probabilities'}), ('embedding', {'vectors'})])
def test_predictions_need_no_labels(name, keys):
  features = (tf.zeros([2, 64]) if name == 'mlp' else tf.zeros([2], tf.int32))
  with tf.Graph().as_default():
    features = tf.constant(features.numpy())
    spec = models.MODELS[name].model_fn(features, None, _MODES.PREDICT,
                                        _params())
  assert set(spec.predictions) == keys


def test_the_models_import_nothing_of_tfplugin(tmp_path):
  # A copy, so that Python does not import the package that holds it.
  copy = shutil.copy(models.__file__, tmp_path / 'copied_models.py')
  imported = subprocess.run(
      [sys.executable, '-c', 'import sys, copied_models; '
       'print(copied_models.MODELS.keys(), *sys.modules)'],
      cwd=pathlib.Path(copy).parent, capture_output=True, text=True, check=True,
      timeout=120).stdout.split()
  assert 'copied_models' in imported
  assert not [name for name in imported if name.startswith('tfplugin')]
