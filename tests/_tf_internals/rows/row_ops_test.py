# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is known of ops that keep the number of rows."""

import math

import pytest
import tensorflow as tf

from tfplugin._tf_internals.rows import row_ops

tf1 = tf.compat.v1

_X = [7, 3]


def _is_apart(make, axis=0, shape=(7, 3), inputs=(0,), out=None):
  """Whether the last op that `make` makes keeps the rows of `x` apart."""
  with tf.Graph().as_default():
    op = make(tf1.placeholder(tf.float32, shape)).op
    places = {i: _place(shape, axis) for i in inputs}
    found = op.outputs[0].shape.as_list()
    at = found.index(7) if out is None else out
    return row_ops.keeps_rows_apart(op, places, [_place(found, at)])


def _place(shape, axis):
  factor = shape[axis] // 7
  before, behind = shape[:axis], [factor, *shape[axis + 1:]]
  return row_ops.Rows(axis, factor, len(shape), *(
      None if None in sizes else math.prod(sizes)
      for sizes in (before, behind)))


@pytest.mark.parametrize('make', (
    tf.exp, lambda x: x + 1, lambda x: x @ tf.ones([3, 2]),
    lambda x: tf.reduce_sum(x, 1), lambda x: tf.nn.softmax(x),
    lambda x: tf.reshape(x, [7, 1, 3]), lambda x: x[:, :2],
    lambda x: tf.cumsum(x, 1), lambda x: tf.reverse(x, [1]),
    lambda x: tf.gather(x, [0, 2], axis=1), tf.transpose,
    lambda x: tf.squeeze(x[:, :1], 1)))
def test_ops_that_keep_rows_apart(make):
  assert _is_apart(make)


@pytest.mark.parametrize('make', (
    lambda x: tf.cumsum(x, 0), lambda x: tf.reverse(x, [0]),
    lambda x: tf.roll(x, 1, 0), lambda x: x[::-1],
    lambda x: tf.gather(x, [6, 5, 4, 3, 2, 1, 0]),
    lambda x: tf.squeeze(x[:, None]), lambda x: tf.random.shuffle(x),
    lambda x: tf.raw_ops.LinSpace(start=0., stop=x[0, 0], num=7)))
def test_ops_that_mix_rows_or_are_not_known(make):
  assert not _is_apart(make)


def test_dimensions_before_the_rows_are_not_merged_with_them():
  def flat(x):
    return tf.reshape(x, [-1])
  assert not _is_apart(flat, axis=1, shape=(3, 7), out=0)
  assert not _is_apart(tf.nn.softmax, axis=1, shape=(3, 7))
  assert _is_apart(tf.exp, axis=1, shape=(3, 7))
  assert _is_apart(lambda x: tf.reshape(x, [-1, 7, 2, 2]), axis=1,
                   shape=(None, 7, 4), out=1)
  assert not _is_apart(lambda x: tf.reshape(x, [-1, 7, 2]), axis=1,
                       shape=(None, 7, 4), out=1)


def test_rows_of_one_operand_do_not_meet_those_of_another():
  def einsum(equation):
    return lambda x: tf.raw_ops.Einsum(inputs=[x, x], equation=equation)
  assert _is_apart(einsum('bi,bi->b'), inputs=(0, 1))
  assert not _is_apart(einsum('bi,ci->bi'), inputs=(0, 1))


def test_rows_of_a_table_are_those_of_its_indices():
  def gather(batch_dims):
    return lambda x: tf.raw_ops.GatherV2(
        params=x, indices=tf.zeros([7, 2], tf.int32), axis=1,
        batch_dims=batch_dims)
  assert _is_apart(gather(1), inputs=(0, 1))
  assert not _is_apart(gather(1), inputs=(0,))
  assert not _is_apart(gather(1), inputs=(1,))
  assert _is_apart(gather(0), inputs=(0,))


def test_a_gradient_of_the_program_is_known_by_its_op():
  @tf.custom_gradient
  def own(x):
    return tf.identity(x), lambda dy: dy
  with tf.Graph().as_default():
    y = own(tf.ones(_X))
    assert row_ops.has_own_gradient(y.op)
    assert not row_ops.has_own_gradient(tf.exp(y).op)


@pytest.mark.parametrize('make', (
    lambda x: tf.nn.bias_add(x, tf.ones([3])), lambda x: x @ tf.ones([3, 2]),
    tf.nn.softmax, lambda x: tf.reshape(x, [7, 1, 3]), tf.exp))
def test_a_gradient_of_the_program_may_mix_rows(make):
  def with_own_gradient(x):
    with x.graph.gradient_override_map({
        kind: 'Identity' for kind in (
            'BiasAdd', 'MatMul', 'Softmax', 'Reshape', 'Exp')}):
      return make(x)
  assert _is_apart(make)
  assert not _is_apart(with_own_gradient)


def test_kinds_of_ops():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2, 2, 3])
    assert row_ops.is_size(tf.shape(x).op)
    assert not row_ops.is_size(tf.exp(x).op)
    for training in (True, False):
      y, _, _ = tf1.nn.fused_batch_norm(
          x, tf.ones([3]), tf.ones([3]), None if training else tf.ones([3]),
          None if training else tf.ones([3]), is_training=training)
      assert row_ops.is_batch_norm(y.op) == training
    v = tf1.get_variable('v', [3], use_resource=True)
    assert row_ops.reads_only(v.read_value().op.inputs[0].op)
    assert row_ops.aligns_rows(tf.add(x, x).op)
    assert not row_ops.aligns_rows(tf.matmul(x, x, transpose_b=True).op)


@pytest.mark.parametrize('cut, axis, bounds', (
    (lambda x: x[:2], 0, [(2, 0)]), (lambda x: x[-2:], 0, [(1, 0)]),
    (lambda x: x[1:2], 0, [(1, 0), (2, 0)]), (lambda x: x[:, 1:2], 0, []),
    (lambda x: x[:, 1:], 1, [(1, 1)]), (lambda x: x[..., :2], 0, []),
    (lambda x: x[..., :2], 1, [(2, 1)]), (lambda x: x[:2], 1, []),
    (lambda x: x[None, :, :2], 1, [(2, 2)]), (lambda x: x[None, :2], 1, []),
    (tf.exp, 0, [])))
def test_the_bounds_that_a_slice_gives_for_the_rows(cut, axis, bounds):
  with tf.Graph().as_default():
    op = cut(tf1.placeholder(tf.float32, _X)).op
    assert row_ops.bounds_of_rows(op, _place([7, 7], axis)) == bounds
