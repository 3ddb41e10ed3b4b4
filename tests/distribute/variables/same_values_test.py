# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which values of replicas are one value."""

import pytest
import tensorflow as tf

from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def _fed():
  return tf1.placeholder_with_default(1.0, [])


SAME = {
    'one object': lambda v: [v * 2.0] * 2,
    'numbers': lambda v: [2, 2],
    'constants': lambda v: [tf.constant([1.0]), tf.constant([1.0])],
    'a variable': lambda v: [v, v],
    'of a variable': lambda v: [tf.square(v + 1.0), tf.square(v + 1.0)],
    'copies': lambda v: [
        tf.raw_ops.DeepCopy(x=v.read_value()) for _ in range(2)],
    'gradients': lambda v: [tf1.gradients(v * v, v)[0] for _ in range(2)],
    'nests': lambda v: [{'a': [v + 1.0]}, {'a': [v + 1.0]}],
    'of rows': lambda v: [
        tf.IndexedSlices(tf.stack([v]), tf.constant([1])) for _ in range(2)],
    'of what is fed to both': lambda v: _both(_fed()),
}
OTHERS = {
    'numbers': lambda v: [2, 3],
    'constants': lambda v: [tf.constant(1.0), tf.constant(2.0)],
    'types': lambda v: [tf.constant(1), tf.constant(1, tf.int64)],
    'ops': lambda v: [v + 1.0, v - 1.0],
    'order': lambda v: [v - v * 2.0, v * 2.0 - v],
    'attributes': lambda v: [
        tf.reduce_sum([v, v], keepdims=keep) for keep in (False, True)],
    'outputs': lambda v: list(tf.unstack([v, v + 1.0])),
    'what is fed': lambda v: [_fed() + v, _fed() + v],
    'random numbers': lambda v: [tf.random.uniform([]) for _ in range(2)],
    'variables': lambda v: [v, tf1.get_variable('w', initializer=1.0)],
    'lengths': lambda v: [[v], [v, v]],
    'ops without value': lambda v: [tf.no_op(), tf.no_op()],
    'of rows': lambda v: [
        tf.IndexedSlices(tf.stack([v]), tf.constant([i])) for i in range(2)],
}


def _both(x):
  return [x + 1.0, x + 1.0]


def _are_same(make):
  with tf.Graph().as_default():
    return same_values.are_same(make(tf1.get_variable('v', initializer=1.0)))


def test_ops_are_the_same_if_declared():
  with tf.Graph().as_default():
    ops = [tf.no_op() for _ in range(3)]
    same_values.declare(ops[:2])
    assert same_values.are_same(ops[:2])
    assert not same_values.are_same(ops[1:])


@pytest.mark.parametrize('name', SAME)
def test_same(behavior, name):
  assert _are_same(SAME[name])


@pytest.mark.parametrize('name', OTHERS)
def test_not_same(behavior, name):
  assert not _are_same(OTHERS[name])


def test_it_is_the_same_through_branches(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    x = [_fed(), _fed()]
    inside = []

    def branch(make):
      tf.cond(v > 0, lambda: inside.append(make()) or v + 0.0, lambda: v + 0.0)

    for i in range(2):
      branch(lambda: v + 1.0)
      branch(lambda i=i: v + x[i])
    assert same_values.are_same([inside[0], inside[2]])
    assert not same_values.are_same([inside[1], inside[3]])


def _copies():
  handles = [tf1.get_variable(name, initializer=1.0, use_resource=True)
             for name in ('v', 'v_1')]
  return handles, same_values.Copies([v.handle for v in handles])


def test_copies_are_the_same_until_they_are_written(behavior):
  with tf.Graph().as_default():
    (v, w), copies = _copies()
    assert same_values.are_same([v + 1.0, w + 1.0])
    copies.note(0, v * 2.0)
    copies.note(1, w * 2.0)
    assert same_values.are_same([v + 1.0, w + 1.0])
    copies.note(0, v + _fed())
    copies.note(1, w + _fed())
    assert not same_values.are_same([v + 1.0, w + 1.0])
    assert same_values.are_same([v + 1.0, v + 1.0])


def test_a_copy_that_is_written_alone_differs(behavior):
  with tf.Graph().as_default():
    (v, w), copies = _copies()
    copies.note(1, tf.constant(2.0))
    assert not same_values.are_same([v + 1.0, w + 1.0])


def test_what_is_written_eagerly_is_not_known():
  v, w = tf.Variable(1.0), tf.Variable(1.0)
  copies = same_values.Copies([v.handle, w.handle])
  results = []

  @tf.function
  def compare():
    results.append(same_values.are_same([v + 1.0, w + 1.0]))

  compare()
  copies.note(0, 1.0)
  compare.get_concrete_function()
  tf.function(compare.python_function)()
  assert results == [True, False]


def test_declared_values_are_the_same(behavior):
  with tf.Graph().as_default():
    values = [_fed() for _ in range(2)]
    assert not same_values.are_same(values)
    same_values.declare(values)
    assert same_values.are_same([values[0] * 2.0, values[1] * 2.0])


def test_what_stands_for_a_common_tensor_is_the_same(behavior):
  with tf.Graph().as_default():
    total, values = _fed(), [_fed() for _ in range(2)]
    for value in values:
      same_values.stand_for(value, total)
    assert same_values.are_same([values[0] * 2.0, values[1] * 2.0])
