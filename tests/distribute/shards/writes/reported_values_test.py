# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that the first shard reports, in summaries and under names."""

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1

_ROWS = [[1.0, 2.0], [3.0, 8.0]]


def _report(make, group_assignment=None):
  """Returns the number `shown` of `make(rows)`, with two rows in each shard."""
  with tf.Graph().as_default(), tf1.Session() as session:
    rows = [tf1.placeholder_with_default(x, [None]) for x in _ROWS]
    shared_shards.SharedShards(
        ['/cpu:0', '/cpu:1'], group_assignment=group_assignment).build(
            lambda shard: tf.identity(make(rows[shard]), name='shown'), rows)
    return session.run('shown:0')


@pytest.mark.parametrize('reduce, of_all, of_first', (
    (tf.reduce_mean, 3.5, 1.5), (tf.reduce_max, 8.0, 2.0)))
def test_a_number_under_a_name_is_of_all_rows_of_the_group(
    behavior, reduce, of_all, of_first):
  assert _report(reduce) == of_all
  assert _report(reduce, [[0], [1]]) == of_first


def test_what_cannot_be_made_again_is_named(behavior, caplog):
  def first_by_chance(rows):
    return tf.random.shuffle(rows)[0] * 0.0 + rows[0]

  assert _report(first_by_chance) == 1.0
  assert 'those of the first of 2: shown' in caplog.text
