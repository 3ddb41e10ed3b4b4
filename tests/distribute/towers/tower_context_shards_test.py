# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of towers that have gradients of their own, as shards do."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1


def _after_write(method, values):
  """Returns what a variable of 1 holds after each tower wrote its value."""
  def fn(tower):
    v = tf1.get_variable('v', initializer=1.0, trainable=False)
    return getattr(v, method)(tf.constant(values[tower]))

  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      _, (first, _) = strategy.build_towers(
          fn, tower_weights.TowerWeights([.5, .5], [1.0, 1.0]),
          sum_gradients=False)
    session.run(tf1.global_variables_initializer())
    session.run(first)
    return session.run(tf1.global_variables()[0])


def test_additions_are_averaged(behavior):
  # 1 + (2 + 3) / 2.
  assert _after_write('assign_add', [2.0, 3.0]) == 3.5


def test_values_that_cannot_be_averaged_are_refused(behavior):
  with pytest.raises(ValueError, match='`assign` of a variable that shards'):
    _after_write('assign', [2.0, 3.0])


def test_each_tower_has_a_metric_as_it_is(behavior):
  def fn(unused_tower):
    return tf1.get_local_variable('count', initializer=0.0), tf1.get_variable(
        'weight', initializer=0.0)

  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    run, towers = strategy.build_towers(
        fn, tower_weights.TowerWeights([.5, .5], [.5, .5]))
    for count, weight in towers:
      assert not isinstance(count, tower_variables.TowerVariable)
      assert isinstance(weight, tower_variables.TowerVariable)
    assert run.variables.streaming == [towers[0][0]]
