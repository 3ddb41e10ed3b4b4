# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the kinds of shards: how each is found, and how each sums."""

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import current_shards
from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1

_MEAN = tf1.losses.Reduction.MEAN
_GROUPS = [[1, 3], [2, 0]]


def _look(index, groups):
  """Returns what a shard with gradient 10 ** index finds."""
  shards = current_shards.current_shards('caller')
  variable = tf1.get_variable('w', initializer=1.0, use_resource=True)
  with shards.applying_sums():
    sums = shards.sums([(10.0 ** index, variable), (None, variable)], groups)
  assert [v for _, v in sums] == [variable] * 2
  return (type(shards), shards.size, shards.loss_factor(_MEAN, groups), [
      tf.constant(-1.0) if g is None else g for g, _ in sums])


def _in_replicas(num_replicas, groups=None):
  strategy = tf.distribute.MirroredStrategy(
      [f'CPU:{i}' for i in range(num_replicas)],
      tf.distribute.ReductionToOneDevice())
  found = []
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    def replica():
      context = tf.distribute.get_replica_context()
      *answers, applied = _look(
          tf.cast(context.replica_id_in_sync_group, tf.float32), groups)
      found.append(answers)
      return applied
    applied = strategy.run(replica)
    values = session.run([strategy.experimental_local_results(each)
                          for each in applied])
  assert all(answers == found[0] for answers in found)
  return (*found[0], [list(each) for each in values])


def _in_shards(num_shards, groups=None):
  strategy = shared_shards.SharedShards(['/cpu:0'] * num_shards)
  with tf.Graph().as_default(), tf1.Session() as session:
    shards = strategy.build([
        lambda shard=shard: _look(tf.constant(float(shard)), groups)
        for shard in range(num_shards)]).results
    values = session.run([applied for *_, applied in shards])
  assert all(shard[:-1] == shards[0][:-1] for shard in shards)
  return (*shards[0][:-1], [list(each) for each in zip(*values)])


def test_no_sharding_is_one_shard(behavior):
  with tf.Graph().as_default():
    assert _look(2.0, [[0]])[:-1] == (current_shards.Shards, 1, 1)


@pytest.mark.parametrize('find', [
    lambda: _in_replicas(1), lambda: _in_shards(1)])
def test_one_replica_or_shard_is_one_shard(behavior, find):
  assert find() == (current_shards.Shards, 1, 1, [[1], [-1]])


@pytest.mark.parametrize('groups, factor, sums', [
    (None, .25, [1111] * 4), (_GROUPS, .5, [101, 1010, 101, 1010])])
def test_replicas(behavior, groups, factor, sums):
  assert _in_replicas(4, groups) == (
      current_shards.Replicas, 4, factor, [sums, [-1] * 4])


@pytest.mark.parametrize('groups, factor, total', [
    (None, .25, 1111), (_GROUPS, .5, 101)])
def test_shards_that_share_variables_apply_the_sum_of_the_group_of_shard_0(
    behavior, groups, factor, total):
  assert _in_shards(4, groups) == (
      current_shards.SharingReplicas, 4, factor, [[total] * 4, [-1] * 4])


def test_tpu_shards(behavior):
  found = []

  def shard():
    found.append(_look(1.0, _GROUPS)[:-1])
    return tf.constant(0.0)

  with tf.Graph().as_default():
    tf1.tpu.shard(shard, num_shards=4)
  assert found == [(current_shards.TpuShards, 4, .5)]


def test_a_kind_of_shards_knows_its_sum_and_divides_no_loss():
  shards = current_shards.Shards(4)
  assert shards.loss_factor(_MEAN, None) == .25
  with pytest.raises(NotImplementedError):
    shards.sum(tf.constant(1.0))


def test_cross_replica_context_is_refused():
  with tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).scope():
    with pytest.raises(RuntimeError, match='`caller` must be called once per'):
      current_shards.current_shards('caller')
