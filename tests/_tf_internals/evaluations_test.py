# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's evaluator asks before each round."""

import json

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1


def test_an_evaluator_asks_and_ends(monkeypatch, tmp_path):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': {'chief': ['localhost:1'], 'ps': ['localhost:2']},
       'task': {'type': 'evaluator', 'index': 0}}))
  answers = [True, True, False]
  estimator = tf.estimator.Estimator(lambda features: None, str(tmp_path))
  with _tf_internals.evaluator_asks(lambda: answers.pop(0)):
    # There is no checkpoint: it looks again.
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(lambda: None, max_steps=1),
        tf.estimator.EvalSpec(lambda: None, start_delay_secs=0,
                              throttle_secs=0))
  assert not answers
