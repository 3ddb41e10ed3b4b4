# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of replicas to their copies of a variable, under CrossShardStrategy.

Gradient accumulation as a whole is in gradient_accumulation_test.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import cross_shard_strategy

tf1 = tf.compat.v1
NONE = tf.VariableAggregation.NONE
CPUS = ['CPU:0', 'CPU:1']


def _write(write, dtype=tf.float32, aggregation=NONE, **kwargs):
  """Returns the copies of a variable after `write(variable, x)` in each.

  x is 1 in the first replica and 3 in the second one.
  """
  strategy = cross_shard_strategy.CrossShardStrategy(CPUS, **kwargs)
  with tf.Graph().as_default(), strategy.scope():

    def replica():
      variable = tf1.get_variable(
          'v', [2], dtype, tf1.initializers.zeros(), trainable=False,
          use_resource=True, aggregation=aggregation)
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      done = tf.group(write(variable, tf.gather(
          tf.constant([1, 3], dtype), index)))
      return variable, done

    variable, done = strategy.run(replica)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(strategy.experimental_local_results(done))
      return np.stack(session.run(
          strategy.experimental_local_results(variable))).tolist()


def _rows(x):
  return tf.IndexedSlices(tf.stack([x]), tf.constant([1]))


def test_an_addition_is_the_mean(behavior):
  assert _write(lambda v, x: v.assign_add([x, 0.0])) == [[2, 0]] * 2
  assert _write(lambda v, x: tf1.assign_sub(v, [x, 1.0])) == [[-2, -1]] * 2
  assert _write(lambda v, x: v.scatter_add(_rows(x))) == [[0, 2]] * 2
  assert _write(lambda v, x: v.scatter_sub(_rows(x))) == [[0, -2]] * 2


def test_it_is_the_mean_of_a_group(behavior):
  assert _write(lambda v, x: v.assign_add([x, x]),
                group_assignment=[[0], [1]]) == [[1, 1], [3, 3]]


def test_an_aggregation_decides(behavior):
  def add(v, x):
    return v.assign_add(tf.stack([x, x]))

  assert _write(add, aggregation=tf.VariableAggregation.SUM) == [[4, 4]] * 2
  assert _write(add, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
                ) == [[1, 1]] * 2


def test_other_values_are_the_copys_own_as_in_tensorflow(behavior):
  assert _write(lambda v, x: v.assign([x, x])) == [[1, 1], [3, 3]]
  assert _write(lambda v, x: v.assign_add([x, x]), tf.int32) == [[1, 1], [3, 3]]


def test_an_addition_in_a_loop_is_the_copys_own(behavior):
  def write(v, x):
    return tf.while_loop(
        lambda i: i < 2,
        lambda i: _after(v.assign_add([x, x], read_value=False), i + 1), [0])
  assert _write(write) == [[2, 2], [6, 6]]


def _after(op, value):
  with tf.control_dependencies([op]):
    return [tf.identity(value)]


def _in_branch(fn, should=True):
  return tf.cond(
      tf1.placeholder_with_default(should, []) if should is True else should,
      lambda: tf.group(fn()), tf.no_op)


def _apply(gradient, v):
  return tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
      [(gradient, v)])


GO = lambda v: v.read_value()[0] < 1.0  # noqa: E731 (the same in all)


def test_an_update_in_a_branch_sums_what_is_the_same(behavior):
  def write(v, x):
    del x
    return _in_branch(lambda: _apply(v.read_value() - 1.0, v), GO(v))
  assert _write(write) == [[2, 2]] * 2


def test_an_addition_in_a_branch_is_the_same(behavior):
  assert _write(lambda v, x: _in_branch(
      lambda: v.assign_add([1.0, 2.0]), GO(v))) == [[1, 2]] * 2


@pytest.mark.parametrize('write', [
    lambda v, x: _in_branch(lambda: _apply(tf.stack([x, x]), v), GO(v)),
    lambda v, x: _in_branch(lambda: v.assign_add([x, x]), GO(v)),
    lambda v, x: _in_branch(lambda: _apply(v.read_value(), v), x > 1.0),
])
def test_what_is_not_the_same_in_a_branch_is_refused(behavior, write):
  with pytest.raises(RuntimeError, match=(
      'inside of `tf.cond` must be the same.*may differ.*`assign_add`')):
    _write(write)


def test_an_update_of_copies_that_differ_is_refused(behavior):
  def write(v, x):
    with tf.control_dependencies([v.assign([x, x])]):
      return _in_branch(lambda: _apply(v.read_value(), v), tf.constant(True))

  with pytest.raises(RuntimeError, match='with values that may differ'):
    _write(write)


def test_accumulation_in_a_function():
  """Gradients 1 and 3: the mean of three steps is 2 * 3, applied once."""
  strategy = cross_shard_strategy.CrossShardStrategy(CPUS)
  with strategy.scope():
    weight, sums = tf.Variable(10.0), tf.Variable(0.0, trainable=False)
  optimizer = tf1.train.GradientDescentOptimizer(1.0)

  @tf.function
  def step(last):

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      (gradient, _), = optimizer.compute_gradients(
          lambda: weight * (1.0 + 2.0 * tf.cast(index, tf.float32)), [weight])
      sums.assign_add(gradient)

      def apply():
        optimizer.apply_gradients([(sums.read_value(), weight)])
        sums.assign(0.0)

      tf.cond(last, apply, lambda: None)

    strategy.run(replica)

  for last in (False, False, True, False):
    step(tf.constant(last))
  for copy in strategy.experimental_local_results(weight):
    assert float(copy) == 10.0 - 3 * 2.0
  for copy in strategy.experimental_local_results(sums):
    assert float(copy) == 1.0


def test_one_group_updates_in_a_branch_and_several_do_not(behavior):
  def write(v, x):
    del x
    return _in_branch(lambda: _apply(v.read_value() - 1.0, v), GO(v))

  # 0 - (2 * -1): the gradients of both shards.
  assert _write(write, group_assignment=[[0, 1]]) == [[2, 2]] * 2
  with pytest.raises(NotImplementedError, match='Use one group'):
    _write(write, group_assignment=[[0], [1]])


def _write_rows(write):
  """Returns the copies after `write(variable, x)`; the rows are 1, 2 and 5."""
  strategy = cross_shard_strategy.CrossShardStrategy(CPUS)
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    rows = [tf1.placeholder(tf.float32, [None]) for _ in CPUS]

    def replica(x):
      variable = tf1.get_variable('v', initializer=0.0, trainable=False)
      return variable, tf.group(write(variable, x))

    variable, done = strategy.extended.call_for_each_replica(
        replica, args=(_tf_internals.per_replica(rows),))
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(done),
                {rows[0]: [1, 2], rows[1]: [5]})
    return session.run(list(strategy.experimental_local_results(variable)))


def test_a_statistic_of_keras_3_is_the_mean_of_the_shards(
    behavior, monkeypatch):
  def largest(v, x):
    return v.assign(tf.reduce_max(x))

  assert _write_rows(largest) == [5, 5]
  monkeypatch.setattr(_tf_internals, 'is_asked_by_keras_3', lambda: True)
  assert _write_rows(largest) == [(2 + 5) / 2] * 2
