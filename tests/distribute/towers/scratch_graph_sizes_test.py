# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sizes that are not known while a model is built."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import row_analysis
from tfplugin.distribute.towers import scratch_graph
from tfplugin.testing import one_device

tf1 = tf.compat.v1

_ROWS, _TIMES = 5, 6


def _input_fn():
  random = np.random.RandomState(0)
  sequences = random.randn(3 * _ROWS, _TIMES, 4).astype(np.float32)
  lengths = random.randint(1, _TIMES, [3 * _ROWS]).astype(np.int32)
  return tf1.data.Dataset.from_tensor_slices(
      {'sequences': sequences, 'lengths': lengths}).batch(_ROWS).repeat()


# How a program that has time before the batch may change the shape.
_SHAPES = {
    'flat and back': lambda x, w, times, rows: tf.reshape(
        tf.reshape(x, [-1, 4]) @ w, [times, rows, 3]),
    'features next to time': lambda x, w, times, rows: tf.reshape(
        x, [-1, rows, 2]) @ w[:2],
    'features split': lambda x, w, times, rows: tf.reshape(
        x, [-1, rows, 2, 2])[..., 0] @ w[:2],
    'one row of features': lambda x, w, times, rows: tf.reshape(
        tf.reshape(x, [times, rows * 4]), [-1, rows, 4]) @ w,
    'rows of time': lambda x, w, times, rows: tf.reshape(
        x @ w, [rows, -1, 3]),
}


@pytest.mark.parametrize('shape', _SHAPES)
def test_a_trimmed_sequence_with_time_first(behavior, shape):
  def model_fn(features, mode):
    w = tf1.get_variable(
        'w', [4, 3], initializer=tf1.initializers.random_normal(seed=1))
    x = tf.transpose(features['sequences'], [1, 0, 2])
    x = x[:tf.reduce_max(features['lengths'])]
    hidden = _SHAPES[shape](x, w, tf.shape(x)[0], tf.shape(x)[1])
    times = tf.cast(tf.range(tf.shape(hidden)[0]), tf.float32)
    outputs = tf.reduce_sum(hidden * times[:, None, None], [0, 2])
    loss = tf.reduce_sum(tf.square(outputs)) + outputs[0]
    train_op = tf1.train.GradientDescentOptimizer(1e-4).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  one_device.assert_equals_one_device(
      model_fn, _input_fn, ['/cpu:0', '/cpu:1'], modes=['train'])


def test_two_unknown_sizes_of_a_tensor_are_not_taken_for_equal():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, None, None])
    analysis = row_analysis.RowAnalysis([x], None, False)
    time_first = tf.transpose(x, [1, 0, 2])
    for first in range(2):
      sizes = tf.shape(time_first)
      y = tf.reshape(time_first, tf.stack([
          sizes[0 if first == 0 else 2], sizes[1], -1]))
      for op in _between(time_first, y):
        analysis.add(op)
      assert analysis.has_parts(y) == (first == 0)


def _between(first, last):
  ops = first.graph.get_operations()
  return ops[ops.index(first.op) - 1:ops.index(last.op) + 1]


@pytest.mark.parametrize('whole, part, place', (
    ([20011, 3], [10007, 3], (0, 1, 2, 1, 3)),
    ([None, 40022, 4], [None, 20014, 4], (1, 2, 3, None, 8)),
    ([5, 20011, None], [5, 10007, None], (1, 1, 3, 5, None)),
    ([20011, 20011], [10007, 10007], None), ([20011], [20011], None),
    ([20012], [10008], None), ([None], [10007], None)))
def test_the_place_of_rows_in_two_shapes(whole, part, place):
  rows = scratch_graph.rows_between(
      tf.TensorShape(whole), tf.TensorShape(part), 20011)
  assert (rows and (rows.axis, rows.factor, rows.rank, rows.before,
                    rows.behind)) == place


def test_a_static_batch_is_never_as_large_as_a_part():
  for rows in (4, 10007, 10009, 20011):
    assert scratch_graph.part_rows(rows) != rows
