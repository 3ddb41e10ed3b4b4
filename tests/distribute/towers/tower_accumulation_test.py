# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that a model_fn accumulates over steps, in towers.

The usual pattern: add to variables in each step, and apply every second step
in a `tf.cond`.
"""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

_X = np.array([[1.], [2.], [3.], [5.], [4.]], np.float32)


def _accumulate(optimizer, grads_and_vars, step, in_branch=tf.identity):
  sums = [tf1.get_variable(f'sum_{i}', initializer=tf.zeros(v.shape),
                           trainable=False, use_resource=True)
          for i, (_, v) in enumerate(grads_and_vars)]

  def apply():
    update = optimizer.apply_gradients(
        [(in_branch(total.read_value() / 2), v)
         for total, (_, v) in zip(sums, grads_and_vars)])
    with tf.control_dependencies([update]):
      return tf.group(*[total.assign(tf.zeros_like(total)) for total in sums])

  with tf.control_dependencies([
      total.assign_add(g) for total, (g, _) in zip(sums, grads_and_vars)]):
    count = tf.identity(step.assign_add(1))
  return tf.cond(tf.equal(count % 2, 0), apply, tf.no_op)


def _model_fn(features, labels, mode, in_branch=tf.identity):
  w = tf1.get_variable('w', initializer=[[.5]], use_resource=True)
  b = tf1.get_variable('b', initializer=[.5], use_resource=True)
  loss = tf.reduce_mean((features @ w + b - labels) ** 2)
  optimizer = tf1.train.AdamOptimizer(.1)
  train_op = _accumulate(optimizer, optimizer.compute_gradients(loss, [w, b]),
                         tf1.train.get_global_step(), in_branch)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _on_strategy(features, labels, mode):
  strategy = tfplugin.distribute.TowerStrategy(['/cpu:0'] * 2)
  parts = iter([(features[:3], labels[:3]), (features[3:], labels[3:])])
  with strategy.scope():
    values = strategy.experimental_distribute_values_from_function(
        lambda context: next(parts))
    train_op = strategy.run(
        lambda batch: _model_fn(*batch, mode).train_op, args=(values,))
  return tf.estimator.EstimatorSpec(
      mode, loss=tf.constant(0.0),
      train_op=strategy.experimental_local_results(train_op)[0])


def _trajectory(model_fn):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.get_or_create_global_step()
    x = tf1.placeholder_with_default(tf.constant(_X), [None, 1])
    spec = model_fn(x, 2 * x, 'train')
    session.run(tf1.global_variables_initializer())
    weights = []
    for step in range(5):
      session.run(spec.train_op, {x: _X * (step + 1)})
      weights.append(np.concatenate(
          [value.ravel() for value in session.run(tf1.trainable_variables())]))
    return np.array(weights), sorted(v.name for v in tf1.global_variables())


@pytest.mark.parametrize('towers', (
    tfplugin.replicate_model_fn(_model_fn, devices=['/cpu:0'] * 2),
    _on_strategy), ids=('replicate_model_fn', 'TowerStrategy'))
def test_accumulated_gradients_are_those_of_one_device(behavior, towers):
  weights, names = _trajectory(towers)
  expected, expected_names = _trajectory(_model_fn)
  # Adam's first step is its rate: applied at the second of five, and the 4th.
  np.testing.assert_allclose(expected[:3], [[.5, .5], [.6, .6], [.6, .6]])
  np.testing.assert_allclose(weights, expected, rtol=1e-6)
  assert names == expected_names


def _synchronized(features, labels, mode):
  """Collects the gradients of the only worker in an accumulator and a queue."""
  del labels
  w = tf1.get_variable('w', initializer=3.0)
  loss = tf.reduce_mean(w * features)
  optimizer = tf1.train.SyncReplicasOptimizer(
      tf1.train.GradientDescentOptimizer(0.1), 1, 1)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss,
      train_op=optimizer.minimize(loss, tf1.train.get_global_step()),
      training_hooks=[optimizer.make_session_run_hook(True)])


# The session's end cancels the thread that waits for the next gradient.
@pytest.mark.filterwarnings('ignore:Exception in thread QueueRunnerThread')
def test_sync_replicas_optimizer_trains_in_towers(behavior):
  model_fn = tfplugin.replicate_model_fn(_synchronized, devices=['/cpu:0'] * 2)
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    spec = model_fn(tf.constant([0.0, 1.0, 2.0, 3.0]), None, 'train')
    [w] = tf1.trainable_variables()
    with tf1.train.MonitoredSession(
        hooks=spec.training_hooks, stop_grace_period_secs=1) as session:
      for _ in range(100):
        session.run(spec.train_op)
        if session.run(step) >= 3:
          break
      moves = (3 - session.run(w)) / 0.15  # The gradient is the mean, 1.5.
  assert moves >= 2.999
  np.testing.assert_allclose(moves, round(moves), rtol=1e-5)
