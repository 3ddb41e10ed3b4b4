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


def _padded(rows, times):
  """Returns an input_fn of sequences whose length only the step knows."""
  random = np.random.RandomState(0)
  sequences = random.randn(3 * rows, times, 4).astype(np.float32)
  return lambda: tf1.data.Dataset.from_tensor_slices(sequences).padded_batch(
      rows, [None, 4]).repeat()


# Results for all entries of all rows, from a row-wise tensor.
_OF_ENTRIES = {
    'joined': lambda flat: tf.cumsum(flat),
    'sliced': lambda flat: flat * tf.cumsum(flat),
    'dropped': lambda flat: tf.nn.dropout(flat, rate=.5, seed=3),
}


@pytest.mark.parametrize('rows', (1, 5))
@pytest.mark.parametrize('make', _OF_ENTRIES)
def test_rows_of_a_length_that_each_step_finds_are_whole(make, rows):
  """Longer ones than the size that the analysis takes for an unknown one."""
  def model_fn(features, mode):
    w = tf1.get_variable(
        'w', [4, 3], initializer=tf1.initializers.random_normal(seed=1))
    features = tf.pad(features, [[0, 0], [1, 0], [0, 0]])
    flat = _OF_ENTRIES[make](tf.reshape(features, [-1, 4]) @ w)
    loss = tf.reduce_mean(tf.square(flat))
    train_op = tf1.train.GradientDescentOptimizer(1e-4).minimize(loss)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, predictions=flat)

  one_device.assert_equals_one_device(
      model_fn, _padded(rows, 50), ['/cpu:0', '/cpu:1'],
      modes=['train', 'predict'])


@pytest.mark.parametrize('first, last', ((None, 20_200), (-20_200, None)))
def test_a_bound_that_cuts_the_batch_does_not_cut_each_tower(first, last):
  """A bound of more rows than the analysis has."""
  rows = np.random.RandomState(0).randn(20_500, 2).astype(np.float32)

  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=[[1.], [2.]])
    loss = tf.reduce_mean(tf.square(features[first:last] @ w))
    train_op = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  one_device.assert_equals_one_device(
      model_fn, lambda: tf1.data.Dataset.from_tensor_slices(rows).batch(
          len(rows)).repeat(), ['/cpu:0', '/cpu:1'], modes=['train'])


@pytest.mark.parametrize('cut, is_split', (
    (lambda x: x[:30_000], False), (lambda x: x[-30_000:], False),
    (lambda x: x[:, :2][:30_000], False), (lambda x: x[:, :2], True),
    (lambda x: x[0:], True), (lambda x: x[..., :2], True),
    (lambda x: x[:tf.shape(x)[0]], True), (lambda x: x[..., None, :2], True),
    (lambda x: tf.transpose(x)[..., :30_000], False),
    (lambda x: tf.transpose(x)[None, 1:3, :tf.shape(x)[0]], True)))
def test_a_bound_is_a_size_of_the_batch_or_cuts_it(cut, is_split):
  with tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, [None, 3])
    before = len(graph.get_operations())
    y = cut(x)
    analysis = row_analysis.RowAnalysis([x], None, False)
    for op in graph.get_operations()[before:]:
      analysis.add(op)
    assert analysis.has_parts(y) == is_split


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


def test_two_unknown_sizes_that_are_exchanged_mix_rows():
  """Where time and features are taken for equal, each tower mixes its rows."""
  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=2.)
    time_first = tf.transpose(features, [1, 0, 2])
    sizes = tf.shape(time_first)
    mixed = tf.reshape(time_first, [sizes[2], sizes[1], -1])
    outputs = tf.reduce_sum(tf.square(mixed * w), [0, 2])
    loss = tf.reduce_sum(tf.square(outputs)) + outputs[0]
    train_op = tf1.train.GradientDescentOptimizer(1e-4).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  sequences = np.random.RandomState(0).randn(8, 3, 2).astype(np.float32)
  one_device.assert_equals_one_device(
      model_fn, lambda: tf1.data.Dataset.from_tensor_slices(
          sequences).padded_batch(4, [None, None]).repeat(),
      ['/cpu:0', '/cpu:1'], modes=['train'])


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
