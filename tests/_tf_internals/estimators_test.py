# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Estimators keep private is found where TensorFlow keeps it."""

from __future__ import annotations

import json
import time

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin._tf_internals import estimators

tf1 = tf.compat.v1


def test_the_number_of_shards_is_that_of_the_context_around():
  assert estimators.number_of_tpu_shards() is None
  with estimators.tpu_function.tpu_shard_context(4):
    assert estimators.number_of_tpu_shards() == 4
  assert estimators.number_of_tpu_shards() is None


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


def test_the_first_end_comes_before_that_of_any_hook(tmp_path):
  ends = []

  class Hook(tf.compat.v1.train.SessionRunHook):

    def __init__(self, name):
      self._name = name

    def end(self, session):
      ends.append(self._name)

  def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    return tf.compat.v1.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=step,
        training_chief_hooks=[Hook('of the model')])

  with _tf_internals.first_of_ends(lambda session: ends.append('first')):
    tf.compat.v1.estimator.Estimator(model_fn, str(tmp_path)).train(
        lambda: tf.data.Dataset.from_tensors(1.0), [Hook('of the caller')])
  assert ends == ['first', 'of the model', 'first', 'of the caller']


@pytest.mark.parametrize('is_outer', [True, False])
def test_contexts_of_sessions_are_nested(tmp_path, is_outer):
  """Each sees the arguments of Estimator."""
  ends, received = [], []

  def change(config):
    received.append(config)
    return config

  def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=step)

  contexts = [_tf_internals.first_of_ends(lambda session: ends.append('first')),
              _tf_internals.session_config_through(change)]
  config = tf1.ConfigProto(inter_op_parallelism_threads=2)
  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path), tf.estimator.RunConfig(session_config=config))
  with contexts[is_outer], contexts[not is_outer]:
    estimator.train(lambda: tf.data.Dataset.from_tensors(1.0))
  assert ends and received == [config]


def test_inputs_go_through_a_function(tmp_path):
  read = []

  def input_fn(params):
    return tf.data.Dataset.from_tensors(params['size']).repeat(3)

  def model_fn(features, mode, params):
    del params
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    with tf.control_dependencies([tf.py_function(read.append, [features], [])]):
      return tf.estimator.EstimatorSpec(
          mode, loss=tf.constant(0.0), train_op=tf.identity(step))

  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path), params={'size': 7})
  with _tf_internals.inputs_through(estimator, lambda data: data.take(2)):
    estimator.train(input_fn)
  assert [int(size) for size in read] == [7, 7]
  estimator.train(input_fn)
  assert len(read) == 5


def test_a_timer_goes_on_when_the_hosts_clock_is_set_back(monkeypatch):
  timer = tf1.train.SecondOrStepTimer(every_secs=600)
  monkeypatch.setattr(time, 'time', lambda: 1e9)
  now = [1e9]
  with _tf_internals.timers_by(lambda: now[0]):
    timer.update_last_triggered_step(1)
    monkeypatch.setattr(time, 'time', lambda: 1e9 - 3600)
    now[0] += 599
    assert not timer.should_trigger_for_step(2)
    now[0] += 1
    assert timer.should_trigger_for_step(2)
  # Without it: not before an hour and ten minutes have gone.
  assert not timer.should_trigger_for_step(2)
