# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of updates that are past the clipping of a strategy."""

import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1


def _run(beside):
  """Builds a step that trains two weights, and assigns to one beside it."""
  strategy = distribute.VariableClippingStrategy(
      tf1.distribute.MirroredStrategy(
          ['/cpu:0', '/cpu:1'],
          cross_device_ops=tf.distribute.ReductionToOneDevice()),
      {'clipped': 0}, 1.0)

  def step():
    weights = {name: tf1.get_variable(name, initializer=[1.0, 2.0],
                                      use_resource=True)
               for name in ('clipped', 'free')}
    loss = tf.add_n([tf.reduce_sum(w) for w in weights.values()])
    update = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    with tf.control_dependencies([update]):
      written = tf.raw_ops.AssignAddVariableOp(
          resource=weights[beside].handle, value=[1.0, 1.0])
    return tf.group(update, written)

  with tf.Graph().as_default(), strategy.scope():
    strategy.run(step)


def test_an_assignment_to_a_clipped_variable_is_named(behavior):
  with pytest.raises(ValueError, match=(
      'AssignAddVariableOp.*writes `clipped.*outside of the optimizers')):
    _run('clipped')


def test_what_is_not_clipped_may_be_assigned_to(behavior):
  _run('free')
