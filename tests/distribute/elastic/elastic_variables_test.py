# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each kind of variable under elastic averaging has its place: a table."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.elastic import elastic_variables

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


@pytest.mark.parametrize('trainable', (False, True))
def test_a_target_network_starts_from_the_online_one(behavior, trainable):

  def model_fn(features, labels, mode):
    del features, labels
    online = tf1.get_variable('online', [2], initializer=(
        tf1.random_normal_initializer()))
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(
        tf.reduce_sum(online), tf1.train.get_global_step())
    tf1.get_variable('target', initializer=2.0 * online.initialized_value(),
                     trainable=trainable)
    return tf1.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=train_op)

  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(), model_fn)
  online, target = worker.value('online'), worker.value('target')
  assert online.all()
  np.testing.assert_array_equal(target, 2.0 * online)


class Averaging(tf1.train.GradientDescentOptimizer):
  """Makes its state by `get_variable` and assigns by itself, as BERT's does."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = []
    for gradient, variable in grads_and_vars:
      mean = tf1.get_variable(
          variable.op.name + '/mean', initializer=0.0, trainable=False)
      new = mean * 0.5 + gradient
      updates += [mean.assign(new), variable.assign(variable - new)]
    return tf.group(*updates)


def _averaged(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=2.0)
  return tf1.estimator.EstimatorSpec(
      mode, loss=w + 0.0, train_op=Averaging(1.0).minimize(w * 1.0))


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_what_an_optimizer_makes_by_itself_is_its_state(behavior, devices):
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          communication_period=2, moving_rate=0.25, devices=devices), _averaged)
  worker.step(2)
  # 1, then 1.5: 2 -> 1 -> -.5; a quarter of -2.5 moves, from each device.
  assert worker.center('w') == 2 - 0.625 * len(devices or '1')
  assert worker.value('w/mean') == 1.5
  names = [v.op.name for v in worker.graph.get_collection(
      tf1.GraphKeys.GLOBAL_VARIABLES)]
  assert sorted(names) == ['global_step', 'w', 'w/mean']
  assert 'w/mean/local_copy' not in [
      op.name for op in worker.graph.get_operations()]


@pytest.mark.parametrize('settings', [
    {'rho': 0.5}, {'update_order': 'elastic_first'}, {'sparse_exchange': True}])
def test_a_rule_for_gradients_that_meets_none_is_an_error(behavior, settings):
  # The penalty has an audit of its own.
  with pytest.raises(ValueError, match='a train_op without|outside of the o'):
    strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(**settings), _averaged)


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


def _recomputed(features, labels, mode):
  """The loss is 3 w**2: w goes from 2 to .5 in the first step."""
  del features, labels

  @tf.recompute_grad
  def times_w(x):
    with tf1.variable_scope('', reuse=tf1.AUTO_REUSE, use_resource=True):
      return x * tf1.get_variable('w', initializer=2.0)

  loss = times_w(times_w(tf.constant(3.0)))
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
          0.125).minimize(loss, tf1.train.get_global_step()))


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_a_custom_gradient_finds_copies(behavior, devices):
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          communication_period=1, moving_rate=0.25, devices=devices),
      _recomputed)
  worker.step()
  # A quarter of -1.5 moves, from each device.
  assert worker.center('w') == 2 - 0.375 * len(devices or '1')
