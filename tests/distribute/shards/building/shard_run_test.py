# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of shards built in one graph: sums, order, disagreement."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

def _build(fn, loss_weights=None, shares=None, groups=None):
  return shared_shards.SharedShards(
      ['/cpu:0', '/cpu:1'], loss_weights, shares, groups).build(
          [functools.partial(fn, shard) for shard in range(2)]).results


def _weight(name='w', value=0.0):
  initializer = tf1.initializers.constant(value)
  return tf1.get_variable(name, [], initializer=initializer)


def test_batch_norm_statistics_are_the_mean_over_rows(behavior):
  # Means 1 and 5 with 3 and 1 rows: 2; momentum .9: 0 + .1 * 2.
  def fn(shard):
    x = tf.fill([1, 2], 5.0) if shard else tf.fill([3, 2], 1.0)
    tf1.layers.batch_normalization(x, training=True, momentum=.9)
    return tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)

  with tf.Graph().as_default(), tf1.Session() as session:
    updates = _build(fn, [.75, .25], [.75, .25])
    assert [len(ops) for ops in updates] == [2, 2]
    session.run(tf1.global_variables_initializer())
    # As a model_fn would: every op of the collection, each shard's.
    session.run(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS))
    mean, = [v for v in tf1.global_variables() if 'moving_mean' in v.name]
    np.testing.assert_allclose(session.run(mean), [.2, .2], rtol=1e-6)


def test_all_reduce_passes_gradients_to_every_shard(behavior):
  # total = .5 s + .5 s with s = 2 w + 3 w.
  def fn(shard):
    w = _weight(value=1.0)
    context = tf.distribute.get_replica_context()
    s = context.all_reduce('SUM', (shard + 2.0) * w)
    return s, tf.gradients(s, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    results = _build(fn)
    session.run(tf1.global_variables_initializer())
    # A shard's own, times its weight later: (4 + 6) / 2.
    assert session.run(results) == [(5.0, 4.0), (5.0, 6.0)]


@pytest.mark.parametrize('reduce_op, parts', (('SUM', 5), ('MEAN', 2.25)))
def test_gradient_of_all_reduce_with_uneven_shares(
    behavior, reduce_op, parts):
  # s = 2 w + 3 w, or .75 * 2 w + .25 * 3 w; loss = (s^2 + 2 s^2) / 2.
  def fn(shard):
    w = _weight(value=1.0)
    context = tf.distribute.get_replica_context()
    s = context.all_reduce(reduce_op, (shard + 2.0) * w)
    return tf.gradients((shard + 1.0) * s * s, [w])[0], s

  with tf.Graph().as_default(), tf1.Session() as session:
    results = _build(fn, shares=[.75, .25])
    # Outside of the shards each s is a tensor as any other.
    outside = tf.gradients(results[0][1], tf1.trainable_variables())
    session.run(tf1.global_variables_initializer())
    expected = 1.5 * 2 * parts ** 2
    (own, s), (other, _) = session.run(results)
    np.testing.assert_allclose(
        [(own + other) / 2, s], [expected, parts], rtol=1e-6)
    assert session.run(outside) == [parts]


def test_each_shard_sees_its_own_collections(behavior):
  def fn(shard):
    before = len(tf1.trainable_variables())
    tf1.layers.dense(tf.ones([1, 1]), 1)
    after = len(tf1.trainable_variables())
    tf1.losses.add_loss(tf.constant(1.0))
    return before, after, len(tf1.losses.get_losses()), shard

  with tf.Graph().as_default():
    results = _build(fn)
    assert results == [(0, 2, 1, 0), (0, 2, 1, 1)]
    assert len(tf1.trainable_variables()) == 2
    assert len(tf1.losses.get_losses()) == 2


def test_variables_made_before_are_found(behavior):
  with tf.Graph().as_default():
    outer = tf1.get_variable('outer', [])

    def fn(shard):
      del shard
      with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
        return tf1.get_variable('outer', [])

    results = _build(fn)
    assert all(result is outer for result in results)


def _different_number_of_updates(shard):
  w = _weight()
  for _ in range(0 if shard else 2):
    tf1.train.GradientDescentOptimizer(.1).minimize(w * w)


def _different_optimizers(shard):
  w = _weight()
  make = (tf1.train.GradientDescentOptimizer if shard
          else tf1.train.AdamOptimizer)
  make(.1).minimize(w * w)


def _different_calls(shard):
  a = tf1.get_variable('a', [], initializer=tf1.initializers.zeros())
  if shard:
    tfplugin.cross_replica_sum(a + 0.0)
  else:
    a.assign(1.0)


@pytest.mark.parametrize('fn, match', (
    (_different_calls,
     'shard 0 is at `assign` of `a:0`; shard 1 is at a sum over shards'),
    # contrib trained nothing, silently.
    (_different_number_of_updates, 'shard 0 is at GradientDescent.*; '
     'shard 1 is at its end'),
    (_different_optimizers,
     'shard 0 is at Adam.*; shard 1 is at GradientDescent')))
def test_shards_that_disagree_are_named(behavior, fn, match):
  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match=match):
      _build(fn)


@pytest.mark.parametrize('fn, match', (
    (lambda shard: _weight('b' if shard else 'a'), '`a:0`.*in shard 0, `b`'),
    (lambda shard: [_weight(str(i)) for i in range(2 - shard)],
     'makes `1:0` in shard 0 and not in shard 1'),
    (lambda shard: [_weight(f'v{i}') for i in range(1 + shard)],
     'makes `v1` in shard 1 and not in shard 0')))
def test_different_variables_are_named(behavior, fn, match):
  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match=match):
      _build(fn)


def test_error_of_the_user_comes_through(behavior):
  def fn(shard):
    if shard:
      raise KeyError('mine')
    w = _weight()
    return tf.gradients(w * w, [w])

  with tf.Graph().as_default():
    with pytest.raises(KeyError, match='mine'):
      _build(fn)


def test_more_than_ten_keras_layers(behavior):
  def fn(shard):
    del shard
    x = tf.ones([1, 1])
    for _ in range(12):
      x = tf.keras.layers.Dense(1)(x)
    return x

  with tf.Graph().as_default():
    _build(fn)
    assert len(tf1.global_variables()) == 24


def test_an_optimizer_with_accumulators_is_refused(behavior):
  def fn(shard):
    optimizer = tf1.train.SyncReplicasOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, 1)
    return optimizer.minimize(_weight() ** 2, step)

  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    with pytest.raises(RuntimeError, match='SyncReplicasOptimizer.*Leave it'):
      _build(fn)


def test_a_single_shard_updates_as_it_likes(behavior):
  def fn():
    w = tf1.get_variable('w', initializer=[1.0, 2.0])
    tf1.train.SyncReplicasOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, 1).minimize(
            tf.reduce_sum(w), tf1.train.get_or_create_global_step())
    return tf.raw_ops.ResourceScatterAdd(
        resource=w.handle, indices=[1], updates=[5.0])

  with tf.Graph().as_default(), tf1.Session() as session:
    scatter, = shared_shards.SharedShards(['/cpu:0']).build([fn]).results
    session.run(tf1.global_variables_initializer())
    session.run(scatter)
    w, = tf1.trainable_variables()
    assert session.run(w).tolist() == [1, 7]


@pytest.mark.parametrize('groups, added', [
    (None, 2.5), ([[0, 1]], 2.5), ([[0], [1]], 2.0), ([[1], [0]], 2.0)])
def test_an_addition_is_the_mean_of_the_group_of_the_first_shard(
    behavior, groups, added):
  def fn(shard):
    v = tf1.get_variable('v', initializer=1.0, trainable=False)
    return v.assign_add(tf.constant(3.0 if shard else 2.0))

  with tf.Graph().as_default(), tf1.Session() as session:
    first, _ = _build(fn, [1.0, 1.0], groups=groups)
    session.run(tf1.global_variables_initializer())
    session.run(first)
    assert session.run(tf1.global_variables()[0]) == 1.0 + added


def _after_write(method, values):
  """Returns what a variable of 1 holds after each shard wrote its value."""
  def fn(shard):
    v = tf1.get_variable('v', initializer=1.0, trainable=False)
    return getattr(v, method)(tf.constant(values[shard]))

  with tf.Graph().as_default(), tf1.Session() as session:
    first, _ = _build(fn, [1.0, 1.0])
    session.run(tf1.global_variables_initializer())
    session.run(first)
    return session.run(tf1.global_variables()[0])


def test_additions_are_averaged(behavior):
  # 1 + (2 + 3) / 2.
  assert _after_write('assign_add', [2.0, 3.0]) == 3.5


def test_values_that_cannot_be_averaged_are_refused(behavior):
  with pytest.raises(ValueError, match='`assign` in several shards'):
    _after_write('assign', [2.0, 3.0])


def test_a_gradient_through_a_total_is_that_of_all_shards(behavior):
  # Losses s and 2 s of s = 1 + 9, weights of one half: a shard's own gradient,
  # times its weight, is d/dx of (s + 2 s) / 2.
  def fn(shard):
    x = tf.constant(3.0 if shard else 1.0)
    s = tf.distribute.get_replica_context().all_reduce('SUM', x * x)
    return tf.gradients((shard + 1.0) * s, [x])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    gradients = _build(fn)
    assert session.run(gradients) == [2 * 1 * 3.0, 2 * 3 * 3.0]
