# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.optimizers.cross_shard."""

import logging as std_logging

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import current_shards
from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1
Reduction = tf1.losses.Reduction
SGD = tf1.train.GradientDescentOptimizer

# One number per replica; loss of replica i = weight * X[i], gradient X[i].
X = np.float32([1, 2, 4, 8])


class _AssignsByItself(tf1.train.Optimizer):
  """The shape of an optimizer that does without the v1 update protocol."""

  def __init__(self):
    super().__init__(False, 'AssignsByItself')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    assignments = []
    for gradient, variable in grads_and_vars:
      m = tf1.get_variable(f'{variable.op.name}/m', initializer=0.0,
                           trainable=False)
      next_m = m + gradient
      assignments += [m.assign(next_m), variable.assign(variable - next_m)]
    return tf.group(*assignments, name=name)


def _mirrored(num_replicas):
  return tf.distribute.MirroredStrategy(
      [f'CPU:{i}' for i in range(num_replicas)],
      tf.distribute.ReductionToOneDevice())


def _train(strategy, make_train_op, steps=1):
  """Runs `make_train_op(weight, x)` per replica; returns weights and step."""
  with tf.Graph().as_default(), strategy.scope():
    step = tf1.train.get_or_create_global_step()

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      weight = tf1.get_variable('weight', initializer=100.0, use_resource=True)
      return make_train_op(weight, tf.gather(tf.constant(X), index)), weight

    train_op, weight = strategy.run(replica)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(steps):
        session.run(strategy.experimental_local_results(train_op))
      return session.run(
          [list(strategy.experimental_local_results(weight)), step])


def _minimize(**kwargs):
  def make_train_op(weight, x):
    optimizer = cross_shard.CrossShardOptimizer(SGD(1.0), **kwargs)
    return optimizer.minimize(
        weight * x, global_step=tf1.train.get_global_step())
  return make_train_op


@pytest.mark.parametrize('kwargs, expected', [
    ({}, [100 - 15 / 4] * 4),
    ({'reduction': Reduction.SUM}, [85.0] * 4),
    ({'group_assignment': [[0, 1], [2, 3]]}, [98.5, 98.5, 94, 94]),
    ({'group_assignment': [[0, 2], [3, 1]], 'reduction': Reduction.SUM},
     [95, 90, 95, 90]),
    ({'group_assignment': [[0, 1, 2, 3]]}, [100 - 15 / 4] * 4),
])
def test_mirrored_v1_optimizer_in_a_graph(behavior, kwargs, expected):
  weights, step = _train(_mirrored(4), _minimize(**kwargs))
  np.testing.assert_array_equal(weights, expected)
  assert step == 1


def test_gradients_of_tf_gradients_are_summed(behavior):
  def make_train_op(weight, x):
    optimizer = cross_shard.CrossShardOptimizer(SGD(1.0))
    [gradient] = tf.gradients(weight * x, [weight])
    return optimizer.apply_gradients([(gradient, weight), (None, weight)])
  weights, step = _train(_mirrored(4), make_train_op)
  np.testing.assert_array_equal(weights, [85.0] * 4)
  assert step == 0


def test_optimizer_that_assigns_by_itself_gets_the_sum(behavior):
  def make_train_op(weight, x):
    optimizer = cross_shard.CrossShardOptimizer(_AssignsByItself())
    [gradient] = tf.gradients(weight * x, [weight])
    return optimizer.apply_gradients([(gradient, weight)])
  # m: 15, 30; weight: 100 - 15 - 30
  weights, _ = _train(_mirrored(4), make_train_op, steps=2)
  np.testing.assert_array_equal(weights, [55.0] * 4)


def test_optimizer_that_overrides_apply_refuses_several_groups():
  with pytest.raises(NotImplementedError, match='_AssignsByItself'):
    _train(_mirrored(2), lambda weight, x: cross_shard.CrossShardOptimizer(
        _AssignsByItself(), group_assignment=[[0], [1]]).minimize(weight * x))


def test_shared_variables_refuse_several_groups():
  strategy = tf.distribute.experimental.CentralStorageStrategy(
      ['CPU:0', 'CPU:1'], 'CPU:0')
  with pytest.raises(ValueError, match='weight.*once for all replicas'):
    _train(strategy, _minimize(group_assignment=[[0], [1]]))


def test_nested_wrapper_with_groups(behavior):
  def make_train_op(weight, x):
    inner = cross_shard.CrossShardOptimizer(SGD(1.0))
    optimizer = cross_shard.CrossShardOptimizer(
        inner, Reduction.SUM, group_assignment=[[0, 1], [2, 3]])
    [gradient] = tf.gradients(weight * x, [weight])
    return optimizer.apply_gradients([(gradient, weight)])
  weights, _ = _train(_mirrored(4), make_train_op)
  np.testing.assert_array_equal(weights, [97, 97, 88, 88])


@pytest.mark.filterwarnings('ignore:To make it possible:UserWarning')
@pytest.mark.parametrize('reduction, last_loss, expected', [
    # The gradients are 1 and 2 whatever the user's loss is reduced by.
    (Reduction.MEAN, Reduction.SUM_BY_NONZERO_WEIGHTS, 98.5),
    (Reduction.MEAN, Reduction.SUM, 98.5),
    (Reduction.SUM, Reduction.SUM_BY_NONZERO_WEIGHTS, 97.0),
    (Reduction.SUM, Reduction.SUM, 97.0),
])
def test_mirrored_under_estimator_is_divided_once(
    behavior, tmp_path, reduction, last_loss, expected):
  strategy = _mirrored(2)

  def model_fn(features, labels, mode):
    del labels
    weight = tf1.get_variable('weight', initializer=100.0)
    # One example per replica: absolute difference to a far target.
    loss = tf1.losses.absolute_difference(
        tf.constant([1000.0]), -weight * features, reduction=last_loss)
    optimizer = cross_shard.CrossShardOptimizer(SGD(1.0), reduction)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(
            loss, tf1.train.get_global_step()))

  def input_fn():
    return tf.data.Dataset.from_tensors(0).repeat().enumerate().map(
        lambda i, _: tf.reshape(tf.cast(i % 2 + 1, tf.float32), [1]))

  estimator = tf.estimator.Estimator(model_fn, str(tmp_path), (
      tf.estimator.RunConfig(
          train_distribute=strategy,
          session_config=tf1.ConfigProto(
              device_count={'CPU': 4}, allow_soft_placement=True))))
  estimator.train(input_fn, max_steps=1)
  assert estimator.get_variable_value('weight') == expected


def test_callable_loss_in_tf_function_under_strategy_run():
  strategy = _mirrored(2)
  with strategy.scope():
    weight = tf.Variable(100.0)
  optimizer = cross_shard.CrossShardOptimizer(
      tf1.train.MomentumOptimizer(1.0, 0.5))

  @tf.function
  def step():
    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      optimizer.minimize(lambda: weight * tf.gather(X, index),
                         var_list=[weight])
    strategy.run(replica)

  step()
  assert float(weight.read_value()) == 98.5
  step()  # momentum: 1.5, then 0.5 * 1.5 + 1.5
  assert float(weight.read_value()) == 96.25


@pytest.mark.parametrize('decorate', [lambda f: f, tf.function])
def test_one_shard_outside_a_graph_is_the_inner_optimizer(decorate):
  weight = tf.Variable([1.0, 2.0])
  step = tf.Variable(0, dtype=tf.int64, trainable=False)
  optimizer = cross_shard.CrossShardOptimizer(SGD(0.5))
  decorate(lambda: optimizer.minimize(
      lambda: tf.reduce_sum(weight ** 2), global_step=step,
      var_list=[weight]) and None)()
  np.testing.assert_array_equal(weight, [0, 0])
  assert int(step) == 1


def test_sparse_gradients_stay_sparse_under_mirrored(behavior):
  seen = []

  class Recorder(SGD):

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
      seen.append(grad.shape)
      return super()._resource_apply_sparse_duplicate_indices(
          grad, handle, indices)

  strategy = _mirrored(2)
  with tf.Graph().as_default(), strategy.scope():
    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      table = tf1.get_variable('table', initializer=tf.zeros([5, 1]),
                               use_resource=True)
      ids = tf.gather(tf.constant([[1, 1], [1, 3]]), index)
      loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
      return cross_shard.CrossShardOptimizer(Recorder(1.0)).minimize(loss), (
          table)
    train_op, table = strategy.run(replica)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(strategy.experimental_local_results(train_op))
      [first, second] = session.run(
          list(strategy.experimental_local_results(table)))
  assert seen
  # Gradients, halved: {1: 1} and {1: 0.5, 3: 0.5}.
  np.testing.assert_array_equal(first[:, 0], [0, -1.5, 0, -.5, 0])
  np.testing.assert_array_equal(second, first)


def test_a_group_must_fit_the_shards():
  optimizer = cross_shard.CrossShardOptimizer(
      SGD(1.0), group_assignment=[[0, 1]])
  weight = tf.Variable(1.0)
  with pytest.raises(ValueError, match=r'permutation of range\(1\)'):
    optimizer.compute_gradients(lambda: weight * 1.0)
  with pytest.raises(ValueError, match=r'permutation of range\(1\)'):
    optimizer.apply_gradients([(tf.constant(1.0), weight)])


def test_cross_replica_context_is_refused():
  with _mirrored(2).scope():
    weight = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match='once per shard'):
      cross_shard.CrossShardOptimizer(SGD(1.0)).apply_gradients(
          [(tf.constant(1.0), weight)])


@pytest.mark.parametrize('num_replicas', [1, 2])
def test_replicas_of_a_strategy_are_not_warned_of(
    behavior, caplog, num_replicas):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  _train(_mirrored(num_replicas), _minimize())
  assert 'one shard' not in caplog.text


def test_one_shard_without_context_warns_once(behavior, caplog):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  with tf.Graph().as_default():
    optimizer = cross_shard.CrossShardOptimizer(SGD(1.0))
    weight = tf1.get_variable('weight', initializer=1.0)
    optimizer.minimize(weight * 1.0)
    optimizer.minimize(weight * 2.0)
  warnings = [r for r in caplog.records if 'one shard' in r.getMessage()]
  assert len(warnings) == 1


@pytest.mark.parametrize('make_opt', [
    lambda: tf.keras.optimizers.SGD(),
    lambda: tf.keras.optimizers.legacy.Adam(),
    lambda: SGD, lambda: 'sgd'], ids=['keras', 'legacy', 'class', 'name'])
def test_wrong_optimizer_is_refused(make_opt):
  with pytest.raises(TypeError, match='`opt` must be an instance'):
    cross_shard.CrossShardOptimizer(make_opt())


@pytest.mark.parametrize('reduction', ['mean', Reduction.NONE, None, 'sum'])
def test_wrong_reduction_is_refused(reduction):
  with pytest.raises(ValueError, match='`reduction`.*Received'):
    cross_shard.CrossShardOptimizer(SGD(1.0), reduction)


def test_wrong_groups_are_refused_at_construction():
  with pytest.raises(ValueError, match='one size'):
    cross_shard.CrossShardOptimizer(SGD(1.0), group_assignment=[[0], [1, 2]])


def test_is_the_tpu_class_with_its_arguments_in_order():
  optimizer = cross_shard.CrossShardOptimizer(
      SGD(1.0), Reduction.SUM, 'own_name', [[0, 1]])
  assert isinstance(optimizer, tf1.tpu.CrossShardOptimizer)
  assert optimizer.get_name() == 'own_name'
  assert cross_shard.CrossShardOptimizer(
      SGD(1.0)).get_name() == 'CrossShardOptimizer'


def test_loss_that_uses_cross_replica_sum(behavior):
  # loss[i] = weight * x[i] * sum(x); gradient x[i] * 15; mean 15 * 15 / 4
  def make_train_op(weight, x):
    total = current_shards.cross_replica_sum(x)
    return cross_shard.CrossShardOptimizer(SGD(1.0)).minimize(
        weight * x * total)
  weights, _ = _train(_mirrored(4), make_train_op)
  np.testing.assert_array_equal(weights, [100 - 225 / 4] * 4)
