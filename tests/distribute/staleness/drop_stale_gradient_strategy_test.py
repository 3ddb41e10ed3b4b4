# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of DropStaleGradientStrategy, on in-process clusters."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.staleness import drop_stale_gradient_strategy
from tfplugin.testing import clusters

tf1 = tf.compat.v1

LIMIT_SECONDS = 60


class Gate:
  """Holds a worker's backward pass until the test opens it."""

  def __init__(self):
    self.arrived = threading.Event()
    self.opened = threading.Event()

  def __call__(self):
    self.arrived.set()
    return np.float32(1.0 if self.opened.wait(LIMIT_SECONDS) else 'late')

  def factor(self):
    return tf.ensure_shape(tf.numpy_function(self, [], tf.float32), [])


def make_model_fn(make_optimizer, gate=None):
  """loss = 1/2 |w|^2 + sum of b; the gate sits between reading and gradient."""

  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
    b = tf.Variable([1.0, 1.0, 1.0], name='b')
    value = w + 0.0
    if gate is not None:
      with tf.control_dependencies([value]):
        value *= gate.factor()
    loss = 0.5 * tf.reduce_sum(tf.square(value)) + tf.reduce_sum(b)
    train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


class AdvancesStep(tf1.train.GradientDescentOptimizer):
  """What a model_fn does that advances the step apart from its optimizers."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    with tf.control_dependencies([super().apply_gradients(grads_and_vars)]):
      return tf1.assign_add(global_step, 1).op


def advances_step():
  return AdvancesStep(0.5)


def adam():
  return tf1.train.AdamOptimizer(0.5)


def start(cluster, index, model_fn, staleness):
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, task_type='worker', task_id=index)
  strategy = drop_stale_gradient_strategy.DropStaleGradientStrategy(
      resolver, staleness=staleness)
  return strategy_worker.StrategyWorker(
      strategy, model_fn, cluster.target('worker', index),
      is_chief=index == 0)


def overtake(staleness, overtaken_by, make_optimizer=sgd):
  """One worker is held in its step while another makes some."""
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=2)
  gate = Gate()
  fast = start(cluster, 0, make_model_fn(make_optimizer), staleness)
  slow = start(cluster, 1, make_model_fn(make_optimizer, gate), staleness)
  step = threading.Thread(target=slow.step)
  step.start()
  assert gate.arrived.wait(LIMIT_SECONDS)
  fast.step(overtaken_by)
  before = fast.value('w')
  gate.opened.set()
  step.join(LIMIT_SECONDS)
  assert not step.is_alive()
  return fast, slow, before


@pytest.mark.parametrize('make_bound', [int, tf.constant])
def test_gradient_at_the_bound_is_applied(behavior, make_bound):
  fast, slow, before = overtake(staleness=make_bound(3), overtaken_by=3)
  # Three halvings; then the gradient of the value 1 that was read first.
  assert before.tolist() == [0.125, 0.125]
  assert fast.value('w').tolist() == [0.125 - 0.5, 0.125 - 0.5]
  assert fast.value('global_step') == 4
  assert slow.value('stale_gradients/num_applied') == 1


@pytest.mark.parametrize('make_optimizer', [sgd, advances_step])
def test_gradient_beyond_the_bound_changes_nothing(behavior, make_optimizer):
  fast, slow, before = overtake(
      staleness=2, overtaken_by=3, make_optimizer=make_optimizer)
  np.testing.assert_array_equal(fast.value('w'), before)
  assert fast.value('b').tolist() == [-0.5, -0.5, -0.5]
  assert fast.value('global_step') == 3
  assert slow.value('stale_gradients/num_dropped') == 1
  assert slow.value('stale_gradients/num_applied') == 0
  assert fast.value('stale_gradients/num_applied') == 3


def test_stale_gradient_leaves_slots_and_powers(behavior):
  fast, _, _ = overtake(staleness=0, overtaken_by=1, make_optimizer=adam)
  np.testing.assert_allclose(fast.value('beta1_power'), 0.9 ** 2)
  np.testing.assert_allclose(fast.value('w/Adam'), [0.1, 0.1], rtol=1e-6)


@pytest.mark.parametrize('make_optimizer', [sgd, adam])
def test_checkpoint_names_are_those_without_strategy(
    behavior, tmp_path, make_optimizer):
  worker = strategy_worker.StrategyWorker(
      drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0),
      make_model_fn(make_optimizer))
  worker.step(2)
  saved = dict(tf.train.list_variables(worker.save(str(tmp_path / 'm'))))
  with tf.Graph().as_default():
    tf1.train.get_or_create_global_step()
    make_model_fn(make_optimizer)(None, None, 'train')
    bare = {v.op.name: v.shape.as_list() for v in tf1.global_variables()}
  assert saved == bare


def test_two_optimizers_share_one_decision(behavior):
  def model_fn(features, labels, mode):
    del features, labels
    step = tf1.train.get_global_step()
    a = tf1.get_variable('a', initializer=1.0)
    b = tf1.get_variable('b', initializer=1.0)
    first = sgd().minimize(tf.square(a) / 2, step, var_list=[a])
    with tf.control_dependencies([first]):
      second = sgd().minimize(tf.square(b) / 2, var_list=[b])
    return tf1.estimator.EstimatorSpec(
        mode, loss=a + b, train_op=tf.group(first, second))

  worker = strategy_worker.StrategyWorker(
      drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0),
      model_fn)
  worker.step(2)
  # The first optimizer's own step does not make the second one stale.
  assert [worker.value('a'), worker.value('b')] == [0.25, 0.25]
  assert worker.value('stale_gradients/num_applied') == 2


class TwoDevices(tf.distribute.cluster_resolver.SimpleClusterResolver):
  """One process with two devices, which soft placement finds on the CPU."""

  def num_accelerators(self, *args, **kwargs):
    return {'GPU': 2}


def overtaken_model_fn(make_optimizer, by):
  """A step whose gradient arrives `by` steps late on the first device."""

  def model_fn(features=None, labels=None, mode='train'):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_global_step()
    value = w + 0.0
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    with tf.control_dependencies([value]):
      advance = tf.raw_ops.AssignAddVariableOp(
          resource=parameter_server_base.unwrapped(step).handle,
          value=tf.where(tf.equal(replica, 0), tf.constant(by, tf.int64), 0))
    with tf.control_dependencies([advance]):
      loss = tf.square(tf.identity(value))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=make_optimizer().minimize(loss, step))

  return model_fn


def loss_scaled():
  return tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      sgd(), tf1.mixed_precision.FixedLossScale(2.0))


# 1 - 0.5 * (2 + 2), the gradients of both devices being added.
@pytest.mark.parametrize('late, want', [(4, (-1.0, 5, 1, 0)),
                                        (5, (1.0, 5, 0, 1))])
@pytest.mark.parametrize('make_optimizer', [sgd, loss_scaled])
def test_one_late_device_drops_the_step(behavior, make_optimizer, late, want):
  strategy = drop_stale_gradient_strategy.DropStaleGradientStrategy(
      TwoDevices(tf.train.ClusterSpec({})), staleness=4)
  assert strategy.num_replicas_in_sync == 2
  worker = strategy_worker.StrategyWorker(
      strategy, overtaken_model_fn(make_optimizer, late))
  worker.step()
  assert want == tuple(worker.value(name) for name in (
      'w', 'global_step', 'stale_gradients/num_applied',
      'stale_gradients/num_dropped'))


@pytest.mark.parametrize('late, want', [(4, 0.0), (5, 1.0)])
def test_a_function_is_built_into_the_graph(behavior, late, want):
  strategy = drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=4)
  model_fn = overtaken_model_fn(sgd, late)
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.get_or_create_global_step()
    train_op = strategy.run(tf.function(lambda: model_fn().train_op))
    [w] = tf1.trainable_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      assert session.run(w) == want


def test_two_runs_in_a_graph_share_one_decision(behavior):
  strategy = drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0)

  def step(name):
    v = tf1.get_variable(name, initializer=1.0)
    return sgd().minimize(tf.square(v) / 2, tf1.train.get_global_step())

  with tf.Graph().as_default(), strategy.scope():
    tf1.train.get_or_create_global_step()
    first = strategy.run(step, args=('a',))
    with tf.control_dependencies([first]):
      second = strategy.run(step, args=('b',))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(second)
      assert session.run(tf1.trainable_variables()) == [0.5, 0.5]


@pytest.mark.parametrize('when', ['before', 'after', 'beside'])
def test_a_model_fn_advances_the_step_by_itself(behavior, when):
  def model_fn(features, labels, mode):
    del features, labels
    step = tf1.train.get_global_step()
    w = tf1.get_variable('w', initializer=1024.0)
    if when == 'before':
      advance = step.assign(step + 1)
    matrix = tf.random.uniform([100, 100])
    for _ in range(50):  # Longer than any write of the step.
      matrix = tf.matmul(matrix, matrix) * 0.01
    loss = w * w + 0.0 * tf.reduce_sum(matrix) * w
    update = tf1.train.GradientDescentOptimizer(0.25).minimize(loss)
    if when == 'after':
      advance = step.assign(step + 1)
    elif when == 'beside':  # Not by the strategy.
      advance = tf.raw_ops.AssignAddVariableOp(
          resource=parameter_server_base.unwrapped(step).handle,
          value=tf.ones([], tf.int64))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(update, advance))

  worker = strategy_worker.StrategyWorker(
      drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0),
      model_fn)
  worker.step(5)
  assert [worker.value(name) for name in (
      'w', 'global_step', 'stale_gradients/num_applied')] == [32.0, 5, 5]


def test_each_iteration_of_a_loop_is_a_step(behavior):
  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1024.0)

    def body(i):
      update = sgd().apply_gradients(
          [(w.read_value(), w)], tf1.train.get_global_step())
      with tf.control_dependencies([update]):
        return i + 1

    loop = tf.while_loop(lambda i: i < 5, body, [0])
    return tf1.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=tf.group(loop))

  worker = strategy_worker.StrategyWorker(
      drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=0),
      model_fn)
  worker.step()
  assert [worker.value(name) for name in (
      'w', 'global_step', 'stale_gradients/num_applied')] == [32.0, 5, 5]


def test_graph_without_global_step_raises():
  strategy = drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=1)
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(RuntimeError, match='get_or_create_global_step'):
      strategy.extended.call_for_each_replica(
          make_model_fn(sgd), args=(None, None, 'train'))


@pytest.mark.parametrize('staleness, error', [
    (-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)])
def test_bad_staleness_raises(staleness, error):
  with pytest.raises(error, match='staleness'):
    drop_stale_gradient_strategy.DropStaleGradientStrategy(staleness=staleness)


@pytest.mark.parametrize('policy, counted', [
    ('drop', {'num_applied': 0, 'num_dropped': 0, 'num_nonfinite': 1}),
    ('apply', {'num_applied': 1, 'num_dropped': 0})])
def test_what_is_not_finite_is_counted_where_it_is_dropped(
    behavior, policy, counted):
  def model_fn(features, labels, mode):
    del features, labels
    loss = tf1.get_variable('w', initializer=1.0) * np.inf
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=sgd().minimize(
            loss, tf1.train.get_global_step()))

  worker = strategy_worker.StrategyWorker(
      drop_stale_gradient_strategy.DropStaleGradientStrategy(
          staleness=0, on_nonfinite=policy), model_fn)
  worker.step()
  with worker.graph.as_default():
    assert {v.op.name: worker.value(v.op.name)
            for v in tf1.local_variables()} == {
                f'stale_gradients/{name}': n for name, n in counted.items()}


def test_an_update_inside_another_leaves_the_outer_one_behind_the_gate():
  gates = drop_stale_gradient_strategy._Gates()
  with gates.applying:
    with gates.applying:
      assert gates.applying
    assert gates.applying
  assert not gates.applying
