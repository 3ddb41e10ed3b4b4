# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs are changed, and tell about themselves, as the functions say."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import graphs

tf1 = tf.compat.v1
_KEYS = tf1.GraphKeys


def test_an_input_is_redirected():
  with tf.Graph().as_default(), tf1.Session() as session:
    total = tf.add(1.0, 2.0)
    graphs.redirect_input(total.op, 1, tf.constant(5.0))
    assert session.run(total) == 6.0


def test_an_op_waits_for_what_is_added():
  with tf.Graph().as_default():
    first, second = tf.no_op(), tf.no_op()
    graphs.add_control_inputs(second, [first])
    assert second.control_inputs == [first]


def test_reads_of_variables_wait_for_an_operation():
  with tf.Graph().as_default():
    variable, step = (tf1.get_variable(name, [], use_resource=True)
                      for name in ('v', 'step'))
    read, own = variable.read_value(), step.read_value()
    operation = tf.no_op()
    graphs.order_before_variable_reads(
        operation, [read + own], exclude=[step.op])
    sources = [tensor.op.inputs[0].op for tensor in (read, own)]
    assert [operation in op.control_inputs for op in sources] == [True, False]


def test_reads_of_a_captured_variable_wait_for_an_operation():
  variable = tf.Variable(1.0)

  @tf.function
  def function():
    read = variable.read_value()
    operation = tf.no_op()
    graphs.order_before_variable_reads(operation, [read])
    return operation in read.op.inputs[0].op.control_inputs

  assert function()


def test_a_branch_and_a_loop_of_control_flow_v1_are_seen(behavior):
  seen = []

  def look(value):
    seen.append(graphs.branch_or_loop())
    return value + 1.0

  with tf.Graph().as_default():
    assert graphs.branch_or_loop() is None
    condition = tf1.placeholder_with_default(True, [])
    tf.cond(condition, lambda: look(tf.constant(1.0)), lambda: 0.0)
    tf.while_loop(lambda x: x < 3.0, look, [0.0])
  assert len(seen) == 2
  assert all((context is not None) == (behavior == 'v1') for context in seen)


def test_a_branch_keeps_its_train_ops(behavior):
  del behavior

  def branch():
    with graphs.private_train_ops():
      tf1.add_to_collection(_KEYS.TRAIN_OP, tf.no_op('inside'))
    return 1.0

  with tf.Graph().as_default() as graph:
    tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: 0.0)
    # What a session of this graph could run, and no more.
    assert all(op.graph is graph for op in graph.get_collection(_KEYS.TRAIN_OP))


def test_variables_stay_out_of_collections():
  with tf.Graph().as_default() as graph:
    before = tf1.get_variable('before', [])
    with graphs.private_variables():
      tf.Variable(1.0, name='inside')
    after = tf1.get_variable('after', [])
    for key in (_KEYS.GLOBAL_VARIABLES, _KEYS.TRAINABLE_VARIABLES):
      assert graph.get_collection(key) == [before, after]


def test_ops_sit_next_to_a_variable(behavior):
  del behavior
  with tf.Graph().as_default():
    with tf1.device('/device:CPU:1'):
      variable = tf1.get_variable('v', [])
    with graphs.colocate_with(variable):
      assert tf.constant(1.0).op.colocation_groups() == (
          variable.op.colocation_groups())


def test_devices_are_listed_from_the_outermost_in():
  with tf.Graph().as_default():
    assert not graphs.device_functions()
    with tf1.device('/job:worker'), tf1.device(lambda op: '/device:CPU:1'):
      assert len(graphs.device_functions()) == 2
      assert callable(graphs.device_functions()[1])


@pytest.mark.parametrize('jit_compile', [True, False])
def test_compilation_is_known(jit_compile):
  seen = []

  @tf.function(jit_compile=jit_compile)
  def function():
    seen.append(graphs.is_compiled())
    return tf.cond(tf.constant(True), inner, lambda: 0.0)

  def inner():
    seen.append(graphs.is_compiled())
    return 1.0

  function.get_concrete_function()
  assert seen == [jit_compile] * 2


def test_graphs_between_and_branches(behavior):
  found, ops = [], []

  def branch():
    found.extend(graphs.graphs_between(tf1.get_default_graph(), graph))
    ops.append(tf.constant(1.0).op)
    return 1.0

  with tf.Graph().as_default() as graph:
    predicate = tf1.placeholder(tf.bool, [])
    tf.cond(predicate, branch, lambda: 0.0)
    assert not graphs.graphs_between(graph, graph)
    assert not graphs.is_in_branch_or_loop(predicate.op)
  # A branch of control flow v2 has a graph, one of v1 a context.
  assert bool(found) != graphs.is_in_branch_or_loop(ops[0])
