# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of ElasticAverageStrategy, on in-process clusters and in Estimators."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.testing import clusters

tf1 = tf.compat.v1

TARGET = np.array([3.0, -2.0], np.float32)
RATE = 0.1


def quadratic(features, labels, mode, optimizer=None, extra_loss=None):
  """loss = 1/2 |w - TARGET|^2, so that the gradient is w - TARGET."""
  del features, labels
  w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
  loss = 0.5 * tf.reduce_sum(tf.square(w - TARGET))
  if extra_loss:
    loss += extra_loss()
  optimizer = (optimizer or (
      lambda: tf1.train.GradientDescentOptimizer(RATE)))()
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.fixture(name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=2, num_ps=2)


def start_workers(cluster, model_fn=quadratic, count=2, **settings):
  """The workers of a cluster, with strategies of the same settings."""
  workers = []
  for index in range(count):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.cluster_spec, task_type='worker', task_id=index)
    strategy = elastic_average_strategy.ElasticAverageStrategy(
        resolver, **settings)
    workers.append(strategy_worker.StrategyWorker(
        strategy, model_fn, cluster.target('worker', index),
        is_chief=index == 0))
  return workers


class Rule:
  """The elastic rule in numpy, for workers that step in turn."""

  def __init__(self, period, rate, rho=0.0, elastic_first=False):
    self.period, self.rate, self.rho = period, rate, rho
    self.elastic_first = elastic_first
    self.center = np.ones(2, np.float64)
    self.locals = [np.ones(2), np.ones(2)]
    self.seen = [np.ones(2), np.ones(2)]
    self.steps = [0, 0]
    self.communications = 0

  def step(self, worker):
    x = self.locals[worker]
    gradient = x - TARGET + self.rho * (x - self.seen[worker])
    self.steps[worker] += 1
    due = self.steps[worker] % self.period == 0
    moved = x - RATE * gradient
    if due:
      difference = self.rate * ((x if self.elastic_first else moved)
                                - self.center)
      self.seen[worker] = self.center.copy()
      moved = moved - difference
      self.center = self.center + difference
      self.communications += 1
    self.locals[worker] = moved


@pytest.mark.parametrize('settings', [
    {'communication_period': 1, 'moving_rate': 0.25},
    {'communication_period': 3, 'moving_rate': 0.5},
    {'communication_period': 2, 'moving_rate': 0.25, 'rho': 0.75},
    {'communication_period': 2, 'moving_rate': 0.25,
     'update_order': 'elastic_first'},
], ids=lambda settings: '-'.join(f'{v}' for v in settings.values()))
def test_trajectory_equals_rule_in_numpy(behavior, cluster, settings):
  workers = start_workers(cluster, **settings)
  rule = Rule(settings['communication_period'], settings['moving_rate'],
              settings.get('rho', 0.0), 'update_order' in settings)
  # Not in strict turn: the workers are asynchronous.
  for index in (0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1):
    workers[index].step()
    rule.step(index)
    np.testing.assert_allclose(
        workers[index].value('w'), rule.locals[index], rtol=1e-5)
    np.testing.assert_allclose(
        workers[index].center('w'), rule.center, rtol=1e-5)
  assert workers[0].value('global_step') == rule.communications


def test_default_moving_rate_is_beta_over_period_and_workers(cluster):
  worker, _ = start_workers(cluster, communication_period=2)
  worker.step(2)
  # 1 -> 1.2 -> 1.38 and 1 -> .7 -> .43; rate .9 / 2 / 2 = .225 of .38, -.57.
  np.testing.assert_allclose(
      worker.center('w'), [1 + 0.225 * 0.38, 1 - 0.225 * 0.57], rtol=1e-6)


def test_count_steps_local_counts_every_step(behavior, cluster):
  worker, _ = start_workers(
      cluster, communication_period=3, count_steps='local')
  worker.step(4)
  assert worker.value('global_step') == 4


def test_rho_zero_keeps_two_copies_and_no_local_center(cluster):
  worker, _ = start_workers(cluster)
  assert not any('local_center' in v.name for v in worker.graph.get_collection(
      tf1.GraphKeys.LOCAL_VARIABLES))
  handles = sorted(op.name for op in worker.graph.get_operations()
                   if op.type == 'VarHandleOp')
  # The others hold 8 bytes of each variable, a bool, and the mark of a thread.
  assert [name for name in handles[2:] if 'refused' not in name] == [
      'global_step', 'local_step', 'w', 'w/local_copy']


def test_rho_keeps_local_center_under_its_contract_name(cluster):
  worker, _ = start_workers(cluster, rho=0.5)
  assert worker.value('local_center_variable/w').tolist() == [1.0, 1.0]


def test_second_worker_starts_from_center(cluster):
  worker, = start_workers(
      cluster, count=1, communication_period=1, moving_rate=1.0)
  worker.step(3)
  center = worker.center('w')
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, task_type='worker', task_id=1)
  late = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(resolver), quadratic,
      cluster.target('worker', 1), is_chief=False)
  assert center[0] > 1.3
  np.testing.assert_array_equal(late.value('w'), center)


@pytest.mark.filterwarnings('ignore:.*tf.layers.batch_norm')
def test_batch_norm_statistics_are_averaged_by_default(behavior, cluster):
  def model_fn(features, labels, mode):
    def statistics():
      batch = tf1.placeholder_with_default([[2.0], [6.0]], [2, 1])  # mean 4
      return tf.reduce_sum(tf1.layers.batch_normalization(
          batch, training=True, momentum=0.5)) * 0
    def optimizer():
      return tf1.train.GradientDescentOptimizer(RATE)
    spec = quadratic(features, labels, mode, optimizer, statistics)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    return spec._replace(train_op=tf.group(spec.train_op, *updates))

  worker, _ = start_workers(
      cluster, model_fn, communication_period=2, moving_rate=0.25)
  worker.step()
  assert worker.center('batch_normalization/moving_mean') == 0
  worker.step()
  # Local 0 -> 2 -> 3, then a quarter of the way to the centre, and back.
  assert worker.center('batch_normalization/moving_mean') == 0.75


def test_statistics_shared_are_updated_in_place(cluster):
  def model_fn(features, labels, mode):
    counter = tf.Variable(0.0, trainable=False, name='statistic')
    spec = quadratic(features, labels, mode)
    return spec._replace(
        train_op=tf.group(spec.train_op, counter.assign_add(1.0)))

  worker, other = start_workers(cluster, model_fn, statistics='shared')
  worker.step(3)
  other.step()
  assert worker.center('statistic') == 4


def test_partitioned_variable_is_saved_as_one(behavior, cluster, tmp_path):
  def table():
    p = tf1.get_variable(
        'p', [4, 2], initializer=tf1.ones_initializer(),
        partitioner=tf1.fixed_size_partitioner(2))
    return tf.reduce_sum(tf.nn.embedding_lookup(p, [0, 3]))

  def model_fn(features, labels, mode):
    return quadratic(
        features, labels, mode,
        lambda: tf1.train.MomentumOptimizer(RATE, 0.5), table)

  worker, _ = start_workers(
      cluster, model_fn, communication_period=1, moving_rate=0.5)
  worker.step()
  path = worker.save(str(tmp_path / 'model'))
  shapes = dict(tf.train.list_variables(path))
  assert shapes == {
      'global_step': [], 'w': [2], 'w/Momentum': [2], 'p': [4, 2],
      'p/Momentum': [4, 2]}
  # Rows 0 and 3: 1 -> .9 locally, half of the way in the centre.
  np.testing.assert_allclose(
      tf.train.load_variable(path, 'p')[:, 0], [.95, 1, 1, .95], rtol=1e-6)
  np.testing.assert_allclose(
      tf.train.load_variable(path, 'p/Momentum')[:, 0], [1, 0, 0, 1])


def test_sparse_exchange_moves_touched_rows_only(behavior, cluster):
  rows = [0, 1]  # Which row each worker looks up.

  def make_model_fn(index):
    def table():
      p = tf1.get_variable('p', [3, 1], initializer=tf1.ones_initializer())
      ids = tf1.py_func(lambda: np.int64([rows[index]] * 2), [], tf.int64)
      return tf.reduce_sum(tf.nn.embedding_lookup(p, tf.ensure_shape(ids, [2])))
    return lambda features, labels, mode: quadratic(
        features, labels, mode, None, table)

  workers = []
  for index in range(2):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.cluster_spec, task_type='worker', task_id=index)
    workers.append(strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(
            resolver, communication_period=2, moving_rate=0.5,
            sparse_exchange=True),
        make_model_fn(index), cluster.target('worker', index),
        is_chief=index == 0))
  first, second = workers
  first.step(2)
  # The id is there twice: 1 -> .8 -> .6; the exchange moves both by .2.
  np.testing.assert_allclose(first.center('p')[:, 0], [.8, 1, 1], rtol=1e-6)
  np.testing.assert_allclose(first.value('p')[:, 0], [.8, 1, 1], rtol=1e-6)
  second.step(2)
  np.testing.assert_allclose(second.center('p')[:, 0], [.8, .8, 1], rtol=1e-6)
  # Row 0 is not one that the second worker has touched.
  np.testing.assert_allclose(second.value('p')[:, 0], [1, .8, 1], rtol=1e-6)
  rows[:] = [1, 0]
  second.step(2)  # Row 0: 1 -> .6, and the centre is at .8.
  np.testing.assert_allclose(second.center('p')[:, 0], [.7, .8, 1], rtol=1e-6)
  first.step(2)  # Row 1: 1 -> .6. Row 0 has had its exchange: it stays at .8.
  np.testing.assert_allclose(first.center('p')[:, 0], [.7, .7, 1], rtol=1e-6)
  np.testing.assert_allclose(first.value('p')[:, 0], [.8, .7, 1], rtol=1e-6)


def test_saver_of_trainable_variables_saves_center(behavior, tmp_path):
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(), quadratic,
      make_saver=lambda: tf1.train.Saver(tf1.trainable_variables()))
  worker.step()
  path = worker.save(str(tmp_path / 'model'))
  assert tf.train.load_variable(path, 'w').tolist() == [1.0, 1.0]
  assert worker.value('w').tolist() != [1.0, 1.0]


def test_synchronous_workers_start_together(behavior, cluster):
  events, workers = [], {}

  def start(index):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.cluster_spec, task_type='worker', task_id=index)
    workers[index] = strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(
            resolver, synchronous=True),
        quadratic, cluster.target('worker', index), is_chief=index == 0)
    events.append(index)

  first = threading.Thread(target=start, args=[0])
  first.start()
  first.join(1.0)
  assert first.is_alive() and not events
  start(1)
  first.join(60)
  assert sorted(events) == [0, 1]
  # One that comes again finds the start behind it.
  start(1)


def test_devices_of_one_worker_average_their_gradients(behavior):
  def model_fn(features, labels, mode):
    scale = 1.0 + 2.0 * tf.cast(
        tf.distribute.get_replica_context().replica_id_in_sync_group,
        tf.float32)
    w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
    train_op = tf1.train.GradientDescentOptimizer(RATE).minimize(
        scale * tf.reduce_sum(w), tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(w), train_op=train_op)

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.5)
  # As on a worker with two GPUs, which there are not.
  strategy._extended = elastic_average_strategy.ElasticAverageExtended(
      strategy, strategy.extended._settings,
      cluster_resolver=(
          tf.distribute.cluster_resolver.TFConfigClusterResolver()),
      compute_devices=['/cpu:0', '/cpu:1'])
  # As Estimator does: the loss is divided by the number of replicas.
  with strategy._scale_loss_for_estimator_enabled():
    worker = strategy_worker.StrategyWorker(strategy, model_fn)
  worker.step(2)
  # The gradients are 1 and 3: twice a step of .2, and half of it given away.
  np.testing.assert_allclose(worker.center('w'), [.8, .8], rtol=1e-6)
  assert worker.value('global_step') == 1


@pytest.mark.parametrize('settings, error, words', [
    ({'communication_period': 0}, ValueError, 'communication_period'),
    ({'communication_period': 2.0}, TypeError, 'communication_period'),
    ({'num_worker': 0}, ValueError, 'num_worker'),
    ({'moving_rate': 1.5}, ValueError, 'moving_rate'),
    ({'moving_rate': 'x'}, TypeError, 'moving_rate'),
    ({'rho': None}, TypeError, 'moving_rate / learning_rate'),
    ({'rho': -1.0}, ValueError, 'rho'),
    ({'rho': float('nan')}, ValueError, 'rho'),
    ({'update_order': 'last'}, ValueError, 'gradient_first'),
    ({'count_steps': 'communication'}, ValueError, 'communications'),
    ({'statistics': 'x'}, ValueError, 'shared'),
    ({'cluster_resolver': 'localhost'}, TypeError, 'TF_CONFIG'),
])
def test_bad_argument_raises(settings, error, words):
  with pytest.raises(error, match=words):
    elastic_average_strategy.ElasticAverageStrategy(**settings)


def test_a_tensor_is_refused_as_moving_rate():
  with pytest.raises(TypeError, match='moving_rate'):
    elastic_average_strategy.ElasticAverageStrategy(
        moving_rate=tf.constant(0.5))


def test_scope_in_eager_mode_raises_with_remedy():
  strategy = elastic_average_strategy.ElasticAverageStrategy()
  with pytest.raises(RuntimeError, match='train_distribute'):
    with strategy.scope():
      pass
