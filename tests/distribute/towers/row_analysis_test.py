# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where tensors have the rows of a batch."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import row_analysis

tf1 = tf.compat.v1


def _analysed(make, shape=(None, 3), static=None, batch_norm=False):
  """Returns the analysis of what `make` makes, and its result."""
  x = tf1.placeholder(tf.float32, shape)
  graph = tf1.get_default_graph()
  analysis = row_analysis.RowAnalysis([x], static, batch_norm)
  before = len(graph.get_operations())
  y = make(x)
  for op in graph.get_operations()[before:]:
    analysis.add(op)
  return analysis, y


@pytest.mark.parametrize('make, axis, factor', (
    (tf.exp, 0, 1),
    (lambda x: tf.reshape(x, [-1]), 0, 3),
    (lambda x: tf.reshape(x, [tf.shape(x)[0], 1, 3]), 0, 1),
    (tf.transpose, 1, 1),
    (lambda x: x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None],
     0, 1),
    (lambda x: tf.exp(x - tf.reduce_mean(x, 0)), 0, 1),
    (lambda x: tf.concat([x, tf.zeros([tf.shape(x)[0], 2])], 1), 0, 1)))
def test_rows_are_found(behavior, make, axis, factor):
  with tf.Graph().as_default():
    analysis, y = _analysed(make)
    rows = analysis.rows[y.ref()]
    assert (rows.axis, rows.factor) == (axis, factor)


@pytest.mark.parametrize('make', (
    lambda x: tf.reduce_sum(x, 0), lambda x: x @ tf.transpose(x),
    lambda x: tf.concat([x, x], 0), lambda x: tf.cumsum(x), lambda x: x[1:],
    lambda x: x[:tf.shape(x)[0] - 1], lambda x: tf.boolean_mask(x, x[:, 0] > 0),
    lambda x: tf.reshape(tf.transpose(x), [-1]),
    lambda x: tf.random.uniform(tf.shape(x))))
def test_what_is_computed_once(behavior, make):
  with tf.Graph().as_default():
    analysis, y = _analysed(make)
    assert not analysis.has_parts(y)
    assert analysis.is_computed_once(y.op)


def test_a_size_is_that_of_a_part_only_in_a_shape():
  with tf.Graph().as_default():
    analysis, y = _analysed(lambda x: x / tf.cast(tf.shape(x)[0], tf.float32))
    assert analysis.plans[y.op].modes == [
        row_analysis.PART, row_analysis.WHOLE]
    analysis, y = _analysed(lambda x: tf.reshape(x, tf.stack(
        [tf.shape(x)[0], 1, 3])))
    assert analysis.plans[y.op].modes == [row_analysis.PART, row_analysis.PART]


def test_a_static_batch_is_told_from_its_constants():
  with tf.Graph().as_default():
    analysis, y = _analysed(
        lambda x: tf.concat([x, tf.zeros([4, 2])], 1), (4, 3), 4)
    assert analysis.plans[y.op].modes[:2] == [
        row_analysis.PART, row_analysis.SLICE]


def _up(x):
  return tf.nn.conv2d_transpose(
      x[:, None, :, None], tf.ones([1, 2, 2, 1]), tf.stack(
          [tf.shape(tf.zeros([4]))[0], 1, 6, 2]), [1, 1, 2, 1])


@pytest.mark.parametrize('make, place', (
    (lambda x: tf.reshape(x, [4, 3]), (0, 1)),
    (lambda x: tf.reshape(x, [12]), (0, 3)),
    (lambda x: tf.reshape(tf.transpose(x), [1, 3, 4, 1]), (2, 1)),
    (lambda x: tf.broadcast_to(x[:, None], [4, 5, 3]), (0, 1)),
    (lambda x: tf.slice(x, [0, 1], [4, 2]), (0, 1)), (_up, (0, 1))))
def test_a_static_shape_has_the_rows_of_a_tower(behavior, make, place):
  with tf.Graph().as_default():
    analysis, y = _analysed(make, (4, 3), 4)
    assert row_analysis.FREE in analysis.plans[y.op].modes
    assert analysis.place_of_rows(y.op) == place


def test_a_static_shape_that_mixes_rows_is_made_once():
  with tf.Graph().as_default():
    analysis, y = _analysed(
        lambda x: tf.reshape(tf.transpose(x), [12]), (4, 3), 4)
    assert not analysis.has_parts(y)


@pytest.mark.parametrize('batch_norm', (True, False))
def test_batch_norm_is_split_where_the_user_chose_so(batch_norm):
  with tf.Graph().as_default():
    analysis, y = _analysed(
        lambda x: tf1.nn.fused_batch_norm(x, tf.ones([3]), tf.ones([3]))[0],
        (None, 2, 2, 3), batch_norm=batch_norm)
    assert analysis.has_parts(y) == batch_norm


def test_rows_that_were_mixed_are_split_again_for_a_variable():
  def make(x):
    v = tf1.get_variable('v', [3, 2], use_resource=True)
    return tf.reverse(x, [0]) @ v

  with tf.Graph().as_default():
    analysis, y = _analysed(make)
    assert analysis.plans[y.op].modes[0] == row_analysis.SLICE
    assert not analysis.unsplit


def test_ops_that_use_a_variable_and_are_not_split_are_named():
  def make(x):
    v = tf1.get_variable('v', [2, 3], use_resource=True)
    return tf.tensor_scatter_nd_add(v, tf.cast(x[:, :1] > 0, tf.int32), x)

  with tf.Graph().as_default():
    analysis, y = _analysed(make)
    assert analysis.unsplit == [f'{y.op.name} (TensorScatterAdd)']
