# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluators call functions of others."""

from __future__ import annotations

import json

import tensorflow as tf

from tfplugin import _tf_internals


def test_an_evaluator_asks_and_ends(monkeypatch, tmp_path):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': {'chief': ['localhost:1'], 'ps': ['localhost:2']},
       'task': {'type': 'evaluator', 'index': 0}}))
  answers = [True, True, False]
  estimator = tf.estimator.Estimator(lambda features: None, str(tmp_path))
  rounds, waits = [], []

  def evaluate(of_round, once):
    rounds.append(of_round)
    return once()

  with _tf_internals.evaluator_asks(
      lambda: answers.pop(0), evaluate, waits.append):
    # There is no checkpoint: it looks again.
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(lambda: None, max_steps=1),
        tf.estimator.EvalSpec(lambda: None, start_delay_secs=1800,
                              throttle_secs=600))
  assert not answers
  assert rounds == [estimator, estimator]
  assert waits[0] == 1800 and len(waits) == 3
  assert all(500 < secs <= 600 for secs in waits[1:])


def test_saves_are_evaluated_but_for_the_first(tmp_path):
  def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    return tf.compat.v1.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=step)

  def input_fn():
    return tf.data.Dataset.from_tensors(1.0).repeat()

  estimator = tf.compat.v1.estimator.Estimator(
      model_fn, str(tmp_path), tf.estimator.RunConfig(save_checkpoints_steps=2))
  listener = _tf_internals.evaluation_of_saves(
      estimator, tf.estimator.EvalSpec(input_fn, steps=1, throttle_secs=0), 3)
  estimator.train(input_fn, max_steps=3, saving_listeners=[listener])
  (path,) = tmp_path.glob('eval/events*')
  assert {event.step for event in tf.compat.v1.train.summary_iterator(str(path))
          if event.HasField('summary')} == {2, 3}
