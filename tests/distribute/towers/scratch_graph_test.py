# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the graph in which shapes are inferred."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import scratch_graph

tf1 = tf.compat.v1


def test_an_op_of_another_size():
  scratch = scratch_graph.ScratchGraph()
  with tf.Graph().as_default():
    op = tf.matmul(tf.ones([2, 3]), tf.ones([3, 1])).op
    other = scratch.placeholder(tf.float32, [7, 3])
    fixed = scratch.stand_in(op.inputs[1], True)
    assert tf.get_static_value(fixed).shape == (3, 1)
    assert scratch.copy(op, [other, fixed]).outputs[0].shape == [7, 1]
    assert scratch.copy(op, [fixed, other]) is None


def test_a_variable_has_its_shape():
  scratch = scratch_graph.ScratchGraph()
  with tf.Graph().as_default():
    v = tf1.get_variable('v', [2, 5], use_resource=True)
    read = v.read_value().op.inputs[0].op
    made = scratch.copy(read, [scratch.stand_in(v.handle, True)])
    assert made.outputs[0].shape == [2, 5]


@pytest.mark.parametrize('make, known', (
    (lambda x: tf.constant([7, -1]), True),
    (lambda x: tf.stack([tf.shape(x)[0], -1]), True),
    (lambda x: tf.stack([tf.shape(x)[0], 3]), True),
    (lambda x: tf1.placeholder(tf.int32, [1]), False),
    (lambda x: tf.stack([tf1.placeholder(tf.int32, []), -1]), False)))
def test_a_shape_is_known_but_for_what_is_written_as_unknown(make, known):
  scratch = scratch_graph.ScratchGraph()
  x = scratch.placeholder(tf.float32, [7, 3])
  with x.graph.as_default():
    sizes = make(x)
  assert scratch.is_known_shape(sizes) == known


def test_a_size_is_computed_again():
  scratch = scratch_graph.ScratchGraph()
  with tf.Graph().as_default():
    sizes = tf.stack([tf.shape(tf.zeros([4, 3]))[0], 5])
    unknown = tf.stack([tf1.placeholder(tf.int32, []), 5])
  assert scratch.value_of_shape(scratch.stand_in(sizes, True)) == [4, 5]
  assert scratch.value_of_shape(scratch.stand_in(sizes, False)) is None
  assert scratch.value_of_shape(scratch.stand_in(unknown, True)) is None
