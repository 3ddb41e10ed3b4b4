# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the kinds of shards: what is found where, and how each applies."""

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shards_here
from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1

_MEAN = tf1.losses.Reduction.MEAN
_GROUPS = [[1, 3], [2, 0]]


class _Recorder:
  """Records the way in which gradients are applied, and their values."""

  takes_sums = False

  def apply(self, grads_and_vars):
    return 'apply', _values(grads_and_vars)

  def apply_once(self, grads_and_vars):
    return 'apply_once', _values(grads_and_vars)

  def per_copy(self):
    return lambda grads_and_vars: ('per_copy', _values(grads_and_vars))


def _values(grads_and_vars):
  return [tf.constant(-1.0) if g is None else g for g, _ in grads_and_vars]


def _look(index, groups):
  """Returns what a shard with gradient 10 ** index finds."""
  shards = shards_here.shards_here('caller')
  variable = tf1.get_variable('w', initializer=1.0, use_resource=True)
  way, applied = shards.apply(
      _Recorder(), [(10.0 ** index, variable), (None, variable)], groups)
  return (type(shards), shards.size, shards.loss_factor(_MEAN, groups), way,
          applied)


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
    _, shards = strategy.build(
        lambda shard: _look(tf.constant(float(shard)), groups))
    values = session.run([applied for *_, applied in shards])
  assert all(shard[:-1] == shards[0][:-1] for shard in shards)
  return (*shards[0][:-1], [list(each) for each in zip(*values)])


def test_no_sharding_is_one_shard(behavior):
  with tf.Graph().as_default():
    assert _look(2.0, [[0]])[:-1] == (shards_here.OneShard, 1, 1, 'apply')


@pytest.mark.parametrize('find', [
    lambda: _in_replicas(1), lambda: _in_shards(1)])
def test_one_replica_or_shard_is_one_shard(behavior, find):
  assert find() == (shards_here.OneShard, 1, 1, 'apply', [[1], [-1]])


@pytest.mark.parametrize('groups, factor, way, applied', [
    (None, .25, 'apply_once', [1, 10, 100, 1000]),
    (_GROUPS, .5, 'per_copy', [101, 1010, 101, 1010])])
def test_replicas(behavior, groups, factor, way, applied):
  assert _in_replicas(4, groups) == (
      shards_here.Replicas, 4, factor, way, [applied, [-1] * 4])


@pytest.mark.parametrize('groups, factor, total', [
    (None, .25, 1111), (_GROUPS, .5, 101)])
def test_shards_that_share_variables_apply_the_sum_of_the_group_of_shard_0(
    behavior, groups, factor, total):
  assert _in_shards(4, groups) == (
      shards_here.SharingReplicas, 4, factor, 'apply',
      [[total] * 4, [-1] * 4])


def test_tpu_shards(behavior):
  found = []

  def shard():
    found.append(_look(1.0, _GROUPS)[:-1])
    return tf.constant(0.0)

  with tf.Graph().as_default():
    tf1.tpu.shard(shard, num_shards=4)
  assert found == [(shards_here.TpuShards, 4, .5, 'apply')]


def test_a_kind_of_shards_knows_its_sum_and_divides_no_loss():
  shards = shards_here.Shards(4)
  assert shards.loss_factor(_MEAN, None) == .25
  with pytest.raises(NotImplementedError):
    shards.sum(tf.constant(1.0))


def test_cross_replica_context_is_refused():
  with tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).scope():
    with pytest.raises(RuntimeError, match='`caller` must be called once per'):
      shards_here.shards_here('caller')
