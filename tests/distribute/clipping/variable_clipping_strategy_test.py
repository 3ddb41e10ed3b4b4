# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of VariableClippingStrategy over every kind of base strategy."""

import copy
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute.clipping import variable_clipping_strategy
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.staleness import drop_stale_gradient_strategy
from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1

VariableClippingStrategy = variable_clipping_strategy.VariableClippingStrategy


def mirrored():
  return tf1.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'],
      cross_device_ops=tf.distribute.ReductionToOneDevice())


BASES = {
    'ps': tf1.distribute.experimental.ParameterServerStrategy,
    'mirrored': mirrored,
    'one_device': lambda: tf1.distribute.OneDeviceStrategy('/cpu:0'),
    # One worker, for want of a second; the update is the same with more.
    'multi_worker': tf.distribute.MultiWorkerMirroredStrategy,
    'elastic_devices': lambda: elastic_average_strategy.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'], moving_rate=0.5, communication_period=1),
    'tower': lambda: tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']),
    'cross_shard': lambda: cross_shard_strategy.CrossShardStrategy(
        ['/cpu:0', '/cpu:1']),
    'drop_stale': lambda: (
        drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0)),
    'elastic': lambda: elastic_average_strategy.ElasticAverageStrategy(
        communication_period=2, moving_rate=0.5),
}


def model_fn(features, labels, mode, sparse=False, partitioner=None,
             make_optimizer=lambda: tf1.train.GradientDescentOptimizer(1.0)):
  """A step of plain SGD moves each looked-up element of `table` by 1."""
  del features, labels
  table = tf1.get_variable(
      'table', initializer=tf.constant([[2.0, 3.0], [6.0, 8.0], [0.1, 0.2]])
      if partitioner is None else None, partitioner=partitioner,
      shape=None if partitioner is None else [4, 2])
  other = tf1.get_variable('other', initializer=[[5.0, 5.0]])
  rows = tf.nn.embedding_lookup(table, [0, 0]) if sparse else table
  loss = tf.reduce_sum(rows) + tf.reduce_sum(other)
  train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train(base, rules, fn=model_fn, max_norm=1.0):
  worker = strategy_worker.StrategyWorker(
      VariableClippingStrategy(base, rules, max_norm), fn)
  worker.step()
  return worker


@pytest.mark.parametrize('base', BASES)
def test_dense_update_is_clipped_after_it(behavior, base):
  # Two devices sum the gradients with TensorFlow's strategy alone: ours have
  # gradients of their own, or the mean.
  replicas = 2 if base == 'mirrored' else 1
  worker = train(BASES[base](), {'^tab': 1})
  rows = np.array([[2., 3.], [6., 8.], [.1, .2]]) - replicas
  rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
  np.testing.assert_allclose(worker.value('table'), rows, rtol=1e-6)
  np.testing.assert_array_equal(worker.value('other'), [[5. - replicas] * 2])


@pytest.mark.parametrize('base', [
    'ps', 'drop_stale', 'elastic', 'tower', 'cross_shard'])
def test_sparse_update_clips_the_rows_it_names(behavior, base):
  def sparse(*args):
    return model_fn(*args, sparse=True)
  worker = train(BASES[base](), {'^tab': -1}, sparse)
  # Row 0, there twice: [2, 3] - 2 = [0, 1]. Row 1 was not looked up.
  np.testing.assert_allclose(
      worker.value('table'), [[0, 1], [6, 8], [.1, .2]], rtol=1e-6)


@pytest.mark.parametrize('make_bound', [float, tf.constant])
def test_predicate_selects_by_name(behavior, make_bound):
  worker = train(BASES['ps'](), {(lambda name: name == 'other'): [1]},
                 max_norm=make_bound(1.0))
  np.testing.assert_allclose(
      worker.value('other'), [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


@pytest.mark.parametrize('base', ['ps', 'drop_stale', 'mirrored'])
def test_parts_are_clipped_jointly_along_the_split(behavior, base):
  def partitioned(*args):
    with tf1.variable_scope('', initializer=tf1.constant_initializer(5.0)):
      return model_fn(*args, partitioner=tf1.fixed_size_partitioner(2))

  copies = []

  def make_saver():
    for part in tf1.trainable_variables()[:2]:
      copies.extend(tf.identity(v) for v in tf.distribute.get_strategy(
          ).experimental_local_results(part))
    return tf1.train.Saver()

  worker = strategy_worker.StrategyWorker(
      VariableClippingStrategy(BASES[base](), {'^table': 0}, 1.0),
      partitioned, make_saver=make_saver)
  worker.step()
  assert len(copies) == (4 if base == 'mirrored' else 2)
  # Each column is [4, 4, 4, 4] over two parts: norm 8; or [3, 3, 3, 3].
  for part in worker.session.run(copies):
    np.testing.assert_allclose(part, np.full([2, 2], 0.5), rtol=1e-6)


def test_checkpoint_is_that_of_the_base(behavior, tmp_path):
  def adam(*args):
    return model_fn(*args, make_optimizer=tf1.train.AdamOptimizer)
  names = []
  for strategy in (BASES['ps'](), VariableClippingStrategy(
      BASES['ps'](), {'table': 1}, 1.0)):
    worker = strategy_worker.StrategyWorker(strategy, adam)
    path = worker.save(str(tmp_path / f'{len(names)}'))
    names.append(tf.train.list_variables(path))
  assert names[0] == names[1]


def test_result_is_an_instance_of_both_classes():
  strategy = VariableClippingStrategy(BASES['drop_stale'](), {'table': 1}, 1.0)
  assert strategy.staleness == 0
  assert isinstance(strategy,
                    drop_stale_gradient_strategy.DropStaleGradientStrategy)
  assert isinstance(strategy, VariableClippingStrategy)


def test_base_strategy_stays_as_it_is(behavior):
  base = BASES['ps']()
  VariableClippingStrategy(base, {'table': 1}, 1.0)
  worker = strategy_worker.StrategyWorker(base, model_fn)
  worker.step()
  assert worker.value('table')[1].tolist() == [5.0, 7.0]


@pytest.mark.parametrize('base', BASES)
def test_deep_copy_clips(base):
  strategy = VariableClippingStrategy(BASES[base](), {'table': 1}, 1.0)
  worker = strategy_worker.StrategyWorker(copy.deepcopy(strategy), model_fn)
  worker.step()
  np.testing.assert_allclose(
      np.linalg.norm(worker.value('table')[1]), 1.0, rtol=1e-6)


def test_rule_without_match_names_near_ones(behavior):
  strategy = VariableClippingStrategy(BASES['ps'](), {'tabel': 1}, 1.0)
  with pytest.raises(ValueError, match=r"`rules`.*Near names: \['table'"):
    strategy_worker.StrategyWorker(strategy, model_fn)


def test_run_in_function_and_keras_fit_over_mirrored():
  strategy = VariableClippingStrategy(
      tf.distribute.MirroredStrategy(
          ['/cpu:0', '/cpu:1'],
          cross_device_ops=tf.distribute.ReductionToOneDevice()),
      {'kernel': 0}, 0.5)
  with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(3, input_shape=(4,)),
        tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), 'mse')
  x = np.random.randn(16, 4).astype(np.float32)
  model.fit(x, 10 * x[:, :1], epochs=2, batch_size=8, verbose=0)
  for layer in model.layers:
    norms = np.linalg.norm(layer.kernel.numpy(), axis=0)
    assert (norms <= 0.5 * (1 + 1e-6)).all()
  assert max(norms) > 0.49


def test_an_assignment_is_no_update_of_an_optimizer():
  strategy = VariableClippingStrategy(mirrored(), {'v': 0}, 1.0)
  sgd = tf1.train.GradientDescentOptimizer(0.0)
  with strategy.scope():
    v = tf.Variable([3.0, 4.0], name='v')
    v.assign([30.0, 40.0])
    np.testing.assert_array_equal(v.numpy(), [30.0, 40.0])
    v.assign_add([0.0, 5.0])
    np.testing.assert_array_equal(v.numpy(), [30.0, 45.0])
  strategy.run(lambda: sgd.minimize(lambda: v[0], var_list=[v]))
  np.testing.assert_allclose(np.linalg.norm(v.numpy()), 1.0, rtol=1e-6)


@pytest.mark.parametrize('policy', ['mixed_float16', 'mixed_bfloat16'])
@pytest.mark.parametrize('base', ['one_device', 'multi_worker'])
def test_variables_that_keras_casts_are_clipped(base, policy):
  strategy = VariableClippingStrategy(BASES[base](), {'kernel': 0}, 0.25)
  x = np.random.randn(8, 4).astype(np.float32)
  with strategy.scope():
    layer = tf.keras.layers.Dense(2, dtype=policy)
    layer.build([None, 4])
    optimizer = tf.keras.optimizers.SGD(0.5)
    optimizer.build(layer.trainable_variables)

  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.cast(layer(x), tf.float32) - 9.0)
    gradients = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables))

  strategy.run(tf.function(step))
  norms = np.linalg.norm(layer.kernel.numpy(), axis=0)
  np.testing.assert_allclose(norms, 0.25, rtol=1e-6)


def test_all_rows_are_clipped_if_asked_for(behavior):
  def sparse(*args):
    return model_fn(*args, sparse=True)

  worker = strategy_worker.StrategyWorker(VariableClippingStrategy(
      BASES['ps'](), {'^tab': 1}, 1.0, rows='all'), sparse)
  worker.step()
  # Row 1 was not looked up, and its norm was 10.
  np.testing.assert_allclose(
      worker.value('table'), [[0, 1], [.6, .8], [.1, .2]], rtol=1e-6)


def test_no_dims_clip_each_value_by_itself(behavior):
  worker = train(BASES['ps'](), {'^tab': []})
  # [[2, 3], [6, 8], [.1, .2]] - 1, each value in [-1, 1].
  np.testing.assert_allclose(
      worker.value('table'), [[1, 1], [1, 1], [-.9, -.8]], rtol=1e-6)


@pytest.mark.parametrize('base', ['ps', 'mirrored', 'one_device', 'drop_stale'])
def test_a_moving_average_is_its_new_value_and_not_clipped(behavior, base):
  strategy = VariableClippingStrategy(BASES[base](), {'other': 0}, 1.0)
  average = tf.train.ExponentialMovingAverage(0.5)
  # Batch norm and others call it; it has no public name.
  moving_averages = sys.modules[type(average).__module__]
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.get_or_create_global_step()
    v = tf1.get_variable('v', initializer=[3.0, 4.0], trainable=False)
    other = tf1.get_variable('other', initializer=[3.0, 4.0])

    def replica():
      value = moving_averages.assign_moving_average(
          v, tf.constant([1.0, 2.0]), 0.5, zero_debias=False)
      with tf.control_dependencies([average.apply([other])]):
        return tf.identity(value)

    values = strategy.experimental_local_results(
        strategy.extended.call_for_each_replica(replica))
    with tf1.Session(config=tf1.ConfigProto(
        device_count={'CPU': 2}, allow_soft_placement=True)) as session:
      session.run(tf1.global_variables_initializer())
      for value in session.run(values):
        np.testing.assert_array_equal(value, [2.0, 3.0])


def test_a_function_of_ones_own_returns_the_clipped_value(behavior):
  strategy = VariableClippingStrategy(BASES['one_device'](), {'v': 0}, 1.0)
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=[3.0, 4.0])
    value = strategy.extended.update(
        v, lambda variable: variable.assign_add([0.0, 0.0]))
    session.run(v.initializer)
    np.testing.assert_allclose(session.run(value), [.6, .8], rtol=1e-6)


@pytest.mark.parametrize('rule, refused', [('outside', True), ('table', False)])
def test_a_selected_variable_that_is_not_trained_here_is_an_error(
    behavior, rule, refused):
  def untrained(features, labels, mode):
    del features, labels
    tf1.get_variable('table', initializer=[1.0])
    tf1.get_variable('outside_table', initializer=[1.0])
    v = tf1.get_variable('outside', initializer=[3.0, 4.0], trainable=False)
    loss = tf.reduce_sum(v)
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(
        loss, tf1.train.get_global_step(), var_list=[v])
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  # A rule that selects the global step does not mean it.
  strategy = VariableClippingStrategy(
      BASES['ps'](), [(rule, 0), ('table|global_step', 0)], 1.0)
  if refused:
    with pytest.raises(ValueError, match="`rules` must .*Received: 'outside'"):
      strategy_worker.StrategyWorker(strategy, untrained)
  else:
    strategy_worker.StrategyWorker(strategy, untrained).step()


@pytest.mark.parametrize('arguments, error, words', [
    ((None, {'x': 0}, 1.0), TypeError, 'base_strategy'),
    ((tf1.distribute.MirroredStrategy, {'x': 0}, 1.0), TypeError, 'instance'),
    (('ps', {}, 1.0), ValueError, 'rules'),
    (('ps', {'x': 1.5}, 1.0), TypeError, 'rules'),
    (('ps', {3: 1}, 1.0), TypeError, 'rules'),
    (('ps', {'x': 0}, 0.0), ValueError, 'max_norm'),
    (('ps', {'x': 0}, '1'), TypeError, 'max_norm'),
])
def test_bad_argument_raises(arguments, error, words):
  base, rules, max_norm = arguments
  base = BASES[base]() if isinstance(base, str) else base
  with pytest.raises(error, match=words):
    VariableClippingStrategy(base, rules, max_norm)


def test_unknown_rows_raise():
  with pytest.raises(ValueError, match='`rows` must'):
    VariableClippingStrategy(BASES['ps'](), {'x': 0}, 1.0, rows='some')


def test_clipping_inside_clipping_raises():
  inner = VariableClippingStrategy(BASES['ps'](), {'x': 0}, 1.0)
  with pytest.raises(ValueError, match='one VariableClippingStrategy'):
    VariableClippingStrategy(inner, {'y': 0}, 1.0)


def test_devices_that_must_meet_in_a_branch_are_refused(behavior):

  def accumulating(features, labels, mode):
    del features, labels
    v = tf1.get_variable('v', initializer=[[3.0, 4.0]])

    def apply():
      with tf1.control_dependencies([
          tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
              [(tf.ones([1, 2]), v)], tf1.train.get_global_step())]):
        return tf.constant(True)

    train_op = tf.cond(tf1.placeholder_with_default(True, []), apply,
                       lambda: tf.constant(False)).op
    return tf1.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(v), train_op=train_op)

  with pytest.raises(RuntimeError, match='(?s)wait for each other.*merge_call'):
    strategy_worker.StrategyWorker(
        VariableClippingStrategy(mirrored(), {'v': 1}, 1.0), accumulating)
