# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which operations of a graph run before others."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import graph_order

tf1 = tf.compat.v1


def test_inputs_and_control_inputs_are_upstream(behavior):
  del behavior
  with tf.Graph().as_default():
    first, other = tf.constant(1.0, name='first'), tf.no_op(name='other')
    with tf1.control_dependencies([other]):
      middle = tf.negative(first, name='middle')
    last = tf.abs(middle, name='last')
    assert {op.name for op in graph_order.upstream([middle.op])} == {
        'first', 'other', 'middle'}
    assert last.op not in graph_order.upstream([middle.op])


def test_the_walk_ends_behind_an_operation_that_stops_it(behavior):
  del behavior
  with tf.Graph().as_default():
    first, other = tf.constant(1.0, name='first'), tf.no_op(name='other')
    middle = tf.negative(first, name='middle')
    with tf1.control_dependencies([other]):
      last = tf.abs(middle, name='last')
    found = graph_order.upstream([last.op], stop=lambda op: op is middle.op)
    assert {op.name for op in found} == {'last', 'middle', 'other'}
    assert graph_order.upstream(
        [last.op], of_values=True, stop=lambda op: op is middle.op) == {
            last.op, middle.op}
    assert graph_order.upstream([last.op], stop=lambda op: True) == {last.op}


def test_the_walk_goes_to_no_known_operation(behavior):
  del behavior
  with tf.Graph().as_default():
    first = tf.constant(1.0)
    middle = tf.negative(first)
    last = middle + tf.abs(first)
    both = {middle.op, first.op}
    assert graph_order.upstream([last, middle], known=both) == (
        graph_order.upstream([last]) - both)


def test_a_loop_is_walked_once():
  with tf.Graph().as_default():
    tf1.disable_control_flow_v2()
    try:
      result = tf1.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])
    finally:
      tf1.enable_control_flow_v2()
    assert result.op in graph_order.upstream([result.op])


def test_operations_of_what_a_function_may_return():
  with tf.Graph().as_default():
    tensor, operation = tf.constant(1.0), tf.no_op()
    assert graph_order.operations_of([tensor, None, 3.0, operation]) == [
        tensor.op, operation]


def test_updates_of_one_of_several_variables(behavior):
  with tf.Graph().as_default():
    first, second = (tf1.get_variable(name, initializer=1.0, use_resource=True)
                     for name in ('first', 'second'))
    done = tf.cond(
        tf1.placeholder(tf.bool, []),
        lambda: tf.group(second.assign_add(1.0, read_value=False)),
        tf.no_op)
    ends = graph_order.operations_of([done])
    assert graph_order.updates(ends, first, second)
    assert not graph_order.updates(ends, first)
    assert not graph_order.updates(ends)
