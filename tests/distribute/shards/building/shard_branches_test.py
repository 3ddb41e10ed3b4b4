# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches of a `tf.cond` in shards that share their variables."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import estimator as estimator_lib
from tfplugin.distribute.shards import shared_shards
from tfplugin.testing import devices
from tfplugin.testing import one_device

tf1 = tf.compat.v1


def _build(fn):
  return shared_shards.SharedShards(['/cpu:0', '/cpu:1']).build(
      [functools.partial(fn, shard) for shard in range(2)]).results


def _weight():
  return tf1.get_variable('w', [], initializer=tf1.initializers.zeros())


def _apply_in_a_branch(should, gradient):
  w = _weight()
  optimizer = tf1.train.GradientDescentOptimizer(0.1)
  return tf1.cond(
      should, lambda: optimizer.apply_gradients([(gradient, w)]), tf.no_op)


def test_a_branch_updates_once_for_all_shards(behavior):
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    go = tf1.placeholder(tf.bool, [])
    first, *_ = _build(lambda _: _apply_in_a_branch(go, tf.ones([])))
    [w] = tf1.trainable_variables()
    session.run(tf1.global_variables_initializer())
    before = session.run(w)
    session.run(first, {go: False})
    assert session.run(w) == before
    session.run(first, {go: True})
    # A loss of each shard with the gradient 1 is a loss with the gradient 1.
    np.testing.assert_allclose(session.run(w), before - 0.1, rtol=1e-6)
    assert graph is tf1.get_default_graph()


@pytest.mark.parametrize('build, received', [
    (lambda shard: _apply_in_a_branch(tf.equal(shard, 0), tf.ones([])),
     'on conditions that may differ'),
    (lambda shard: _apply_in_a_branch(
        tf.equal(tf1.placeholder_with_default(1, []), 1), tf.ones([])),
     'on conditions that may differ'),
    (lambda shard: _apply_in_a_branch(
        tf1.placeholder(tf.bool, []), tf.constant(float(shard))),
     'with values that may differ'),
])
def test_branches_of_the_shards_own_are_refused(behavior, build, received):
  with tf.Graph().as_default(), pytest.raises(
      RuntimeError, match=r'inside of `tf.cond` must be the same.*Received: '
      rf'GradientDescent.apply_gradients of \[w:0\] in a branch, {received}.*'
      'or make the call in every step'):
    _build(build)


def _slow_weights(how):
  """Lookahead: every second step, weights meet their slow copies half-way."""
  def model_fn(features, labels, mode):
    del labels
    fast = tf1.get_variable('fast', initializer=[1.0, 2.0])
    slow = tf1.get_variable('slow', initializer=[0.0, 0.0], trainable=False)
    loss = tf.reduce_mean(tf.reduce_sum(fast * features, 1))
    step = tf1.train.get_global_step()
    train_op = tf1.train.GradientDescentOptimizer(0.5).minimize(loss, step)

    def meet():
      change = 0.5 * (fast - slow)
      new = slow + change
      written = (slow.assign_add(change) if how == 'result of an addition' else
                 slow.assign(new))
      with tf.control_dependencies([written]):
        return tf.group(fast.assign(new if how == 'value' else written))

    with tf.control_dependencies([train_op]):
      train_op = tf.cond(tf.equal(step.read_value() % 2, 0), meet, tf.no_op)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def test_a_write_in_a_branch_gets_no_result_of_an_addition(behavior):
  def check(how):
    one_device.assert_equals_one_device(
        _slow_weights(how), lambda: tf.data.Dataset.from_tensors(
            (np.float32([[1, 2], [3, 5]]), ())).repeat(),
        decorator=estimator_lib.cross_shard(
            devices=devices.make_logical_cpus(2)), steps=4, modes=['train'])

  with pytest.raises(RuntimeError, match=(
      '`assign` of `fast:0` in a branch of shards must not be given the result '
      'of an earlier write.*Give it the value that was written')):
    check('result of an addition')
  check('result of an assignment')
  check('value')
