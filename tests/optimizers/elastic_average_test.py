# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of elastic averaging, computed by hand or by numpy."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin.optimizers import elastic_average

tf1 = tf.compat.v1

Getter = elastic_graphs.Getter
_sgd = elastic_graphs.sgd
_optimizer = elastic_graphs.make_optimizer
_variable = elastic_graphs.variable
_session = elastic_graphs.session
_center = elastic_graphs.center


@pytest.mark.parametrize('rho, local, center', [
    # local += -(1 * .1 * 1) = .9; d = .1 * .9; the penalty doubles the force.
    (None, 0.81, 0.09), (0.0, 0.9, 0.1)])
def test_one_step_from_a_distance(behavior, rho, local, center):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    w = _variable(getter)
    optimizer = _optimizer(getter, rho=rho)
    train = optimizer.minimize(0.0 * w)
    with _session(optimizer) as session:
      session.run(_center(getter, w).assign(0.0))
      for variable in optimizer.variables():
        if 'local_center' in variable.op.name:
          session.run(variable.assign(0.0))
      session.run(train)
      np.testing.assert_allclose(session.run(w), local, rtol=1e-6)
      np.testing.assert_allclose(
          session.run(_center(getter, w)), center, rtol=1e-6)


@pytest.mark.parametrize('order', ['gradient_first', 'elastic_first'])
def test_ten_steps_equal_numpy(behavior, order):
  del behavior
  rate, period, rho, eta = 0.25, 3, 0.5, 0.1
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    w = _variable(getter, value=[4.0, -2.0])
    optimizer = _optimizer(
        getter, _sgd(eta), communication_period=period, moving_rate=rate,
        rho=rho, update_order=order)
    train = optimizer.minimize(tf.reduce_sum(w * w * [0.5, 1.5]), step)
    local = np.array([4.0, -2.0])
    center, seen = local.copy(), local.copy()
    with _session(optimizer) as session:
      for i in range(1, 11):
        session.run(train)
        gradient = local * [1.0, 3.0] + rho * (local - seen)
        if order == 'gradient_first':
          local = local - eta * gradient
        if i % period == 0:
          d = rate * (local - center)
          seen = center.copy()
          local, center = local - d, center + d
        if order == 'elastic_first':
          local = local - eta * gradient
        np.testing.assert_allclose(session.run(w), local, rtol=1e-5)
        np.testing.assert_allclose(
            session.run(_center(getter, w)), center, rtol=1e-5)
      assert session.run(step) == 3
      assert session.run(optimizer.local_step) == 10


def test_global_step_may_count_local_steps(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    w = _variable(getter)
    optimizer = _optimizer(getter, communication_period=4, count_steps='local')
    train = optimizer.minimize(w * w, step)
    with _session(optimizer) as session:
      for _ in range(6):
        session.run(train)
      assert session.run(step) == 6


def test_var_list_is_paired_with_its_own_centers(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b = _variable(getter, 'a', [7.0, 7.0]), _variable(getter, 'b', 3.0)
    optimizer = _optimizer(getter, rho=0.25)
    pairs = optimizer.compute_gradients(0.0 * b + tf.reduce_sum(a) * 0.0,
                                        var_list=[b, a])
    assert [v is w for (_, v), w in zip(pairs, [b, a])] == [True, True]
    with _session(optimizer) as session:
      session.run(b.assign(5.0))  # .25 * (5 - 3)
      session.run(a.assign([7.0, 11.0]))  # .25 * (11 - 7)
      of_b, of_a = session.run([gradient for gradient, _ in pairs])
    assert of_b == 0.5
    np.testing.assert_array_equal(of_a, [0.0, 1.0])


@pytest.mark.parametrize('choose, expected', [
    (lambda a, b: a, [2.0, 3.0]),
    (lambda a, b: {'x': b, 'y': [a]}, [2.0, 1.0]),
    (lambda a, b: (v for v in [b]), [4.0, 1.0])])
def test_var_list_is_a_nest_as_for_any_optimizer(behavior, choose, expected):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b = _variable(getter, 'a', 4.0), _variable(getter, 'b', 3.0)
    # A step of 4, of which the elastic difference takes half back.
    optimizer = _optimizer(getter, moving_rate=0.5)
    train = optimizer.minimize(4.0 * (a + b), var_list=choose(a, b))
    with _session(optimizer) as session:
      session.run(train)
      assert session.run([a, b]) == expected


@pytest.mark.parametrize('make, expected', [
    (lambda: tf1.train.AdamOptimizer(0.2), 0.5),
    (lambda: tf1.train.RMSPropOptimizer(0.4), 0.25),
    (lambda: tf1.train.AdamOptimizer(lambda: tf.constant(0.2)), 0.5),
    (lambda: tf1.train.MomentumOptimizer(tf.constant(0.05), 0.9), 2.0),
    # As at the end of a schedule.
    (lambda: tf1.train.GradientDescentOptimizer(tf.constant(0.0)), 0.0)])
def test_default_rho_is_moving_rate_by_learning_rate(behavior, make, expected):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    w = _variable(getter, value=1.0)
    optimizer = _optimizer(getter, make(), rho=None)
    (gradient, _), = optimizer.compute_gradients(0.0 * w)
    with _session(optimizer) as session:
      session.run(w.assign(2.0))
      np.testing.assert_allclose(session.run(gradient), expected, rtol=1e-6)


class _WithoutRate(tf1.train.GradientDescentOptimizer):

  def __init__(self):
    super().__init__(0.5)
    self._learning_rate = None


def test_default_rho_without_a_learning_rate_is_refused():
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='`rho` must be given'):
      _optimizer(Getter(''), _WithoutRate(), rho=None)
    with pytest.raises(ValueError, match='`rho` must be given'):
      _optimizer(Getter(''), _sgd(0.0), rho=None)


def test_no_penalty_keeps_two_copies_of_the_model(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    w = _variable(getter, value=[1.0] * 100)
    optimizer = _optimizer(getter)
    optimizer.minimize(tf.reduce_sum(w))
    optimizer.get_init_op(0)
    everything = tf1.global_variables() + tf1.local_variables()
    assert sum(v.shape.num_elements() for v in everything) == 201
    assert [v.op.name for v in everything] == [
        'global_center_variable/w', 'w', 'local_step']


@pytest.mark.parametrize('make, slots', [
    (lambda: tf1.train.AdamOptimizer(0.1),
     {'w/Adam', 'w/Adam_1', 'beta1_power', 'beta2_power'}),
    (lambda: tf1.train.RMSPropOptimizer(0.1), {'w/RMSProp', 'w/RMSProp_1'}),
    (lambda: tf1.train.MomentumOptimizer(0.1, .9, use_nesterov=True),
     {'w/Momentum'}),
    (lambda: tf1.train.AdagradOptimizer(0.1), {'w/Adagrad'}),
    (lambda: tf1.train.FtrlOptimizer(0.1), {'w/Ftrl', 'w/Ftrl_1'})])
def test_inner_state_is_local_on_the_worker(behavior, make, slots):
  del behavior
  with tf.Graph().as_default(), tf1.device('/job:ps/task:0'):
    getter = Getter('/job:worker/task:1')
    with getter.scope():  # Also where the optimizer applies inside the scope.
      w = tf1.get_variable('w', [2])
      optimizer = _optimizer(getter, make())
      optimizer.minimize(tf.reduce_sum(w))
    state = {v.op.name: v for v in tf1.local_variables()}
    assert set(state) == slots | {'w', 'local_step'}
    assert {tf.DeviceSpec.from_string(v.device).job
            for v in state.values()} == {'worker'}
    assert [v.op.name for v in tf1.global_variables()] == [
        'global_center_variable/w']
    assert _center(getter, w).device == '/job:ps/task:0'


def test_two_instances_in_one_graph(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b = _variable(getter, 'a', 2.0), _variable(getter, 'b', 2.0)
    optimizers = [_optimizer(getter), _optimizer(getter, moving_rate=0.5)]
    train = tf.group(*[o.minimize(v, var_list=[v])
                       for o, v in zip(optimizers, [a, b])])
    assert [o.local_step.op.name for o in optimizers] == [
        'local_step', 'local_step_1']
    with _session(optimizers[0]) as session:
      session.run(train)
      # From 2 by gradient 1 to 1; d = .1 * (1 - 2) and .5 * (1 - 2).
      np.testing.assert_allclose(session.run([a, b]), [1.1, 1.5], rtol=1e-6)


@pytest.mark.parametrize('dtype', [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize('rho', [0.0, 0.5, None])
def test_types(behavior, dtype, rho):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=tf.constant([8.0, 4.0], dtype))
    optimizer = _optimizer(getter, moving_rate=0.5, rho=rho)
    train = optimizer.minimize(tf.reduce_sum(w) * 2)
    with _session(optimizer) as session:
      session.run(train)
      np.testing.assert_array_equal(session.run(w), [7.0, 3.0])


def test_sparse_gradients_with_repeated_ids(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    table = _variable(getter, value=[[4.0], [4.0], [4.0]])
    optimizer = _optimizer(getter, moving_rate=0.5)
    rows = tf.gather(table, [1, 1, 2])
    pairs = optimizer.compute_gradients(tf.reduce_sum(rows))
    assert isinstance(pairs[0][0], tf.IndexedSlices)
    train = optimizer.apply_gradients(pairs)
    with _session(optimizer) as session:
      session.run(train)
      np.testing.assert_array_equal(session.run(table), [[4.0], [3.0], [3.5]])


@pytest.mark.parametrize('sparse', [False, True])
def test_partitioned_variables(behavior, sparse):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    with tf1.variable_scope(
        '', custom_getter=getter,
        partitioner=tf1.fixed_size_partitioner(2)):
      table = tf1.get_variable('t', [4, 1], initializer=tf1.ones_initializer())
    parts = list(table)
    assert [getter.pair_of(p).center.op.name for p in parts] == [
        'global_center_variable/t/part_0', 'global_center_variable/t/part_1']
    value = (tf.nn.embedding_lookup(table, [0, 3]) if sparse else
             tf.convert_to_tensor(table))
    optimizer = _optimizer(getter, tf1.train.AdagradOptimizer(
        1.0, initial_accumulator_value=3.0), moving_rate=0.5)
    train = optimizer.minimize(tf.reduce_sum(value), var_list=[table])
    with _session(optimizer) as session:
      session.run(train)
      # 1 - 1 / sqrt(3 + 1) = .5; with the centre 1 it meets at .75.
      other = 1.0 if sparse else 0.75
      np.testing.assert_allclose(
          np.ravel(session.run(parts)), [0.75, other, other, 0.75])


def test_identity_settings_equal_the_bare_optimizer_bit_for_bit(behavior):
  del behavior

  def train(elastic):
    with tf.Graph().as_default():
      getter = Getter('')
      w = (_variable(getter, value=[1.1, -0.7]) if elastic else
           tf1.get_variable('w', initializer=[1.1, -0.7]))
      optimizer = tf1.train.AdamOptimizer(0.03)
      if elastic:
        optimizer = _optimizer(getter, optimizer, moving_rate=0.0, rho=None)
      op = optimizer.minimize(tf.reduce_sum(tf.exp(w)))
      with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        for _ in range(5):
          session.run(op)
        return session.run(w)

  np.testing.assert_array_equal(train(True), train(False))


@pytest.mark.filterwarnings('ignore:.*tf.layers:UserWarning')
def test_batch_norm_statistics_are_averaged(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    x = tf.constant([[2.0], [6.0]])  # Mean 4.
    with getter.scope():
      y = tf1.layers.batch_normalization(x, training=True, momentum=0.5,
                                         name='bn')
    optimizer = _optimizer(getter, _sgd(0.0))
    with tf1.control_dependencies(
        tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
      train = optimizer.minimize(tf.reduce_sum(y))
    pair, = [p for p in getter.pairs if 'moving_mean' in p.local.op.name]
    assert not pair.trainable
    with _session(optimizer) as session:
      session.run(train)
      # 0 -> 2 by momentum; d = .1 * 2.
      np.testing.assert_allclose(
          session.run([pair.local, pair.center]), [[1.8], [0.2]], rtol=1e-6)


def test_variables_lists_inner_and_own_state():
  with tf.Graph().as_default():
    getter = Getter('')
    w = _variable(getter)
    optimizer = _optimizer(getter, tf1.train.MomentumOptimizer(0.1, 0.9),
                           rho=1.0)
    optimizer.minimize(w * w)
    assert [v.op.name for v in optimizer.variables()] == [
        'w/Momentum', 'local_step', 'local_center_variable/w']
    assert optimizer.get_slot_names() == ['momentum']
    assert optimizer.get_slot(w, 'momentum') is optimizer.variables()[0]


def test_defaults_are_those_of_contrib():
  found = inspect.signature(elastic_average.ElasticAverageOptimizer)
  assert [(name, each.default) for name, each in found.parameters.items()
          if each.kind is each.POSITIONAL_OR_KEYWORD][3:] == [
              ('communication_period', 10), ('moving_rate', None),
              ('rho', None), ('use_locking', True), ('synchronous', False),
              ('name', 'ElasticAverageOptimizer')]
