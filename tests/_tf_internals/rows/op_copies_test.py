# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of copies of single ops."""

import pytest
import tensorflow as tf

from tfplugin._tf_internals.rows import op_copies
from tfplugin.testing import behaviors

tf1 = tf.compat.v1


def test_a_copy_computes_the_same_of_other_inputs():
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    y = tf.reduce_sum(tf.constant([1., 2.]) * 3, 0, keepdims=True)
    other = tf.constant([5., 6., 7.])
    copy = op_copies.copy_op(
        graph, y.op, [other, y.op.inputs[1]], 'tower_1/copy/')
    assert copy.name == 'tower_1/copy'
    assert session.run(copy.outputs[0]) == [18.]


def test_inputs_that_do_not_fit_are_refused():
  with tf.Graph().as_default() as graph:
    y = tf.ones([2, 3]) @ tf.ones([3, 1])
    with pytest.raises(ValueError):
      op_copies.copy_op(graph, y.op, [tf.ones([2, 4]), y.op.inputs[1]], 'copy')


def test_ops_of_branches_and_functions_are_not_copied(behavior):
  with tf.Graph().as_default():
    x = tf1.placeholder_with_default(1., [])
    assert op_copies.can_be_copied(tf.exp(x).op)
    y = tf.cond(x > 0, lambda: x + 1, lambda: x - 1)
    while y.op.type == 'Identity':
      y = y.op.inputs[0]
    assert not op_copies.can_be_copied(y.op)


def test_what_an_op_waits_for_is_replaced():
  with tf.Graph().as_default():
    first, second = tf.no_op(), tf.no_op()
    with tf.control_dependencies([first]):
      op = tf.no_op()
    op_copies.replace_control_inputs(op, [second])
    assert op.control_inputs == [second]


def test_an_op_beside_a_variable_is_known(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', [3, 2])
    with tf1.colocate_with(v):
      beside = tf.no_op()
    assert op_copies.is_beside_variable(beside)
    assert not op_copies.is_beside_variable(tf.no_op())


def test_what_calls_functions_may_be_called_again():
  @tf.function
  def call(x):
    return x + 1.0

  @tf.function
  def draw(x):
    return x + tf.random.normal([])

  with tf.Graph().as_default():
    x = tf.constant(1.0)
    found = []
    for fn in call, draw:
      ops = len(x.graph.get_operations())
      fn(x)
      found += [op_copies.can_be_called_again(op)
                for op in x.graph.get_operations()[ops:]
                if 'PartitionedCall' in op.type]
    assert found == [True, False]
    assert not op_copies.can_be_called_again(x.op)


def test_ops_of_a_branch_start_with_it():
  with behaviors.behavior('v1'), tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: tf.constant(2.0, name='two'), lambda: -x)
    two = graph.get_operation_by_name('cond/two')
    start = op_copies.start_of_branch(two)
    assert op_copies.is_part_of_branch(two)
    assert op_copies.is_part_of_branch(y.op)
    assert op_copies.is_part_of_branch(start.op)
    assert op_copies.start_of_branch(start.op) is None
    assert op_copies.start_of_branch(y.op) is None
    assert not op_copies.is_part_of_branch(x.op)
    loop, = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])
    assert not op_copies.is_part_of_branch(loop.op)
    assert not op_copies.is_part_of_branch(loop.op.inputs[0].op)
