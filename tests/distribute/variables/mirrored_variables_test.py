# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of variables of strategies that copy them: names, parts, fetches."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin import distribute

tf1 = tf.compat.v1

CPUS = ['/cpu:0', '/cpu:1']

STRATEGIES = {
    'cross_shard': lambda: distribute.CrossShardStrategy(CPUS),
    'cross_shard_groups': lambda: distribute.CrossShardStrategy(
        CPUS, group_assignment=[[0], [1]]),
    'elastic': lambda: distribute.ElasticAverageStrategy(
        devices=CPUS, communication_period=1, moving_rate=0.5),
    'clipping': lambda: distribute.VariableClippingStrategy(
        tf.distribute.MirroredStrategy(
            CPUS, cross_device_ops=tf.distribute.ReductionToOneDevice()),
        {'matrix': 0}, 100.0),
    'clipping_cross_shard': lambda: distribute.VariableClippingStrategy(
        distribute.CrossShardStrategy(CPUS), {'matrix': 0}, 100.0),
}


def model_fn(features, labels, mode):
  """The gradient of each element of `matrix` is 1; `counter` adds its steps."""
  del features, labels
  matrix = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name='matrix')
  counter = tf.Variable(
      0, trainable=False, name='counter', dtype=tf.int64,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
  loss = tf.reduce_sum(matrix)
  train_op = tf1.train.MomentumOptimizer(0.5, 0.0).minimize(
      loss, tf1.train.get_global_step())
  with tf.control_dependencies([train_op]):
    counted = counter.assign_add(1)
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf.group(train_op, counted))


def plain_steps(directory, steps, fn=model_fn):
  estimator = tf1.estimator.Estimator(
      lambda features, labels, mode: fn(features, labels, mode),
      model_dir=str(directory))
  estimator.train(lambda: tf1.data.Dataset.from_tensors(0).repeat(),
                  steps=steps)
  return estimator


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_checkpoint_goes_there_and_back(behavior, strategy, tmp_path):
  estimator = plain_steps(tmp_path, 1)
  names = estimator.get_variable_names()
  worker = strategy_worker.StrategyWorker(
      STRATEGIES[strategy](), model_fn, checkpoint_dir=str(tmp_path))
  worker.step()
  path = worker.save(str(tmp_path / 'model.ckpt-2'))
  worker.close()
  assert sorted(n for n, _ in tf.train.list_variables(path)) == names
  estimator = plain_steps(tmp_path, 1)
  # Groups and the mean of two shards move by 0.5 a step.
  per_step = 1.0 if strategy == 'clipping' else 0.5
  assert estimator.get_variable_value('matrix').tolist() == [
      [-per_step, 1 - per_step], [2 - per_step, 3 - per_step]]
  assert estimator.get_variable_value('counter') == 3


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_variable_is_listed_once(behavior, strategy):
  worker = strategy_worker.StrategyWorker(STRATEGIES[strategy](), model_fn)
  with worker.graph.as_default():
    trainable = [v.name for v in tf1.trainable_variables()]
    shared = [v.name for v in tf1.global_variables()]
  worker.close()
  assert trainable == ['matrix:0']
  assert sorted(shared) == [
      'counter:0', 'global_step:0', 'matrix/Momentum:0', 'matrix:0']


@pytest.mark.parametrize('strategy', ['cross_shard', 'clipping'])
def test_saver_made_on_the_devices_saves_the_mean(behavior, strategy, tmp_path):
  def statistics_fn(features, labels, mode):
    spec = model_fn(features, labels, mode)
    statistic = tf.Variable(
        0.0, trainable=False, name='statistic',
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN)
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    noted = statistic.assign(tf.cast(index, tf.float32) * 4 + 1)  # 1 and 5
    saver = tf1.train.Saver([statistic])
    return spec._replace(train_op=tf.group(spec.train_op, noted),
                         scaffold=tf1.train.Scaffold(saver=saver))

  estimator = tf1.estimator.Estimator(
      statistics_fn, str(tmp_path),
      tf1.estimator.RunConfig(train_distribute=STRATEGIES[strategy]()))
  estimator.train(lambda: tf1.data.Dataset.from_tensors(0).repeat(), steps=1)
  assert estimator.get_variable_names() == ['statistic']
  assert estimator.get_variable_value('statistic') == 3.0


def partitioned_fn(features, labels, mode):
  """The gradient of `matrix` is itself. Slots get the names of the parts."""
  del features, labels
  with tf1.variable_scope('net', partitioner=tf1.fixed_size_partitioner(2)):
    matrix = tf1.get_variable(
        'matrix', [4, 2], initializer=tf1.ones_initializer())
    loss = tf.reduce_sum(tf.square(matrix)) / 2
    train_op = tf1.train.MomentumOptimizer(0.5, 0.9).minimize(
        loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_checkpoint_of_parts_goes_there_and_back(behavior, strategy, tmp_path):
  estimator = plain_steps(tmp_path, 1, partitioned_fn)
  names = estimator.get_variable_names()
  assert sorted(names) == [
      'global_step', 'net/matrix', 'net/matrix/t_0/Momentum',
      'net/matrix/t_1/Momentum']
  worker = strategy_worker.StrategyWorker(
      STRATEGIES[strategy](), partitioned_fn, checkpoint_dir=str(tmp_path))
  # The sum over two devices, or the mean of shards: all have what was restored.
  devices = 1 if strategy == 'elastic' or 'cross_shard' in strategy else 2
  assert worker.step() == devices * 8 * 0.5 ** 2 / 2
  path = worker.save(str(tmp_path / 'model.ckpt-2'))
  worker.close()
  assert sorted(n for n, _ in tf.train.list_variables(path)) == sorted(names)
  estimator = plain_steps(tmp_path, 1, partitioned_fn)
  value, velocity = 1.0, 0.0
  for gradients in (1, 2 if strategy == 'clipping' else 1, 1):
    velocity = 0.9 * velocity + gradients * value
    value -= 0.5 * velocity
  np.testing.assert_allclose(
      estimator.get_variable_value('net/matrix'), np.full([4, 2], value),
      rtol=1e-5)


@pytest.mark.parametrize('strategy', sorted({*STRATEGIES} - {'elastic'}))
@pytest.mark.parametrize('renamed', [{}, {'net/matrix': 'old'}])
def test_warm_start_of_parts_reaches_all_copies(
    behavior, strategy, renamed, tmp_path):
  source = np.arange(8, dtype=np.float32).reshape([4, 2])
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable(renamed.get('net/matrix', 'net/matrix'),
                     initializer=source)
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'model'))
  with tf.Graph().as_default(), STRATEGIES[strategy]().scope():
    with tf1.variable_scope('net', partitioner=tf1.fixed_size_partitioner(2)):
      parts = list(tf1.get_variable(
          'matrix', [4, 2], initializer=tf1.ones_initializer()))
    names = [part.name for part in parts]
    assert names == ['net/matrix/part_0:0', 'net/matrix/part_1:0']
    tf1.train.warm_start(path, var_name_to_prev_var_name=renamed)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for part, rows in zip(parts, (source[:2], source[2:])):
        for copy in session.run(list(part.values)):
          np.testing.assert_array_equal(copy, rows)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_saver_of_trainable_parts(behavior, strategy, tmp_path):
  worker = strategy_worker.StrategyWorker(
      STRATEGIES[strategy](), partitioned_fn,
      make_saver=lambda: tf1.train.Saver(tf1.trainable_variables()))
  path = worker.save(str(tmp_path / 'model.ckpt'))
  worker.close()
  assert tf.train.list_variables(path) == [('net/matrix', [4, 2])]
  assert tf.train.load_variable(path, 'net/matrix').tolist() == [[1, 1]] * 4


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_session_fetches_what_run_returns(behavior, strategy):

  def fn():
    context = tf.distribute.get_replica_context()
    return {'index': 5 + tf.identity(context.replica_id_in_sync_group)}

  with tf.Graph().as_default() as graph:
    made = STRATEGIES[strategy]().run(fn)
    graph.finalize()
    with tf1.Session() as session:
      assert session.run(made) == {'index': 5}


@pytest.mark.parametrize('one', [0, 1])
def test_in_a_branch_a_device_updates_its_own_copy(behavior, one):
  strategy = STRATEGIES['clipping']()

  def fn():
    counter = tf.Variable(
        0.0, trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    return counter, tf.cond(tf.equal(index, one), lambda: tf.group(
        counter.assign_add(5.0)), tf.no_op)

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    counter, done = strategy.run(fn)
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(done))
    assert session.run(list(strategy.experimental_local_results(counter))) == (
        [5.0, 0.0] if one == 0 else [0.0, 5.0])


def test_a_branch_inside_another_leaves_the_outer_device_alone():
  extended = STRATEGIES['clipping']().extended
  with extended._alone(0):
    with extended._alone(1):
      assert extended.only == 1
    assert extended.only == 0
  assert extended.only is None


@pytest.mark.parametrize('strategy', ['cross_shard', 'elastic'])
@pytest.mark.parametrize('draw', [
    lambda x: tf.nn.dropout(x, 0.5, seed=1),
    lambda x: tf.random.uniform(tf.shape(x), seed=2),
    lambda x: tf.keras.layers.Dropout(0.5, seed=3)(x, training=True)],
    ids=['dropout', 'uniform', 'keras'])
def test_a_seed_draws_other_numbers_in_each_replica(behavior, strategy, draw):
  """So that no two rows of a batch share a mask, as on one device."""
  with tf.Graph().as_default(), tf1.Session() as session:
    made = STRATEGIES[strategy]()
    with made.scope():
      drawn = made.run(lambda: draw(tf.ones([50])))
    expected = draw(tf.ones([50]))
    first, second = session.run(made.experimental_local_results(drawn))
    np.testing.assert_array_equal(first, session.run(expected))
    assert (first != second).sum() > 10


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_a_metric_at_k_has_one_set_of_variables(behavior, strategy):
  """Their names are absolute, with the scope of the replica."""
  values = np.float32([[1, 3, 2], [3, 2, 1], [2, 1, 3], [1, 2, 3]])
  labels = np.int64([[0], [1], [2], [0]])  # Two of four are among the best two.

  def measure():
    here = 2 * tf.distribute.get_replica_context().replica_id_in_sync_group
    return tf1.metrics.recall_at_k(
        tf.constant(labels)[here:here + 2], tf.constant(values)[here:here + 2],
        2)

  with tf.Graph().as_default(), tf1.Session() as session:
    made = STRATEGIES[strategy]()
    with made.scope():
      recall, updates = made.run(measure)
    session.run(tf1.local_variables_initializer())
    session.run(made.experimental_local_results(updates))
    assert set(session.run(made.experimental_local_results(recall))) == {0.5}
    assert not [v.op.name for v in tf1.local_variables()
                if 'replica_1/' in v.op.name]
