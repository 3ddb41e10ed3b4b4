# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerExtended; most of it is tested by tower_run_test."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_variables
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


@pytest.mark.parametrize('arguments, expected', (
    ({'trainable': False}, 'ONLY_FIRST_REPLICA'),
    ({'trainable': True}, 'NONE'),
    ({'trainable': False, 'aggregation': tf.VariableAggregation.SUM}, 'SUM'),
))
def test_aggregation_in_eager_execution(arguments, expected):
  with tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']).scope():
    assert tf.Variable(1.0, **arguments).aggregation.name == expected


def _run(fn):
  """Runs `fn` of [2.] in tower 0 and [2., 2.] in tower 1."""
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    batches = strategy.experimental_distribute_values_from_function(
        lambda context: tf.fill([context.replica_id_in_sync_group + 1], 2.0))
    return strategy, strategy.run(fn, args=(batches,))


def test_gradients_of_a_run_are_those_of_all_towers(behavior):
  # d/dw of 2 w + 4 w.
  def fn(x):
    w = tf1.get_variable('w', initializer=1.0)
    return tf.gradients(w * tf.reduce_sum(x), [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, gradients = _run(fn)
    session.run(tf1.global_variables_initializer())
    found = session.run(strategy.experimental_local_results(gradients))
    np.testing.assert_allclose(found, [6] * len(found), rtol=1e-6)


def test_a_mean_over_towers_counts_rows(behavior):
  # 2 of one row and 8 of two: (2 + 2 * 8) / 3. Moving averages ask like this.
  def fn(x):
    value = tf.reduce_sum(x) * tf.cast(tf.shape(x)[0], tf.float32)
    return tf.distribute.get_replica_context().merge_call(
        lambda strategy, value: strategy.extended.reduce_to(
            tf.distribute.ReduceOp.MEAN, value, '/cpu:0'), args=(value,))

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, means = _run(fn)
    found = session.run(strategy.experimental_local_results(means))
    np.testing.assert_allclose(found, [6] * len(found), rtol=1e-6)


def test_the_first_tower_trains(behavior):
  # What it makes of an update is of all rows: its updates come last.
  def fn(x):
    return tf.estimator.EstimatorSpec(
        'train', loss=tf.reduce_sum(x), train_op=tf.no_op('train'))

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, spec = _run(fn)
    losses, updates = (strategy.experimental_local_results(each)
                       for each in (spec.loss, spec.train_op))
    assert {op.name for op in updates} == {'train'}
    # Estimator adds them up: 2 of one row and 4 of two.
    assert sum(session.run(losses)) == pytest.approx(6.0)


def test_a_tower_waits_for_the_batches_of_all(behavior):
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    parts = [tf1.placeholder(tf.float32, [1]) for _ in range(2)]
    shared = tf1.placeholder(tf.float32, [])
    batches = strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group])
    seen = strategy.run(lambda x, y: (2 * x, y), args=(batches, shared))
    first, _ = strategy.experimental_local_results(seen[0])
    # What all towers get is theirs as it is.
    assert all(each is shared
               for each in strategy.experimental_local_results(seen[1]))
    assert session.run(first, {parts[0]: [3.0], parts[1]: [5.0]}) == [6.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match='must feed'):
      session.run(first, {parts[0]: [3.0]})


def test_each_tower_has_a_metric_as_it_is(behavior):
  def fn(unused_tower):
    metric = tf1.get_variable(
        'metric', initializer=0.0, trainable=False,
        collections=[tf1.GraphKeys.METRIC_VARIABLES])
    return metric, tf1.get_local_variable('local', initializer=0.0), (
        tf1.get_variable('weight', initializer=0.0))

  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  for evaluates in (False, True):
    with tf.Graph().as_default(), strategy.scope():
      run, towers = strategy.build_towers(
          fn, tower_weights.TowerWeights([.5, .5], [.5, .5]),
          evaluates=evaluates)
    for variables in towers:
      assert [isinstance(variable, tower_variables.TowerVariable)
              for variable in variables] == [False, not evaluates, True]
    assert run.variables.streaming == list(towers[0][:1 + evaluates])
