# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sizes that only seem to count the rows of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import scratch_graph
from tfplugin.testing import one_device

tf1 = tf.compat.v1

_ENTRIES = scratch_graph.WHOLE_ROWS


def _input_fn():
  data = np.random.RandomState(0).randn(28, 3).astype(np.float32)
  return tf1.data.Dataset.from_tensor_slices(data).batch(7).repeat()


def _table(x, w):
  """A table as long as the batch of a scratch graph, scaled by the batch."""
  table = tf.ones([_ENTRIES, 2]) * tf.reduce_mean(x)
  return tf.reduce_mean(tf.reduce_sum(table @ w) * x)


def _filled_up(size):
  def loss(x, w):
    missing = size(tf.shape(x)[0])
    full = tf.pad(x[:, :2], [[0, missing], [0, 0]])
    return tf.reduce_mean(tf.square(full @ w - 1.))
  return loss


_LOSSES = {
    'a table': _table,
    'at least 32 rows': _filled_up(lambda rows: tf.maximum(0, 32 - rows)),
    'where': _filled_up(lambda rows: tf.where(rows < 32, 32 - rows, 0)),
    'the largest': _filled_up(lambda rows: tf.reduce_max([rows, 32]) - rows),
    'a count of few': lambda x, w: tf.reduce_sum(x[:, :2] @ w) * tf.cast(
        tf.minimum(tf.shape(x)[0], 5), tf.float32),
}


@pytest.mark.parametrize('loss', _LOSSES)
def test_a_size_that_does_not_count_rows(behavior, loss):
  def model_fn(features, mode):
    w = tf1.get_variable(
        'w', [2, 1], initializer=tf1.initializers.random_normal(seed=1))
    value = _LOSSES[loss](features, w)
    train_op = tf1.train.GradientDescentOptimizer(1e-4).minimize(value)
    return tf.estimator.EstimatorSpec(mode, loss=value, train_op=train_op)

  one_device.assert_equals_one_device(
      model_fn, _input_fn, ['/cpu:0', '/cpu:1'], modes=['train'])
