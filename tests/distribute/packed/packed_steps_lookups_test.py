# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups of several tables share a message, and take no more than before."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.packed import packed_programs
from tests.distribute.packed import packed_recommenders
from tests.distribute.packed import packed_strangers
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packed_steps
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_TABLES = 4


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=1)


@pytest.mark.parametrize('form', [
    'plain, strategy', 'drop, strategy', 'clip, strategy', 'drop, decorator',
    'clip, decorator'])
def test_as_many_messages_for_8_tables_as_for_4(behavior, cluster, form):
  del behavior
  few, many = (packed_programs.trained(
      form, cluster, packed_programs.tables(number))[0] for number in (4, 8))
  assert few == many


def test_columns_of_a_recommender(behavior, cluster):
  """The ids of all, their rows, the bias; of gradients: ids, rows, bias."""
  del behavior
  sent, _ = packed_programs.trained_as(
      'plain, strategy', cluster, packed_strangers.columns)
  assert sent['ps', 'worker'] <= 3
  assert sent['worker', 'ps'] <= 6


class _Lookups:
  """Lookups of ids, packed: a sum of rows for each table, and a session."""

  def __init__(self, cluster, make_ids):
    with tf.Graph().as_default() as graph, tf1.device(
        cluster.device_setter(0)):
      tables = [tf1.get_variable(f'v{index}', initializer=tf.reshape(
          tf.range(8.0) * 10 ** index, [8, 1])) for index in range(_TABLES)]
      ids = [make_ids(index) for index in range(_TABLES)]
      self.found = [tf.reduce_sum(tf.nn.embedding_lookup(table, each))
                    for table, each in zip(tables, ids)]
      total = tf.add_n(self.found)
      packed_steps.pack_reads(tf.estimator.EstimatorSpec(
          'train', loss=total, train_op=total.op))
    self.total, self.ids = total, ids
    self.session = cluster.session(0, graph)
    self.session.run(
        [variable.initializer for variable in graph.get_collection(
            tf1.GraphKeys.GLOBAL_VARIABLES)])


def test_an_iterator_is_not_advanced_for_another(behavior, cluster):
  """A fetch of one table's rows takes no row of the other tables' data."""
  del behavior

  def make_ids(index):
    del index
    return tf1.data.make_one_shot_iterator(
        tf1.data.Dataset.range(8).batch(1)).get_next()

  lookups = _Lookups(cluster, make_ids)
  with lookups.session as session:
    assert [session.run(lookups.found[0]) for _ in range(2)] == [0.0, 1.0]
    assert session.run(lookups.found) == [2.0, 0.0, 0.0, 0.0]


def test_a_placeholder_is_not_asked_for_another(behavior, cluster):
  del behavior
  lookups = _Lookups(
      cluster, lambda index: tf1.placeholder(tf.int32, [None]))
  with lookups.session as session:
    assert session.run(
        lookups.found[2], {lookups.ids[2]: [1, 7]}) == 800.0
    assert session.run(lookups.total, {
        each: [index] for index, each in enumerate(lookups.ids)}) == 3210.0


@pytest.mark.parametrize('shape', [[None], [None, None], [2, 2], []])
def test_ids_of_a_common_source_share_two_messages(behavior, cluster, shape):
  del behavior
  ids = np.array([[1, 2], [2, 0]], np.int64)
  ids = {0: ids[0, 0], 1: ids[0]}.get(len(shape), ids)

  @functools.cache
  def source():
    return tf1.placeholder(tf.int64, shape)

  lookups = _Lookups(cluster, lambda index: (source() + index) % 8)
  with lookups.session as session:
    assert session.run(lookups.total, {source(): ids}) == sum(
        ((ids + index) % 8).sum() * 10.0 ** index for index in range(_TABLES))
  # Each one's ids have arrived with the others'.
  assert [placement.task_of(op.inputs[1].device)[0]
          for op in lookups.total.graph.get_operations()
          if op.type in ('ResourceGather', 'GatherV2')] == ['ps'] * _TABLES


def test_a_wrong_id_is_an_error_of_its_lookup(behavior, cluster):
  del behavior
  lookups = _Lookups(cluster, lambda index: tf1.placeholder_with_default(
      [8 * (index == 2)], [None]))
  with lookups.session as session:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r'8 is not in'):
      session.run(lookups.total)


@pytest.mark.parametrize('program, to_server, to_worker', [
    # Ids; gradients: indices, rows, columns of one; the step. Rows of 2 widths.
    ('attention', 5, 2),
    # Ids; gradients: indices and rows of all parts. Rows of one width.
    ('parts', 3, 1)])
def test_messages_of_recommenders(
    behavior, cluster, program, to_server, to_worker):
  del behavior
  sent, _ = packed_programs.trained_as(
      'plain, strategy', cluster, packed_recommenders.PROGRAMS[program])
  assert (sent['worker', 'ps'], sent['ps', 'worker']) == (to_server, to_worker)


def test_ids_of_16_bits_go_alone(behavior, cluster):
  """Only reference variables take them."""
  del behavior
  ids = np.array([1, 3], np.int16)
  with tf.Graph().as_default() as graph, tf1.device(cluster.device_setter(0)):
    tables = [tf1.get_variable(f'v{index}', initializer=tf.reshape(
        tf.range(8.0), [8, 1]), use_resource=False) for index in range(2)]
    total = tf.add_n([tf.reduce_sum(tf.nn.embedding_lookup(
        table, tf1.placeholder_with_default(ids, [None])))
                      for table in tables])
    packed_steps.pack_reads(tf.estimator.EstimatorSpec(
        'train', loss=total, train_op=total.op))
    with cluster.session(0, graph) as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(total) == 8.0
