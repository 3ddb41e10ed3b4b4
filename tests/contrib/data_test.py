# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.data; old_names_test.py walks all of its names."""

import pytest
import tensorflow as tf

from tfplugin.contrib import data

tf1 = tf.compat.v1


def test_an_old_input_pipeline_runs(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    rows = tf1.data.Dataset.range(4)
    rows = rows.apply(data.enumerate_dataset(start=10))
    rows = rows.apply(data.map_and_batch(lambda i, x: i * x, batch_size=2))
    batch = tf1.data.make_one_shot_iterator(rows).get_next()
    # 10 * 0, 11 * 1, 12 * 2, 13 * 3
    assert session.run(batch).tolist() == [0, 11]
    assert session.run(batch).tolist() == [24, 39]


def test_whole_batches_alone(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    rows = tf1.data.Dataset.range(1, 4)
    whole = rows.apply(data.batch_and_drop_remainder(2))
    # 1, and 2 2; 3 3 3 is left over.
    padded = rows.map(lambda n: tf.fill([n], n)).apply(
        data.padded_batch_and_drop_remainder(2, [None], tf.constant(
            -1, tf.int64)))
    for dataset, expected in ((whole, [1, 2]), (padded, [[1, -1], [2, 2]])):
      batch = tf1.data.make_one_shot_iterator(dataset).get_next()
      assert session.run(batch).tolist() == expected
      with pytest.raises(tf.errors.OutOfRangeError):
        session.run(batch)


def test_what_is_gone_says_what_there_is_instead():
  with pytest.raises(AttributeError, match=r'parallel_interleave` with'):
    data.sloppy_interleave  # noqa: B018 (the access raises)
