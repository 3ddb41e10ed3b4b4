# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerExtended; most of it is tested by tower_run_test."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1


def _strategy():
  return tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])


def test_run_passes_each_tower_its_arguments(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = _strategy()
    with strategy.scope():
      batches = strategy.extended._experimental_distribute_values_from_function(
          lambda context: tf.fill([context.replica_id_in_sync_group + 1], 2.0))
      sums = strategy.extended.call_for_each_replica(
          tf.reduce_sum, args=(batches,))
      values = strategy.experimental_local_results(sums)
    assert session.run(values) == (2.0, 4.0)


def test_mean_in_towers_is_weighted_with_the_rows(behavior):
  # Means 1 and 5 of 3 and 1 rows: 2 over all rows.
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = _strategy()

    def fn(x):
      context = tf.distribute.get_replica_context()
      return context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.reduce_mean(x))

    with strategy.scope():
      batches = strategy.extended._experimental_distribute_values_from_function(
          lambda context: tf.fill([1], 5.0)
          if context.replica_id_in_sync_group else tf.fill([3], 1.0))
      means = strategy.extended.call_for_each_replica(fn, args=(batches,))
      values = strategy.experimental_local_results(means)
    assert session.run(list(values))[0] == 2.0


def test_sum_in_towers_is_a_sum(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = _strategy()

    def fn():
      context = tf.distribute.get_replica_context()
      return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(3.0))

    with strategy.scope():
      sums = strategy.extended.call_for_each_replica(fn)
    values = strategy.experimental_local_results(sums)
    assert session.run(values[0]) == 6.0


def test_in_a_cluster_variables_are_on_the_parameter_servers(behavior):
  cluster = tf.train.ClusterSpec(
      {'ps': ['a:1', 'b:1'], 'worker': ['c:1', 'd:1']})
  setter = tf1.train.replica_device_setter(
      worker_device='/job:worker/task:1', cluster=cluster)
  seen = {}

  def fn(tower):
    seen[tower] = tf.identity(tf1.get_variable('w', [])).device

  with tf.Graph().as_default(), tf1.device(setter):
    strategy = _strategy()
    with strategy.scope():
      strategy.build_towers(
          fn, tower_weights.TowerWeights([.5, .5], [.5, .5]))
    w, = tf1.global_variables()
  assert w.device == '/job:ps/task:0/device:CPU:0'
  assert seen == {
      tower: f'/job:worker/task:1/device:CPU:{tower}' for tower in range(2)}


@pytest.mark.parametrize('num_devices, device', (
    (1, 'CPU:3'), (2, 'CPU:0')))
def test_variables_are_on_the_cpu_if_there_are_several_devices(
    behavior, num_devices, device):
  strategy = tower_strategy.TowerStrategy(['/cpu:3', '/cpu:2'][:num_devices])
  with tf.Graph().as_default(), strategy.scope():
    assert tf1.get_variable('w', []).device.endswith(device)


@pytest.mark.parametrize('make, shares', [
    (lambda x: x, [.75, .25]),
    (lambda x: tf1.placeholder_with_default(x, [None, 1]), [.75, .25]),
    (lambda x: tf1.placeholder_with_default(x, None), [.75, .25]),
    (tf.sparse.from_dense, [.75, .25]),
    (tf.RaggedTensor.from_tensor, [.75, .25]),
    # A scalar before it, and nothing but scalars.
    (lambda x: (tf.constant(7), x), [.75, .25]),
    (lambda x: (tf.constant(7), 7), [.5, .5])])
def test_the_rows_of_a_tower_are_those_of_its_arguments(
    behavior, make, shares):
  strategy = _strategy()
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    parts = [make(tf.ones([rows, 1])) for rows in (3, 1)]
    # The mean of 0 and 4, weighted by the rows.
    def fn(unused):
      context = tf.distribute.get_replica_context()
      return context.all_reduce(
          'MEAN', 4.0 * tf.cast(context.replica_id_in_sync_group, tf.float32))

    batch = strategy.extended._experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group])
    mean = strategy.extended.call_for_each_replica(fn, args=(batch,))
    assert session.run(strategy.experimental_local_results(mean)[0]) == (
        4 * shares[1])


def test_a_function_in_a_graph_has_no_towers(behavior):
  """There the base class sums, as in eager execution."""
  strategy = _strategy()
  with tf.Graph().as_default(), strategy.scope():
    found = []

    @tf.function
    def step():
      strategy.run(lambda: found.append(
          type(tf.distribute.get_replica_context()).__name__))

    step()
    assert set(found) == {'_MirroredReplicaContext'}
    found.clear()
    strategy.run(lambda: found.append(
        type(tf.distribute.get_replica_context()).__name__))
    assert found == ['TowerContext'] * 2
