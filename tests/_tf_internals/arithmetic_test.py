# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ops that TensorFlow makes have the roles that are written down."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import arithmetic

tf1 = tf.compat.v1


@pytest.mark.parametrize('make, role', [
    (tf.identity, 'pass'),
    (lambda x: tf.cast(x, tf.float64), 'pass'),
    (lambda x: tf.reshape(x, [-1]), 'pass'),
    (tf.stop_gradient, 'pass'),
    (lambda x: x[:, 0], 'slice'),
    (tf.transpose, 'move'),
    (lambda x: x + x, 'add'),
    (lambda x: x - x, 'add'),
    (lambda x: -x, 'add'),
    (lambda x: tf.add_n([x, x]), 'add'),
    (lambda x: tf.stack([x, x]), 'add'),
    (lambda x: tf.concat([x, x], 0), 'add'),
    (lambda x: x * x, 'multiply'),
    (lambda x: x / x, 'divide'),
    (lambda x: tf.math.divide_no_nan(x, x), 'divide'),
    (tf.reduce_sum, 'sum'),
    (tf.reduce_mean, 'mean'),
    (tf.nn.l2_loss, 'squares'),
    (tf.shape, 'sizes'),
    (tf.size, 'sizes'),
    (lambda x: tf.fill(tf.shape(x), 1.0), 'fill'),
    (lambda x: tf.where(x > 0, x, 0), 'join'),
    (lambda x: tf.matmul(x, x, transpose_a=True), 'product'),
    (lambda x: tf.function(tf.nn.relu)(x), 'call'),
    (tf.nn.relu, ''),
])
def test_roles(make, role):
  with tf.Graph().as_default():
    assert arithmetic.role(
        make(tf1.placeholder(tf.float32, [None, 2])).op) == role


def test_every_type_is_one_of_tensorflow():
  types = {name for names in arithmetic._ROLES.values()
           for name in names.split()} | arithmetic._MIX_ROWS | (
               arithmetic._REDUCE)
  # Ops that have no function in `tf.raw_ops`.
  assert {name for name in types if not hasattr(tf.raw_ops, name)} <= {'Const'}


def test_operands_leave_out_shapes_and_conditions():
  with tf.Graph().as_default():
    x, y = tf1.placeholder(tf.float32, [2, 2]), tf.ones([2, 2])
    assert arithmetic.operands(tf.where(x > 0, x, y))[0] is x
    assert len(arithmetic.operands(tf.reduce_sum(x))) == 1
    assert len(arithmetic.operands(tf.concat([x, y], 0))) == 2
    assert arithmetic.operands(tf.identity_n([x, y])[1]) == [y]


def test_signs_and_axes():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [2, 2])
    assert arithmetic.signs((x - x).op) == [1, -1]
    assert arithmetic.signs((-x).op) == [-1]
    assert arithmetic.signs(tf.add_n([x, x, x]).op) == [1, 1, 1]
    assert arithmetic.reduced_axes(tf.reduce_sum(x, -1).op) == [1]
    assert arithmetic.reduced_axes(tf.reduce_sum(x).op) == [0, 1]
    assert arithmetic.reduced_axes(tf.reduce_sum(
        x, tf1.placeholder(tf.int32, [1])).op) is None


def test_sizes_of_static_shapes_are_known_by_name():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [4, 2])
    assert arithmetic.static_size(tf.shape(x).op) == [4, 2]
    assert arithmetic.static_size(tf.size(x).op) == [8]
    assert arithmetic.static_size(tf.constant(4).op) == []
    assert arithmetic.static_ones(tf.ones_like(x).op) == 4
    assert arithmetic.static_ones(tf.ones([4]).op) is None


def test_index_of_a_slice():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [4, 2])
    assert arithmetic.index_of_slice(tf.shape(x)[1].op) == 1
    assert arithmetic.index_of_slice(x[1:].op) is None
    assert arithmetic.index_of_slice(x[0, 1].op) is None


def test_products_over_rows():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [2, 2])
    assert arithmetic.multiplies_rows(tf.matmul(x, x, transpose_a=True).op)
    assert not arithmetic.multiplies_rows((x @ x).op)


@pytest.mark.parametrize('make, count', [
    (lambda x: tf.function(tf.reduce_sum)(x), 1),
    (lambda x: tf.cond(x[0] > 0, lambda: x[0], lambda: x[1]).op.inputs[0], 2),
    (lambda x: tf.switch_case(
        tf.cast(x[0], tf.int32), [lambda: x[0]] * 3).op.inputs[0], 3),
])
def test_bodies_of_functions(make, count):
  with tf.Graph().as_default():
    op = make(tf1.placeholder(tf.float32, [2])).op
    bodies = arithmetic.bodies(op)
  assert len(bodies) == count
  for arguments, results in bodies:
    assert len(arguments) <= len(op.inputs) and len(results) == len(op.outputs)


@pytest.mark.parametrize('make, mixes', [
    (tf.nn.relu, False), (lambda x: tf.reduce_max(x, 1), False),
    (lambda x: tf.reduce_max(x, 0), True), (tf.reduce_max, True),
    (tf.cumsum, True), (lambda x: tf.where(x > 0), True),
    (lambda x: tf.unique(x[:, 0])[0], True)])
def test_mixes_rows(make, mixes):
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    assert arithmetic.mixes_rows(make(x).op) == mixes


def test_takes_from_first_input():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    indices = tf1.placeholder(tf.int32, [None, 1])
    for taken, takes in ((tf.gather(x, [0]), True), (tf.nn.relu(x), False),
                         (tf.gather_nd(x, [[0]]), True),
                         (tf.gather(x, indices, batch_dims=1), False)):
      assert arithmetic.takes_from_first_input(taken.op) == takes


def test_cuts_off():
  with tf.Graph().as_default():
    x, i = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.int32, [])
    for made, cuts in ((tf.cast(x, tf.int32), True), (i // 2, True),
                       (tf.cast(i, tf.int64), False), (x / 2, False),
                       (tf.cast(i, tf.float32), False)):
      assert arithmetic.cuts_off(made.op) == cuts


def test_keeps_first_dimension():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    for made, keeps in ((x[:, 0], True), (x[..., :1], True), (x[:1], False),
                        (x[1:], False), (x[::2], False), (x[::-1], False)):
      assert arithmetic.keeps_first_dimension(made.op) == keeps


def test_a_loop_runs_its_body_again():
  with tf.Graph().as_default() as graph:
    tf1.enable_control_flow_v2()
    try:
      tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0),
                    [0, 1.0])
    finally:
      tf1.disable_control_flow_v2()
    loop, = [op for op in graph.get_operations() if 'While' in op.type]
    (inputs, outputs), = arithmetic.repeated_by(loop)
    assert [t.dtype for t in inputs] == [t.dtype for t in outputs]
    assert not arithmetic.repeated_by(tf.constant(1.0).op)
    assert not arithmetic.repeated_by(None)
