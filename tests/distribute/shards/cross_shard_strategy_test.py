# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.distribute.shards.cross_shard_strategy."""

import copy
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards import four_shards
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.shards import current_shards
from tfplugin.optimizers import cross_shard
from tfplugin.testing import devices

tf1 = tf.compat.v1
Reduction = tf1.losses.Reduction
CrossShardStrategy = cross_shard_strategy.CrossShardStrategy
CPUS = four_shards.CPUS
X = four_shards.GRADIENTS


def _momentum(weight, x):
  return tf1.train.MomentumOptimizer(1.0, 0.5).minimize(weight * x)


@pytest.mark.parametrize('kwargs, gradients', [
    ({}, [15 / 4] * 4),
    ({'reduction': Reduction.SUM}, [15] * 4),
    ({'group_assignment': [[0, 2], [3, 1]]}, [2.5, 5, 2.5, 5]),
    ({'group_assignment': [[0, 1], [2, 3]], 'reduction': Reduction.SUM},
     [3, 3, 12, 12]),
    ({'group_assignment': [[0, 1, 2, 3]]}, [15 / 4] * 4),
    ({'group_assignment': [[0], [1], [2], [3]]}, X),
])
def test_trajectory_of_momentum(behavior, kwargs, gradients):
  weights = four_shards.train(
      CrossShardStrategy(CPUS, **kwargs), _momentum, steps=2)
  # velocity: g, then 0.5 * g + g
  np.testing.assert_array_equal(weights, 100 - 2.5 * np.array(gradients))


def test_gradients_of_tf_gradients_are_summed(behavior):
  def make_train_op(weight, x):
    [gradient] = tf.gradients(weight * x, [weight])
    return tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
        [(gradient, weight)])
  for groups, expected in ((None, [85] * 4),
                           ([[0, 1], [2, 3]], [97, 97, 88, 88])):
    strategy = CrossShardStrategy(CPUS, group_assignment=groups)
    np.testing.assert_array_equal(
        four_shards.train(strategy, make_train_op), expected)


@pytest.mark.parametrize('reduction', [Reduction.MEAN, Reduction.SUM])
@pytest.mark.parametrize('own', [Reduction.MEAN, Reduction.SUM])
def test_the_wrapper_inside_is_not_applied_twice(behavior, reduction, own):
  def make_train_op(weight, x):
    return cross_shard.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), own).minimize(weight * x)
  weights = four_shards.train(
      CrossShardStrategy(CPUS, reduction), make_train_op)
  expected = 15 / 4 if own == Reduction.MEAN else 15
  np.testing.assert_array_equal(weights, [100 - expected] * 4)


def _reported(mode, **kwargs):
  """Returns the loss of each shard's spec, which Estimator adds up."""
  strategy = CrossShardStrategy(CPUS[:2], **kwargs)

  def replica():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    loss = tf.gather([1.0, 3.0], index)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.no_op() if mode == 'train' else None)

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    spec = strategy.extended.call_for_each_replica(replica)
    return session.run(list(strategy.experimental_local_results(spec.loss)))


@pytest.mark.parametrize('kwargs', [
    {}, {'reduction': Reduction.SUM}, {'group_assignment': [[0], [1]]},
    {'group_assignment': [[1, 0]]}], ids=str)
def test_reported_is_the_mean_over_the_shards(behavior, kwargs):
  # 1 / 2 + 3 / 2, whatever the gradients are.
  assert _reported('train', **kwargs) == [0.5, 1.5]


def test_a_spec_that_does_not_train_has_its_own_loss(behavior):
  assert _reported('eval') == [1.0, 3.0]


def test_cross_replica_sum_is_over_all_shards_or_the_groups_passed(behavior):
  strategy = CrossShardStrategy(CPUS, group_assignment=[[0, 1], [2, 3]])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      x = tf.gather(X, index)
      return (current_shards.cross_replica_sum(x),
              current_shards.cross_replica_sum(x, [[0, 3], [1, 2]]))
    total, group = session.run(tf.nest.map_structure(
        strategy.experimental_local_results, strategy.run(shard)))
  assert total == (15.0,) * 4
  assert group == (9.0, 6.0, 6.0, 9.0)


def test_small_gradients_are_packed_and_sparse_ones_stay_sparse(behavior):
  strategy = CrossShardStrategy(CPUS[:2])
  with tf.Graph().as_default() as graph, strategy.scope():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      small = [tf1.get_variable(f'small_{i}', [i + 1],
                                initializer=tf1.zeros_initializer())
               for i in range(5)]
      table = tf1.get_variable('table', [1000, 1],
                               initializer=tf1.zeros_initializer())
      rows = tf1.nn.embedding_lookup(table, [index, 3])
      loss = tf.cast(index + 1, tf.float32) * tf.add_n(
          [tf.reduce_sum(v) for v in small]) + tf.reduce_sum(rows)
      return tf1.train.GradientDescentOptimizer(1.0).minimize(loss)
    train_op = strategy.group(strategy.run(shard))
    reads = {v.op.name: v.read_value() for v in tf1.trainable_variables()}
    types = [op.type for op in graph.get_operations()]
    # The five as one, besides the two that sum a loss.
    assert types.count('AddN') == 1 + 2
    # Each device takes rows off its copy.
    assert types.count('ResourceScatterAdd') == 2
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      values = session.run(reads)
  for i in range(5):
    assert values[f'small_{i}'].tolist() == [-(1 + 2) / 2] * (i + 1)
  table = np.zeros([1000, 1])
  table[[0, 1, 3], 0] = -0.5, -0.5, -1.0
  np.testing.assert_array_equal(values['table'], table)


def _data():
  rng = np.random.RandomState(1)
  x = rng.randn(16, 3).astype(np.float32)
  return x, x @ np.float32([[1], [-2], [3]]) + 0.5


def _layers_model_fn(features, labels, mode):
  """Knows nothing of tfplugin."""
  dense = tf1.layers.Dense(
      1, kernel_initializer=tf1.constant_initializer(0.5))
  loss = tf1.losses.mean_squared_error(labels, dense(features))
  train_op = tf1.train.MomentumOptimizer(0.125, 0.5).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _estimator(directory, strategy):
  return tf.estimator.Estimator(_layers_model_fn, directory, (
      tf.estimator.RunConfig(
          train_distribute=strategy, tf_random_seed=1,
          session_config=devices.session_config(4))))


def _input_fn(batch_size):
  return lambda: tf.data.Dataset.from_tensor_slices(_data()).batch(
      batch_size, drop_remainder=True).repeat()


def _replay(batches):
  """Kernel and bias after the batches of 8 rows, by numpy."""
  x, y = _data()
  x = np.concatenate([x, np.ones([16, 1])], axis=1)
  weight = np.float64([[.5], [.5], [.5], [0]])
  velocity = np.zeros_like(weight)
  for batch in batches:
    rows = slice(8 * batch, 8 * batch + 8)
    error = x[rows] @ weight - y[rows]
    velocity = 0.5 * velocity + 2 * x[rows].T @ error / 8
    weight = weight - 0.125 * velocity
  return weight[:, 0]


@pytest.mark.filterwarnings('ignore:To make it possible:UserWarning')
@pytest.mark.filterwarnings('ignore:.*tf.layers.Dense:UserWarning')
def test_estimator_equals_numpy_and_goes_on_without_strategy(
    behavior, tmp_path):
  # Two shards of 4 rows are one device's batch of 8.
  estimator = _estimator(str(tmp_path), CrossShardStrategy(CPUS[:2]))
  estimator.train(_input_fn(4), max_steps=3)
  names = set(estimator.get_variable_names())
  plain = _estimator(str(tmp_path), None)
  plain.train(_input_fn(8), max_steps=4)
  assert set(plain.get_variable_names()) == names == {
      'dense/kernel', 'dense/bias', 'dense/kernel/Momentum',
      'dense/bias/Momentum', 'global_step'}
  estimator.train(_input_fn(4), max_steps=5)
  # The data starts anew with each call of train: batches 0 1 0 | 0 | 0.
  np.testing.assert_allclose(
      np.append(estimator.get_variable_value('dense/kernel'),
                estimator.get_variable_value('dense/bias')),
      _replay([0, 1, 0, 0, 0]), rtol=1e-5)


def test_keras_fit_equals_numpy():
  strategy = CrossShardStrategy(CPUS[:2])
  with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(
        1, kernel_initializer=tf.keras.initializers.Constant(0.5))])
    model.compile(tf.keras.optimizers.SGD(0.125, momentum=0.5), 'mse')
  model.fit(*_data(), batch_size=8, epochs=2, shuffle=False, verbose=0)
  np.testing.assert_allclose(
      np.concatenate([w.ravel() for w in model.get_weights()]),
      _replay([0, 1, 0, 1]), rtol=1e-5)


def test_strategy_run_in_tf_function():
  strategy = CrossShardStrategy(CPUS)
  with strategy.scope():
    weight = tf.Variable(100.0)
  optimizer = tf1.train.MomentumOptimizer(1.0, 0.5)

  @tf.function
  def step():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      optimizer.minimize(lambda: weight * tf.gather(X, index),
                         var_list=[weight])
    strategy.run(shard)

  step()
  step()
  assert float(weight.read_value()) == 100 - 2.5 * 15 / 4


def test_deep_copy_keeps_the_settings():
  strategy = copy.deepcopy(CrossShardStrategy(
      CPUS[:2], Reduction.SUM, [[0], [1]]))
  assert strategy.reduction == Reduction.SUM
  assert strategy.group_assignment == [[0], [1]]
  assert strategy.num_replicas_in_sync == 2


def test_devices_default_to_all_logical_cpus():
  assert CrossShardStrategy().num_replicas_in_sync == 4


@pytest.mark.parametrize('kwargs, error, message', [
    ({'devices': '/cpu:0'}, TypeError, '`devices`.*list'),
    ({'devices': []}, ValueError, 'at least one'),
    ({'devices': ['CPU:0', 'CPU:9']}, ValueError, 'CPU:9.*There are'),
    ({'devices': ['CPU:0', 'GPU:0']}, ValueError, 'GPU:0.*There are'),
    ({'devices': ['CPU:0', 'CPU:0']}, ValueError, 'once'),
    ({'reduction': 'mean'}, ValueError, '`reduction`'),
    ({'devices': CPUS[:2], 'group_assignment': [[0, 1], [2, 3]]}, ValueError,
     r'permutation of range\(2\)'),
    ({'group_assignment': [[0, 1], [2]]}, ValueError, 'one size'),
    ({'exchange_dtype': 'int8'}, ValueError,
     r"`exchange_dtype` .*\('float16', 'bfloat16'\), .* added.*'int8'.*None"),
    ({'exchange_dtype': 'bfloat16', 'engine': 'horovod'}, ValueError,
     "`exchange_dtype` must be 'float16' or None .*engine='tensorflow'"),
])
def test_bad_input_is_refused(kwargs, error, message):
  with pytest.raises(error, match=message):
    CrossShardStrategy(**kwargs)


def test_one_process_says_that_it_exchanges_nothing(caplog):
  strategy = CrossShardStrategy(CPUS[:2], exchange_dtype='float16')
  assert strategy.exchange_dtype == 'float16'
  assert [record.getMessage() for record in caplog.records] == [
      '`exchange_dtype` has no effect in one process, whose sums need no '
      "network. Received: 'float16'. Leave it out, or start several processes "
      'with `TF_CONFIG`.']


def test_an_evaluator_of_a_cluster_takes_the_same_settings(caplog, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['a:1'], 'worker': ['b:1']},
      'task': {'type': 'evaluator', 'index': 0}}))
  CrossShardStrategy(CPUS[:1], exchange_dtype='float16')
  assert not caplog.records


def test_accumulators_of_workers_are_refused(behavior):
  def make_train_op(weight, x):
    return tf1.train.SyncReplicasOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 4, 4).minimize(
            weight * x, tf1.train.get_or_create_global_step())

  with pytest.raises(RuntimeError, match=(
      '`tf.compat.v1.train.SyncReplicasOptimizer` must not be used in '
      'shards.*Received: .*Leave it out')):
    four_shards.train(CrossShardStrategy(CPUS), make_train_op)


@pytest.mark.parametrize('restores', (False, True))
def test_an_init_fn_starts_the_copies_of_all_shards(
    behavior, restores, tmp_path):
  """It feeds, or restores, by ops of the first shard."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('w', initializer=7.0)
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'old'))

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0, use_resource=True)
    if restores:
      saver = tf1.train.Saver([w])

      def start(scaffold, session):
        saver.restore(session, path)
    else:
      fed = tf1.placeholder(tf.float32, [])
      given = w.assign(fed)

      def start(scaffold, session):
        session.run(given, {fed: 7.0})

    copies.append(w)
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(
        w * tf.reduce_mean(features), tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=w * 1.0, train_op=train_op,
        scaffold=tf1.train.Scaffold(init_fn=start))

  class Hook(tf.estimator.SessionRunHook):

    def before_run(self, run_context):
      return tf.estimator.SessionRunArgs(reads)

    def begin(self):
      reads.extend(copy.read_value() for copy in copies[0].values)

    def after_run(self, run_context, run_values):
      seen.append(run_values.results)

  copies, reads, seen = [], [], []
  strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])
  config = tf.estimator.RunConfig(train_distribute=strategy)
  tf.estimator.Estimator(model_fn, str(tmp_path / 'new'), config).train(
      lambda: tf.data.Dataset.from_tensors(
          (np.float32([1.0]), np.float32([1.0]))).repeat(), steps=1,
      hooks=[Hook()])
  assert seen == [[7.0, 7.0]]
