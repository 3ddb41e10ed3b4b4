# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging under what programs do beside one call of `minimize`."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tfplugin.distribute import graph_order
from tfplugin.estimator import elastic_average

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN


def _estimator(model_fn, directory):
  return tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      model_dir=str(directory), save_checkpoints_steps=100,
      save_summary_steps=None, log_step_count_steps=None))


def _values(estimator):
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


@pytest.mark.parametrize('period', [1, 2, 4])
def test_one_optimizer_applied_twice_in_a_step(behavior, tmp_path, period):
  """Two losses: a step of the session is one step, whatever the period."""
  del behavior

  @elastic_average(communication_period=period, moving_rate=0.5)
  def model_fn(features, mode):
    a, b = [tf1.get_variable(name, initializer=0.0) for name in 'ab']
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    first = optimizer.minimize(
        -a * features, tf1.train.get_global_step(), [a])
    second = optimizer.minimize(-2.0 * b, None, [b])
    return tf.estimator.EstimatorSpec(
        mode, loss=-a, train_op=tf.group(first, second))

  estimator = _estimator(model_fn, tmp_path)
  estimator.train(lambda: tf.data.Dataset.from_tensors(1.0).repeat(4))
  local = center = 0.0
  for step in range(1, 5):
    local += 1.0
    if step % period == 0:
      difference = 0.5 * (local - center)
      local, center = local - difference, center + difference
  assert _values(estimator) == {
      'a': center, 'b': 2 * center, 'global_step': 4 // period}


def test_with_elastic_first_each_call_waits_for_the_exchange(behavior):
  del behavior

  @elastic_average(communication_period=1, update_order='elastic_first')
  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=0.0)
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    return tf.estimator.EstimatorSpec(mode, loss=w + features, train_op=(
        tf.group(*(optimizer.minimize(rate * w) for rate in (1.0, 2.0)))))

  with tf.Graph().as_default() as graph:
    tf1.train.create_global_step()
    decorated_models.call(model_fn, TRAIN, tf.constant(1.0))
    move, = [op for op in graph.get_operations()
             if op.type == 'AssignSubVariableOp']
    updates = [op for op in graph.get_operations()
               if op.type == 'ResourceApplyGradientDescent']
    assert len(updates) == 2
    assert all(move in graph_order.upstream([op]) for op in updates)


def test_statistics_are_exchanged_after_updates_that_nobody_ordered(behavior):
  del behavior
  made = {}

  @elastic_average(communication_period=1, moving_rate=0.5)
  def model_fn(features, labels, mode):
    mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    spec = decorated_models.regression()(features, labels, mode)
    made['update'] = mean.assign_add(
        4.0 + 0.0 * tf.reduce_sum(features)).op
    return spec._replace(train_op=tf.group(spec.train_op, made['update']))

  with tf.Graph().as_default() as graph:
    tf1.train.create_global_step()
    decorated_models.call(model_fn, TRAIN, tf.ones([4, 2]), tf.ones([4, 1]))
    moves = [op for op in graph.get_operations()
             if op.type in ('AssignSub', 'AssignSubVariableOp')]
    assert len(moves) == 3  # The weight, the bias and the mean.
    assert all(made['update'] in graph_order.upstream([op]) for op in moves)
  # 0 -> 4 -> 2, of which the centre has 2 now; -> 6 -> 4, and the centre, too.
  values = decorated_models.train(model_fn, 2)
  assert values['mean'] == values['global_center_variable/mean'] == 4.0


def test_training_that_an_early_stopping_hook_watches_goes_on(
    behavior, tmp_path):
  del behavior
  estimator = _estimator(elastic_average(
      decorated_models.regression(), communication_period=3,
      moving_rate=0.25), tmp_path)
  for steps in (1, 2):
    hook = tf.estimator.experimental.make_early_stopping_hook(
        estimator, lambda: False, run_every_secs=None, run_every_steps=1)
    estimator.train(decorated_models.batches, hooks=[hook])
    assert _values(estimator)['global_step'] == steps


@pytest.mark.parametrize('task_type', ['chief', 'worker'])
def test_slots_made_in_a_condition(behavior, monkeypatch, task_type):
  """Gradients are applied in every other step, as where they accumulate."""
  del behavior
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']},
      'task': {'type': task_type, 'index': 0}}))

  @elastic_average
  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=1.0)
    due = tf.equal(tf1.train.get_global_step() % 2, 0)
    train_op = tf.cond(due, lambda: tf.group(
        tf1.train.AdamOptimizer(0.1).minimize(w * w)), tf.no_op)
    return tf.estimator.EstimatorSpec(
        mode, loss=w * features, train_op=train_op)

  with tf.Graph().as_default():
    tf1.train.create_global_step()
    model_fn(features=tf.constant(1.0), mode=TRAIN,
             config=tf.estimator.RunConfig())
    saved = {v.op.name for v in tf1.global_variables()}
    local = {v.op.name for v in tf1.local_variables()}
  slots = {'w/Adam', 'w/Adam_1'}
  assert slots <= (saved if task_type == 'chief' else local)
  assert {name.split('/')[-1] for name in saved - slots} <= {
      'w', 'global_step', 'beta1_power', 'beta2_power'}
  if task_type == 'worker':
    assert saved == {'w', 'global_step'}
