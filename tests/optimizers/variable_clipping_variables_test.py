# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clipping: variables given twice or cast, dims, idle rules."""

import logging as std_logging

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

Optimizer = variable_clipping.VariableClippingOptimizer


def _sgd():
  return tf1.train.GradientDescentOptimizer(1.0)


def _run(train_op, fetches):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    return session.run(fetches)


@pytest.mark.parametrize('in_grads_and_vars', [False, True])
def test_a_variable_that_is_given_twice_is_clipped_once(
    behavior, in_grads_and_vars):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[3.0, 4.0], [0.3, 0.4]])
    optimizer = Optimizer(_sgd(), {'w': [0, 1]}, 1.0)
    if in_grads_and_vars:
      train_op = optimizer.apply_gradients([(tf.zeros([2, 2]), w)] * 2)
    else:
      train_op = optimizer.minimize(0.0 * tf.reduce_sum(w), var_list=[w, w])
    got = _run(train_op, w)
  # Both copies of one tensor as one slice: .707.
  np.testing.assert_allclose(np.linalg.norm(got), 1.0, rtol=1e-6)


@pytest.mark.parametrize('second, clipped', [
    (2, [1.0, 9.0, 1.0]), (None, [1.0, 1.0, 1.0])])
def test_the_rows_of_all_gradients_of_a_variable_are_clipped(second, clipped):
  table = tf.Variable([[9.0], [9.0], [9.0]])
  first, second = (tf.zeros([3, 1]) if row is None else tf.IndexedSlices(
      tf.zeros([1, 1]), tf.constant([row])) for row in (0, second))
  Optimizer(_sgd(), [(table, 1)], 1.0).apply_gradients(
      [(first, table), (second, table)])
  np.testing.assert_allclose(table[:, 0], clipped, rtol=1e-6)


@pytest.mark.parametrize('sparse', [False, True])
def test_no_dims_clip_each_value_by_itself(behavior, sparse):
  # As tf.contrib did: a GAN's weights between -.5 and .5, scalars included.
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[3.0, -0.2], [-4.0, 0.5]])
    scalar = tf1.get_variable('scalar', initializer=-7.0)
    gradient = (tf.IndexedSlices(tf.zeros([1, 2]), [1]) if sparse
                else tf.zeros([2, 2]))
    optimizer = Optimizer(_sgd(), [(w, []), (scalar, ())], 0.5)
    got = _run(optimizer.apply_gradients([(gradient, w), (0.0, scalar)]),
               [w, scalar])
  np.testing.assert_allclose(
      got[0], [[3.0 if sparse else 0.5, -0.2], [-0.5, 0.5]], rtol=1e-6)
  np.testing.assert_allclose(got[1], -0.5, rtol=1e-6)


@pytest.mark.parametrize('key', ['kernel', None])
def test_a_variable_that_keras_casts_is_clipped(behavior, key):
  with tf.Graph().as_default():
    layer = tf.keras.layers.Dense(1, dtype='mixed_bfloat16', use_bias=False,
                                  kernel_initializer='ones')
    loss = 0.0 * tf.reduce_sum(layer(tf.ones([2, 4])))
    kernel = layer.kernel
    rules = [(kernel if key is None else key, [0])]
    train_op = Optimizer(_sgd(), rules, 0.25).minimize(
        loss, var_list=[kernel])
    got = _run(train_op, tf1.trainable_variables()[0].read_value())
  assert got.dtype == np.float32
  np.testing.assert_allclose(np.linalg.norm(got), 0.25, rtol=1e-6)


@pytest.mark.parametrize('in_parts', [False, True])
def test_rows_of_an_accumulator_are_clipped(behavior, in_parts):
  # The ids of an accumulator have no known rank; SyncReplicasOptimizer has one.
  parts = tf1.fixed_size_partitioner(2) if in_parts else None
  with tf.Graph().as_default():
    table = tf1.get_variable(
        'table', [4, 2], partitioner=parts, initializer=lambda *args, **kwargs:
        tf.constant([[3.0, 4.0]] * (2 if in_parts else 4)))
    first = list(table)[0] if in_parts else table
    accumulator = tf1.SparseConditionalAccumulator(tf.float32, shape=[None, 2])
    with tf.control_dependencies([accumulator.apply_indexed_slices_grad(
        tf.IndexedSlices(tf.zeros([2, 2]), tf.constant([1, 1], tf.int64)))]):
      gradient = accumulator.take_indexed_slices_grad(1)
    optimizer = Optimizer(_sgd(), [(table, 1)], 1.0)
    got = _run(optimizer.apply_gradients([(gradient, first)]), first)
  np.testing.assert_allclose(
      np.linalg.norm(got, axis=1), [5.0, 1.0] + [5.0] * (len(got) - 2),
      rtol=1e-6)


@pytest.mark.parametrize('wrap', [
    lambda opt: Optimizer(opt, {'w': 1}, 1.0, use_locking=True),
    lambda opt: Optimizer(Optimizer(opt, {'w': 1}, 1.0), {'w': 1}, 1.0, True)])
def test_a_lock_around_a_synchronous_optimizer_is_refused(wrap):
  with pytest.raises(RuntimeError, match=(
      'SyncReplicasOptimizer` must not be used inside of a clip with '
      '`use_locking=True`.*Pass use_locking=False')):
    wrap(tf1.train.SyncReplicasOptimizer(_sgd(), 1, 1))


def test_a_synchronous_optimizer_may_be_clipped():
  inside = Optimizer(_sgd(), {'w': 1}, 1.0, use_locking=True)
  for make in (
      lambda: Optimizer(tf1.train.SyncReplicasOptimizer(_sgd(), 1, 1),
                        {'w': 1}, 1.0),
      lambda: tf1.train.SyncReplicasOptimizer(inside, 1, 1)):
    with tf.Graph().as_default():
      w = tf1.get_variable('w', initializer=[[3.0, 4.0]])
      assert make().minimize(
          tf.reduce_sum(w), tf1.train.create_global_step()) is not None


def _warnings(caplog):
  return [record.getMessage() for record in caplog.records
          if 'clips nothing' in record.getMessage()]


@pytest.fixture(name='warned')
def _warned(caplog):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  return lambda: _warnings(caplog)


@pytest.mark.parametrize('has_none', [False, True])
@pytest.mark.parametrize('by_key', [False, True])
def test_a_rule_for_a_variable_of_another_optimizer_is_named(
    behavior, warned, by_key, has_none):
  with tf.Graph().as_default():
    table = tf1.get_variable('table', initializer=[[3.0, 4.0]])
    kernel = tf1.get_variable('kernel', initializer=[[6.0, 8.0]])
    optimizer = Optimizer(
        _sgd(), [(table if by_key else 'table', 1), ('kernel', 1)], 1.0)
    without = [(None, table)] if has_none else []
    train_op = optimizer.apply_gradients(
        [(tf.zeros([1, 2]), kernel), *without])
    got = _run(train_op, [table, kernel])
  np.testing.assert_allclose(got, [[[3.0, 4.0]], [[0.6, 0.8]]], rtol=1e-6)
  [message] = warned()
  assert "`vars_to_clip_dims`" in message
  assert "'table', which selects ['table'], without a gradient" in message
  assert 'Wrap the optimizer that updates them' in message


@pytest.mark.parametrize('first', ['a', 'b'])
def test_rules_of_two_calls_are_each_used_in_one(behavior, warned, first):
  with tf.Graph().as_default():
    a = tf1.get_variable('a', initializer=[[3.0, 4.0]])
    b = tf1.get_variable('b', initializer=[[6.0, 8.0]])
    optimizer = Optimizer(_sgd(), {'a': 1}, 1.0)
    ops = [optimizer.minimize(0.0 * tf.reduce_sum(v), var_list=[v])
           for v in ([a, b] if first == 'a' else [b, a])]
    got = _run(ops, [a, b])
  np.testing.assert_allclose(got, [[[0.6, 0.8]], [[6.0, 8.0]]], rtol=1e-6)
  # The rule may be used by a later call.
  assert len(warned()) == (first == 'b')
  assert all('Ignore this if a later call' in each for each in warned())


def test_one_rule_for_all_variables_is_used(behavior, warned):
  with tf.Graph().as_default():
    a, b = (tf1.get_variable(name, initializer=[[3.0, 4.0]])
            for name in 'ab')
    optimizer = Optimizer(_sgd(), {'': 1}, 1.0)
    got = _run(optimizer.minimize(0.0 * tf.reduce_sum(a)), [a, b])
  np.testing.assert_allclose(got, [[[0.6, 0.8]], [[3.0, 4.0]]], rtol=1e-6)
  assert not warned()


def test_eager_steps_name_a_rule_once(warned):
  a, b = (tf.Variable([[3.0, 4.0]], name=name) for name in 'ab')
  optimizer = Optimizer(_sgd(), {'a': 1, 'b': 1}, 1.0)
  for _ in range(3):
    optimizer.apply_gradients([(tf.zeros([1, 2]), a), (None, b)])
  [message] = warned()
  assert "'b', which selects ['b']" in message
  np.testing.assert_allclose(a, [[0.6, 0.8]], rtol=1e-6)
