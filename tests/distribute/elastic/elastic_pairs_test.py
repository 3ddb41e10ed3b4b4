# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a penalty adds to gradients, and how halves are read and written."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1


def _pair():
  getter = elastic_custom_getter.ElasticAverageCustomGetter('')
  with getter.scope():
    tf1.get_variable('w', initializer=[[3.0], [2.0], [3.0]], use_resource=True)
  return getter.pairs[0]


def _start(session):
  session.run(tf1.global_variables_initializer())
  session.run(tf1.local_variables_initializer())


def test_penalty_on_no_gradient_and_on_sparse_ones(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    pair = _pair()
    pair.local_center = tf1.get_variable(
        'view', initializer=[[1.0], [2.0], [3.0]], use_resource=True)
    gradients = [elastic_pairs.penalized(g, pair.local, pair, 0.5) for g in (
        None, tf.IndexedSlices(tf.constant([[1.0], [1.0]]),
                               tf.constant([2, 2]), tf.constant([3, 1])))]
    _start(session)
    # .5 * ([3, 2, 3] - [1, 2, 3])
    alone, added = session.run(gradients)
  assert alone.tolist() == [[1.0], [0.0], [0.0]]
  assert added.tolist() == [[1.0], [0.0], [2.0]]


@pytest.mark.parametrize('how, whole, rows', [
    ('update', [1.0, 5.0, 7.0], [3.0, 7.0, 1.0]),
    ('add', [4.0, 7.0, 10.0], [3.0, 9.0, 4.0]),
    ('sub', [2.0, -3.0, -4.0], [3.0, -5.0, 2.0])])
def test_variables_and_rows_are_written_and_read(behavior, how, whole, rows):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    value, copy = tf.constant([[1.0], [5.0], [7.0]]), _pair().local
    for arguments, expected in (((value,), whole),
                                ((value[::2], tf.constant([2, 1])), rows)):
      _start(session)
      session.run(elastic_pairs.write(copy, how, *arguments))
      assert session.run(elastic_pairs.read(copy)).tolist() == [
          [each] for each in expected]
    assert session.run(elastic_pairs.read(copy, tf.constant([2, 0]))).tolist(
        ) == [[rows[2]], [rows[0]]]
