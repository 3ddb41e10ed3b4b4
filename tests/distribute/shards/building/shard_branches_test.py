# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches of a `tf.cond` in shards that share their variables."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1


def _build(fn):
  return shared_shards.SharedShards(['/cpu:0', '/cpu:1']).build(fn)


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
    _, (first, *_) = _build(lambda _: _apply_in_a_branch(go, tf.ones([])))
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
