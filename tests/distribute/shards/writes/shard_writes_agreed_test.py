# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of two or three shards to the variable that they have in common."""

import functools
import threading

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1
NONE = tf.VariableAggregation.NONE
MEAN = tf.VariableAggregation.MEAN
SUM = tf.VariableAggregation.SUM
FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA


def _write(write, aggregation=NONE, dtype=tf.float32, num_shards=2,
           groups=None, value=(0.0, 0.0)):
  """Returns a variable after the first shard's op of `write(variable, x)`.

  In shard i x is the i-th of 1, 3, 8, 5, as a tensor that is fed.
  """
  with tf.Graph().as_default(), tf1.Session() as session:
    numbers = [tf1.placeholder_with_default(tf.constant(x, dtype), [])
               for x in (1, 3, 8, 5)]

    def shard(x):
      variable = tf.Variable(
          np.array(value, dtype.as_numpy_dtype), trainable=False,
          aggregation=aggregation, name='v')
      return variable, write(variable, x)

    results = shared_shards.SharedShards(
        ['/cpu:0'] * num_shards, group_assignment=groups).build(
            [functools.partial(shard, x)
             for x in numbers[:num_shards]]).results
    session.run(tf1.global_variables_initializer())
    session.run(tf.group(results[0][1]))
    return session.run(results[0][0].read_value()).tolist()


def _rows(x):
  return tf.IndexedSlices(tf.stack([x]), tf.constant([1]))


def test_an_addition_is_the_mean_of_the_shards(behavior):
  assert _write(lambda v, x: v.assign_add([x, 0.0])) == [2.0, 0.0]
  assert _write(lambda v, x: v.assign_sub([x, 1.0])) == [-2.0, -1.0]
  assert _write(lambda v, x: tf1.assign_add(v, [x, x]), num_shards=3) == [4, 4]
  assert _write(lambda v, x: v.scatter_add(_rows(x))) == [0.0, 2.0]
  assert _write(lambda v, x: v.scatter_sub(_rows(x))) == [0.0, -2.0]


def test_it_is_the_mean_of_the_first_shards_group(behavior):
  assert _write(lambda v, x: v.assign_add([x, x]), num_shards=4,
                groups=[[2, 0], [1, 3]]) == [4.5, 4.5]


def test_the_aggregation_of_the_variable_decides(behavior):
  def add(v, x):
    return v.assign_add(tf.stack([x, x]))

  def scatter(v, x):
    return v.scatter_add(_rows(x))

  assert _write(add, MEAN) == [2.0, 2.0]
  assert _write(add, SUM) == [4.0, 4.0]
  assert _write(add, FIRST) == [1.0, 1.0]
  assert _write(scatter, MEAN) == [0.0, 2.0]
  assert _write(scatter, SUM) == [0.0, 4.0]
  assert _write(scatter, FIRST) == [0.0, 1.0]


def test_the_same_value_is_written(behavior):
  def write(v, x):
    return v.assign_add(tf.cast(v.read_value() + 2, v.dtype))

  assert _write(write, dtype=tf.int64, value=(1, 2)) == [4, 6]
  assert _write(lambda v, x: v.assign(v * 2.0), value=(1, 2)) == [2.0, 4.0]
  def update(v, x):
    return v.scatter_update(_rows(tf.constant(5.0)))

  assert _write(update) == [0.0, 5.0]


@pytest.mark.parametrize('method, write, dtype', [
    ('assign', lambda v, x: v.assign([x, x]), tf.float32),
    ('assign', lambda v, x: tf1.assign(v, v + x), tf.float32),
    ('assign_add', lambda v, x: v.assign_add([x, x]), tf.int32),
    ('scatter_update', lambda v, x: v.scatter_update(_rows(x)), tf.float32),
    ('scatter_max', lambda v, x: v.scatter_max(_rows(x)), tf.float32),
])
def test_another_value_of_each_shard_is_refused(behavior, method, write, dtype):
  with pytest.raises(ValueError, match=(
      f'`{method}` in several shards.*Received: values of {dtype.name} .*for '
      '`v:0`, made without.*`tfplugin.cross_replica_sum')):
    _write(write, dtype=dtype)


def test_rows_of_several_indices_are_the_same(behavior):
  def write(v, x):
    return v.scatter_nd_add(tf.constant([[0]]), tf.stack([x]))

  assert _write(lambda v, x: write(v, 5.0)) == [5.0, 0.0]
  with pytest.raises(ValueError, match='`scatter_nd_add` in several shards'):
    _write(write)


def test_an_assignment_in_a_branch_has_the_assigned_value(behavior):
  """As an optimizer needs it that assigns its state, and uses the result."""
  def write(v, x):
    del x
    state = tf.Variable([1.0, 4.0], trainable=False, name='state')

    def apply():
      return tf.group(v.assign(1.0 + tf.sqrt(state.assign(state * 4.0))))

    return tf.cond(tf.constant(True), apply, tf.no_op)

  assert _write(write) == [3.0, 5.0]


def test_a_write_waits_until_all_shards_have_read(behavior):
  """The second shard would wait for the write, but not for long."""
  written = threading.Event()

  def shard(index):
    variable = tf.Variable([1.0, 2.0], trainable=False, name='v')
    late = tf1.py_func(
        lambda: np.float32(written.wait(0.5 * index)), [], tf.float32)
    with tf1.control_dependencies([late]):
      read = variable.read_value()
    with tf1.control_dependencies([variable.assign(2.0 * read)]):
      return read, tf1.py_func(
          lambda: np.float32(written.set() is None), [], tf.float32)

  with tf.Graph().as_default(), tf1.Session() as session:
    results = shared_shards.SharedShards(['/cpu:0'] * 2).build(
        [functools.partial(shard, index) for index in range(2)]).results
    session.run(tf1.global_variables_initializer())
    reads, _ = session.run([[read for read, _ in results], results[0][1]])
  assert np.stack(reads).tolist() == [[1.0, 2.0]] * 2
