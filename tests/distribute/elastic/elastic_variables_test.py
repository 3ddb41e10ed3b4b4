# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each kind of variable under elastic averaging has its place: a table."""

import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.testing import strategy_worker

tf1 = tf.compat.v1

Role = elastic_variables.Role
KEYS = tf1.GraphKeys
ON_READ = tf.VariableSynchronization.ON_READ


@pytest.mark.parametrize('kwargs, statistics, role', [
    ({}, 'average', Role.ELASTIC),
    ({'trainable': None, 'dtype': tf.float32}, 'average', Role.ELASTIC),
    ({'trainable': True}, 'shared', Role.ELASTIC),
    ({'trainable': False}, 'average', Role.ELASTIC),
    ({'trainable': False}, 'shared', Role.SHARED),
    ({'trainable': None, 'synchronization': ON_READ}, 'shared', Role.SHARED),
    ({'dtype': tf.int64}, 'average', Role.SHARED),
    ({'dtype': 'bool', 'trainable': False}, 'average', Role.SHARED),
    ({'collections': [KEYS.GLOBAL_VARIABLES, KEYS.GLOBAL_STEP]}, 'average',
     Role.SHARED),
    ({'collections': [KEYS.LOCAL_VARIABLES]}, 'average', Role.LOCAL),
    ({'collections': [KEYS.METRIC_VARIABLES]}, 'average', Role.LOCAL),
    ({'colocate_with': 'a variable', 'trainable': False}, 'average',
     Role.STATE),
])
def test_role_of(kwargs, statistics, role):
  assert elastic_variables.role_of(kwargs, statistics) is role


def test_localized_replaces_the_global_collection_only():
  assert elastic_variables.localized(None) == [KEYS.LOCAL_VARIABLES]
  assert elastic_variables.localized(['mine', KEYS.GLOBAL_VARIABLES]) == [
      'mine', KEYS.LOCAL_VARIABLES]


def test_moving_average_starts_from_the_initial_value(behavior):

  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=2.0)
    step = tf1.train.GradientDescentOptimizer(1.0).minimize(
        w, tf1.train.get_global_step())
    with tf1.control_dependencies([step]):
      average = tf1.train.ExponentialMovingAverage(0.5).apply([w])
    return tf1.estimator.EstimatorSpec(mode, loss=tf.identity(w),
                                       train_op=average)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          communication_period=10, moving_rate=0.25), model_fn)
  assert worker.value('w/ExponentialMovingAverage') == 2.0
  worker.step(2)
  # The copy goes 2, 1, 0: its average 2, 1.5, .75.
  assert worker.value('w/ExponentialMovingAverage') == 0.75


def test_variable_that_the_body_of_a_loop_makes_has_a_copy_and_a_centre(
    behavior):

  def model_fn(features, labels, mode):
    del features, labels
    _, w = tf.while_loop(
        lambda i, _: i < 1,
        lambda i, y: (i + 1, y + tf1.get_variable('w', initializer=(
            lambda: tf.constant(2.0)))), [0, 0.0])
    step = tf1.train.GradientDescentOptimizer(1.0).minimize(
        w, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=w, train_op=step)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          communication_period=2, moving_rate=0.25), model_fn)
  worker.step(2)
  # The copy goes 2, 1, 0; then a quarter of the difference, -2, is exchanged.
  assert worker.value('w') == 0.5
  assert worker.center('w') == 1.5
