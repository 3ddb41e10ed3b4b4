# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of replicas where these cannot wait for each other.

Each replica is given two rows, and one device all four, by which the expected
values are: what all replicas have in common is written, what is not is refused.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards.writes import write_forms as forms
from tfplugin.distribute.shards import cross_shard_strategy

tf1 = tf.compat.v1
X = forms.FOUR
RUN = functools.partial(forms.FORMS['CrossShardStrategy'], static=False)
GROUPS = functools.partial(forms.FORMS['CrossShardStrategy'].func, (
    functools.partial(cross_shard_strategy.CrossShardStrategy,
                      group_assignment=[[0], [1]])), static=False)


def _in_graph(write, outside=False, run=RUN):
  """Returns the copies of a variable after two steps with `write(v, x)`."""
  def make():
    return tf1.get_variable('v', initializer=0.0, trainable=False,
                            use_resource=True)

  def replica(x, labels, mode):
    del labels, mode
    variables.append(variable if outside else make())
    return tf.group(write(variables[-1], x))

  with tf.Graph().as_default(), tf1.Session() as session:
    variables, variable = [], make() if outside else None
    rows = tf1.placeholder(tf.float32, [None])
    step = run(replica, rows)
    session.run(tf1.global_variables_initializer())
    for _ in range(2):
      session.run(step, {rows: X})
    return session.run([copy.read_value() for copy in getattr(
        variables[0], 'values', variables[:1])])


def _in_function(write):
  """Does the same in a `tf.function`."""
  strategy = cross_shard_strategy.CrossShardStrategy(forms.CPUS)
  with strategy.scope():
    variable = tf.Variable(0.0, trainable=False)

  @tf.function
  def step(x):
    def replica(x):
      write(variable, x)
    strategy.run(replica, args=(x,))

  halves = tf.constant(np.split(X, 2))
  rows = strategy.experimental_distribute_values_from_function(
      lambda context: halves[context.replica_id_in_sync_group])
  for _ in range(2):
    step(rows)
  return [float(copy) for copy in strategy.experimental_local_results(variable)]


def _after(op, value):
  with tf.control_dependencies([op]):
    return tf.identity(value)


def _loop(fn, last=3):
  return tf.while_loop(
      lambda i: i < last, lambda i: [_after(fn(), i + 1)], [0])[0]


def _add(v, value):
  return v.assign_add(value, read_value=False)


def _in_call(v, fn):
  @tf.function
  def call():
    v.assign_add(fn())
    return tf.constant(0)
  return call()


SAME = {
    'loop': (lambda v, x: _loop(lambda: _add(v, 1.0)), 6.0),
    'call': (lambda v, x: _in_call(v, lambda: 1.0), 2.0),
    'handle': (lambda v, x: tf.raw_ops.AssignAddVariableOp(
        resource=v.handle, value=1.0), 2.0),
    'branch': (lambda v, x: tf.cond(
        v.read_value() > -1.0, lambda: tf.group(v.assign(4.0)), tf.no_op), 4.0),
}
OWN = {
    'loop': lambda v, x: _loop(lambda: _add(v, tf.reduce_sum(x))),
    'iterations': lambda v, x: _loop(
        lambda: _add(v, 1.0), tf.cast(tf.reduce_max(x), tf.int32)),
    'rows': lambda v, x: tf.map_fn(lambda row: _after(_add(v, row), row), x),
    'call': lambda v, x: _in_call(v, lambda: tf.reduce_mean(x)),
    'handle': lambda v, x: tf.raw_ops.AssignVariableOp(
        resource=v.handle, value=tf.reduce_sum(x)),
}


@pytest.mark.parametrize('name', SAME)
def test_what_is_the_same_is_written(behavior, name):
  write, expected = SAME[name]
  if name != 'call' or behavior == 'v2':
    assert _in_graph(write) == [expected] * 2


@pytest.mark.parametrize('name', OWN)
def test_what_is_a_replicas_own_is_refused(behavior, name):
  with pytest.raises(ValueError, match='value that all shards have in co'
                     '.*writes `v:0`.*Use the methods'):
    _in_graph(OWN[name])


@pytest.mark.parametrize('write', [
    lambda v, x: tf.cond(v.read_value() > -1.0, lambda: tf.group(
        v.assign(tf.reduce_sum(x))), tf.no_op),
    lambda v, x: tf.cond(tf.reduce_sum(x) > 5.0, lambda: tf.group(
        v.assign(1.0)), tf.no_op)])
def test_what_is_a_replicas_own_in_a_branch_is_refused(behavior, write):
  with pytest.raises(RuntimeError, match='of `tf.cond` must be the same'):
    _in_graph(write)


@pytest.mark.parametrize('write, expected', [
    (lambda v, x: v.assign_add(1.0), 2.0),
    (lambda v, x: tf1.assign(v, tf.reduce_sum(x)), X.sum()),
    (lambda v, x: v.assign(v * 0.9 + tf.reduce_mean(x) * 0.1),
     0.19 * X.mean())])
def test_a_variable_from_outside_is_written_once(behavior, write, expected):
  assert _in_graph(write, outside=True) == pytest.approx([expected])


def test_groups_write_to_it_what_all_shards_have_in_common(behavior):
  assert _in_graph(lambda v, x: v.assign_add(1.0), True, GROUPS) == [2.0]
  with pytest.raises(ValueError, match='Sum:0, for `v:0`'):
    _in_graph(lambda v, x: v.assign(tf.reduce_sum(x)), True, GROUPS)


def test_a_variable_from_outside_is_not_written_in_a_loop(behavior):
  with pytest.raises(RuntimeError, match='once for all shards'):
    _in_graph(SAME['loop'][0], outside=True)


def _count(v, x):
  del x
  for i in tf.range(3):
    v.assign(v * 0.0 + tf.cast(i, tf.float32))


def _choose(v, x):
  del x
  if v > 1.0:
    v.assign_add(1.0)
  else:
    v.assign(3.0)


@pytest.mark.parametrize('write, expected', [
    (lambda v, x: v.assign_add(tf.reduce_sum(x)), 2 * X.sum()),
    (lambda v, x: v.assign(tf.reduce_sum(x)), X.sum()),
    (lambda v, x: v.assign(v * 0.9 + tf.reduce_mean(x) * 0.1), 0.19 * X.mean()),
    (_count, 2.0), (_choose, 4.0)])
def test_a_function_writes_what_one_device_writes(write, expected):
  assert _in_function(write) == pytest.approx([expected] * 2)


def _add_rows(v, x):
  for row in x:
    v.assign_add(row)


def _add_ones(v, x):
  i = 0.0
  while i < tf.reduce_max(x):
    v.assign_add(1.0)
    i += 1.0


def _carry(v, x):
  total = 0.0
  for _ in tf.range(3):
    total += tf.reduce_sum(x)
    v.assign(total)


@pytest.mark.parametrize('write, remedied, expected', [
    (_add_rows, lambda v, x: v.assign_add(tf.reduce_sum(x)), 2 * X.sum()),
    (_add_ones, lambda v, x: v.assign_add(tf.math.ceil(tf.reduce_max(x))),
     2 * np.ceil(X.max())),
    (_carry, lambda v, x: v.assign(3 * tf.reduce_sum(x)), 3 * X.sum())])
def test_a_loop_of_a_function_is_refused(write, remedied, expected):
  with pytest.raises(ValueError, match=(
      '(?s)rows of one shard.*Use the methods of the variable, outside of')):
    _in_function(write)
  assert _in_function(remedied) == pytest.approx([expected] * 2)


def test_a_maximum_in_a_function():
  assert _in_function(lambda v, x: v.assign(tf.reduce_max(x))) == [X.max()] * 2
