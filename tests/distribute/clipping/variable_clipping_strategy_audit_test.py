# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of updates that a strategy does not clip, and rules without effect."""

import logging as std_logging

import numpy as np
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


@pytest.mark.parametrize('is_frozen', [False, True])
def test_a_rule_without_an_update_is_named(behavior, caplog, is_frozen):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  strategy = distribute.VariableClippingStrategy(
      tf1.distribute.OneDeviceStrategy('/cpu:0'), {'used': 0, 'frozen': 0}, 1.0)

  def step():
    weights = [tf1.get_variable(name, initializer=[3.0, 4.0])
               for name in ('used', 'frozen')]
    if not is_trained:
      return tf.add_n(weights)
    return tf1.train.GradientDescentOptimizer(.1).minimize(
        0.0 * tf.reduce_sum(weights[0] + weights[1]),
        var_list=weights[:1 if is_frozen else 2])

  for is_trained in (False, True):
    with tf.Graph().as_default(), strategy.scope():
      result = strategy.run(step)
      with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(result)
        got = session.run(tf1.trainable_variables())
    # An evaluation updates nothing, and has no warning.
    assert caplog.text.count('clips nothing') == (is_trained and is_frozen)
  np.testing.assert_allclose(
      got, [[0.6, 0.8], [3.0, 4.0] if is_frozen else [0.6, 0.8]], rtol=1e-6)
  if is_frozen:
    assert "'frozen', which selects ['frozen']" in caplog.text
