# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that write a variable are found, and the origins of their values."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import writes

tf1 = tf.compat.v1


def _after(operation):
  with tf.control_dependencies([operation]):
    return tf.constant(1)


def _sgd(v):
  return tf1.train.GradientDescentOptimizer(0.1).minimize(
      tf.reduce_sum(v * v), var_list=[v])


def _sparse_adam(v):
  return tf1.train.AdamOptimizer(0.1).minimize(
      tf.reduce_sum(tf.gather(v, [0])), var_list=[v])


def _nested(v):
  return tf.cond(tf.constant(True), lambda: tf.cond(
      tf.constant(True), lambda: _after(_sgd(v)), lambda: tf.constant(0)),
                 lambda: tf.constant(0))


def _loop(v):
  return tf.while_loop(
      lambda i: i < 3, lambda i: i + _after(v.assign(2.0 * v)), [0])


WRITES = {
    'assign': lambda v: v.assign([3.0, 4.0]),
    'assign_sub': lambda v: v.assign_sub([3.0, 4.0]),
    'scatter': lambda v: tf1.scatter_add(v, [0], [1.0]),
    'optimizer': _sgd,
    'sparse': _sparse_adam,
    'nested': _nested,
    'loop': _loop,
}
READS = {
    'value': lambda v: tf.reduce_sum(v),
    'gather': lambda v: tf.gather(v, [0]),
    'gather_nd': lambda v: tf.gather_nd(v, [[0]]),
    'slice': lambda v: v[:1],
    'identity': lambda v: tf.identity(v),
    'branch': lambda v: tf.cond(
        tf.constant(True), lambda: v + 1.0, lambda: 2.0 * v),
    'loop': lambda v: tf.while_loop(
        lambda i: tf.reduce_sum(v) < i, lambda i: i + v[0], [0.0]),
    'is_initialized': lambda v: tf1.is_variable_initialized(v),
}


def _upstream(values):
  pending = [getattr(value, 'op', value) for value in tf.nest.flatten(values)]
  seen = set()
  while pending:
    op = pending.pop()
    if op not in seen:
      seen.add(op)
      pending += [i.op for i in op.inputs] + list(op.control_inputs)
  return seen


@pytest.mark.parametrize('kind', WRITES)
def test_a_write_is_found_at_its_place(behavior, kind):
  with tf.Graph().as_default() as graph:
    variable = tf1.get_variable('v', initializer=[1.0, 2.0])
    result = WRITES[kind](variable)
    roots = {write.root for write in writes.writes_of(variable, graph)}
    assert variable.initializer in roots
    # Whoever runs the result runs the root.
    made = roots - {variable.initializer}
    assert made
    assert made <= _upstream(result)


@pytest.mark.parametrize('kind', READS)
def test_a_read_is_none(behavior, kind):
  with tf.Graph().as_default() as graph:
    variable = tf1.get_variable('v', initializer=[1.0, 2.0])
    READS[kind](variable)
    ops = {write.op for write in writes.writes_of(variable, graph)}
    assert ops == {variable.initializer}


def test_a_function_and_the_graph_of_a_branch():
  with tf.Graph().as_default() as graph:
    variable = tf1.get_variable('v', initializer=[1.0, 2.0], use_resource=True)
    made = []

    @tf.function
    def function():
      made.append(variable.assign([3.0, 4.0]).op)
      here = writes.writes_of(variable, tf1.get_default_graph())
      assert [write.op.type for write in here] == ['AssignVariableOp']
      made.append(here[0].op)
      return tf.constant(0)

    result = function()
    write, = [write for write in writes.writes_of(variable, graph)
              if write.root is not write.op]
    assert write.op is made[1]
    assert write.root in _upstream(result)


def test_nothing_in_a_graph_without_the_variable():
  variable = tf.Variable(1.0)
  with tf.Graph().as_default() as graph:
    assert not writes.writes_of(variable, graph)


def test_what_initializes_is_told_from_what_writes(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    source = tf1.get_variable('v', initializer=[1.0, 2.0])
    session.run(source.initializer)
    path = tf1.train.Saver([source]).save(session, str(tmp_path / 'model'))
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=[0.0, 0.0])
    tf1.train.init_from_checkpoint(path, {'v': 'v'})
    handle = getattr(variable, 'handle', variable.op.outputs[0])
    assert all(writes.initializes(write.op, handle)
               for write in writes.writes_through(handle))
    tf1.assign_add(variable, [1.0, 1.0])
    later = [write.op for write in writes.writes_through(handle)
             if not writes.initializes(write.op, handle)]
    assert [writes.method_of_write(op) for op in later] == ['assign_add']


@pytest.mark.parametrize('name, method', [
    ('assign', 'assign'), ('assign_sub', 'assign_sub'),
    ('scatter_update', 'scatter_update'), ('scatter_mul', None)])
def test_the_method_of_an_op(behavior, name, method):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=[1.0, 2.0])
    arguments = ([0],) if name.startswith('scatter') else ()
    value = [3.0] if arguments else [3.0, 3.0]
    getattr(tf1, name)(variable, *arguments, value)
    handle = getattr(variable, 'handle', variable.op.outputs[0])
    write, = [write for write in writes.writes_through(handle)
              if not writes.initializes(write.op, handle)]
    assert writes.method_of_write(write.op) == method


def _if(condition, write):
  def written():
    with tf.control_dependencies([write()]):
      return tf.constant(1)
  return tf.cond(condition, written, lambda: tf.constant(0))


# Writes to a variable, given the variable, an input and another variable.
FROM_OUTSIDE = {
    'input': lambda v, x, _: v.assign_add(2.0 * x),
    'random': lambda v, x, _: v.assign(tf1.random_normal([])),
    'stateless': lambda v, x, _: v.assign(
        tf.random.stateless_uniform([], [1, 2])),
    'python': lambda v, x, _: v.assign(
        tf1.py_func(lambda y: y, [tf.constant(1.0)], tf.float32)),
    'branch': lambda v, x, _: _if(x > 0.0, lambda: v.assign(x + v)),
    'selected': lambda v, x, _: v.assign(
        tf.cond(x > 0.0, lambda: tf.constant(1.0), lambda: tf.constant(2.0))),
    'default': lambda v, x, _: v.assign(tf1.placeholder_with_default(1.0, [])),
    'loop': lambda v, x, _: v.assign(tf.while_loop(
        lambda i: i < 3.0, lambda i: i + x, [0.0])[0]),
}
FROM_NOTHING = {
    'constant': lambda v, x, _: v.assign_add(1.0),
    'itself': lambda v, x, _: v.assign(0.5 * v),
    'variable': lambda v, x, other: v.assign(tf.maximum(other, 1.0)),
    # The input decides whether, not what.
    'branch': lambda v, x, _: _if(x > 0.0, lambda: v.assign_add(1.0)),
    'after input': lambda v, x, _: _later(x, lambda: v.assign_add(1.0)),
}


def _later(x, write):
  with tf.control_dependencies([2.0 * x]):
    return write()


def _brings(kind):
  with tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, [], 'x')
    v, other = (tf1.get_variable(name, initializer=0.0) for name in 'vw')
    kind(v, x, other)
    found = set()
    for write in writes.writes_of(v, graph):
      if write.op is not v.initializer:
        found |= writes.ops_of_value(write)
    return any(writes.brings_value(op) for op in found)


@pytest.mark.parametrize('kind', FROM_OUTSIDE)
def test_a_value_from_outside_is_found(kind, behavior):
  del behavior
  assert _brings(FROM_OUTSIDE[kind])


@pytest.mark.parametrize('kind', FROM_NOTHING)
def test_a_value_that_the_graph_determines_brings_nothing(kind, behavior):
  del behavior
  assert not _brings(FROM_NOTHING[kind])


def test_an_iterator_brings_values():
  with tf.Graph().as_default() as graph:
    x = tf1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensors(1.0)).get_next()
    v = tf1.get_variable('v', initializer=0.0, use_resource=True)
    v.assign(x)
    write, = (write for write in writes.writes_of(v, graph)
              if write.op is not v.initializer)
    assert any(map(writes.brings_value,
                   writes.ops_of_value(write)))
