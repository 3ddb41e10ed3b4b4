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
from tfplugin import _tf_internals
from tfplugin.distribute.towers import shard_towers
from tfplugin.distribute.towers import tower_context
from tfplugin.distribute.towers import tower_weights

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


def _after_write(method, values):
  """Returns what a variable of 1 holds after each tower wrote its value."""
  def fn(tower):
    v = tf1.get_variable('v', initializer=1.0, trainable=False)
    return getattr(v, method)(tf.constant(values[tower]))

  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      _, (first, _) = strategy.build_towers(
          fn, tower_weights.TowerWeights([.5, .5], [1.0, 1.0]))
    session.run(tf1.global_variables_initializer())
    session.run(first)
    return session.run(tf1.global_variables()[0])


def test_additions_are_averaged(behavior):
  # 1 + (2 + 3) / 2.
  assert _after_write('assign_add', [2.0, 3.0]) == 3.5


def test_values_that_cannot_be_averaged_are_refused(behavior):
  with pytest.raises(ValueError, match='`assign` in several shards'):
    _after_write('assign', [2.0, 3.0])


def test_a_gradient_through_a_total_is_that_of_all_towers(behavior):
  # Losses s and 2 s of s = 1 + 9, weights of one half: a tower's own gradient,
  # times its weight, is d/dx of (s + 2 s) / 2.
  def fn(tower):
    x = tf.constant(3.0 if tower else 1.0)
    s = tf.distribute.get_replica_context().all_reduce('SUM', x * x)
    return tf.gradients((tower + 1.0) * s, [x])[0]

  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      _, gradients = strategy.build_towers(
          fn, tower_weights.TowerWeights([.5, .5], [.5, .5]))
    assert session.run(gradients) == [2 * 1 * 3.0, 2 * 3 * 3.0]


def test_the_devices_around_a_run_are_entered_where_they_are_not(behavior):
  with tf.Graph().as_default():
    with tf1.device('/job:worker'):
      around = _tf_internals.device_functions()
      # As TensorFlow enters them, and then the device of a tower.
      with tf1.device('/device:CPU:0'), tower_context.on_device(
          around, '/device:CPU:1'):
        assert tf.no_op().device == '/job:worker/device:CPU:0'
    with tower_context.on_device(around, '/device:CPU:1'):
      assert tf.no_op().device == '/job:worker/device:CPU:1'
