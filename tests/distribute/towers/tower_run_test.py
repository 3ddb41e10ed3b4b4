# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of towers built in one graph: sums, order, disagreement."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import shard_towers
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_HALVES = tower_weights.TowerWeights([.5, .5], [.5, .5])


def _build(fn, weights=_HALVES):
  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    return strategy.build_towers(fn, weights)


def _weight(name='w', value=0.0):
  initializer = tf1.initializers.constant(value)
  return tf1.get_variable(name, [], initializer=initializer)


def test_batch_norm_statistics_are_the_mean_over_rows(behavior):
  # Means 1 and 5 with 3 and 1 rows: 2; momentum .9: 0 + .1 * 2.
  def fn(tower):
    x = tf.fill([1, 2], 5.0) if tower else tf.fill([3, 2], 1.0)
    tf1.layers.batch_normalization(x, training=True, momentum=.9)
    return tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)

  with tf.Graph().as_default(), tf1.Session() as session:
    _, updates = _build(fn, tower_weights.TowerWeights([.75, .25], [.75, .25]))
    assert [len(ops) for ops in updates] == [2, 2]
    session.run(tf1.global_variables_initializer())
    # As a model_fn would: every op of the collection, each tower's.
    session.run(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS))
    mean, = [v for v in tf1.global_variables() if 'moving_mean' in v.name]
    np.testing.assert_allclose(session.run(mean), [.2, .2], rtol=1e-6)


def test_all_reduce_passes_gradients_to_every_tower(behavior):
  # total = .5 s + .5 s with s = 2 w + 3 w.
  def fn(tower):
    w = _weight(value=1.0)
    context = tf.distribute.get_replica_context()
    s = context.all_reduce('SUM', (tower + 2.0) * w)
    return s, tf.gradients(s, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, results = _build(fn)
    session.run(tf1.global_variables_initializer())
    # A tower's own, times its weight later: (4 + 6) / 2.
    assert session.run(results) == [(5.0, 4.0), (5.0, 6.0)]


@pytest.mark.parametrize('reduce_op, parts', (('SUM', 5), ('MEAN', 2.25)))
def test_gradient_of_all_reduce_with_uneven_weights(
    behavior, reduce_op, parts):
  # s = 2 w + 3 w, or .75 * 2 w + .25 * 3 w; loss = .9 * s^2 + .1 * 2 s^2.
  def fn(tower):
    w = _weight(value=1.0)
    context = tf.distribute.get_replica_context()
    s = context.all_reduce(reduce_op, (tower + 2.0) * w)
    return tf.gradients((tower + 1.0) * s * s, [w])[0], s

  with tf.Graph().as_default(), tf1.Session() as session:
    _, results = _build(fn, tower_weights.TowerWeights([.75, .25], [.9, .1]))
    # Outside of the towers each s is a tensor as any other.
    outside = tf.gradients(results[0][1], tf1.trainable_variables())
    session.run(tf1.global_variables_initializer())
    expected = 1.1 * 2 * parts ** 2
    (own, s), (other, _) = session.run(results)
    np.testing.assert_allclose(
        [.9 * own + .1 * other, s], [expected, parts], rtol=1e-6)
    assert session.run(outside) == [parts]


def test_each_tower_sees_its_own_collections(behavior):
  def fn(tower):
    before = len(tf1.trainable_variables())
    tf1.layers.dense(tf.ones([1, 1]), 1)
    after = len(tf1.trainable_variables())
    tf1.losses.add_loss(tf.constant(1.0))
    return before, after, len(tf1.losses.get_losses()), tower

  with tf.Graph().as_default():
    _, results = _build(fn)
    assert results == [(0, 2, 1, 0), (0, 2, 1, 1)]
    assert len(tf1.trainable_variables()) == 2
    assert len(tf1.losses.get_losses()) == 2


def test_variables_made_before_are_found(behavior):
  with tf.Graph().as_default():
    outer = tf1.get_variable('outer', [])

    def fn(tower):
      del tower
      with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
        return tf1.get_variable('outer', [])

    _, results = _build(fn)
    assert all(result is outer for result in results)


def _different_number_of_updates(tower):
  w = _weight()
  for _ in range(0 if tower else 2):
    tf1.train.GradientDescentOptimizer(.1).minimize(w * w)


def _different_optimizers(tower):
  w = _weight()
  make = (tf1.train.GradientDescentOptimizer if tower
          else tf1.train.AdamOptimizer)
  make(.1).minimize(w * w)


@pytest.mark.parametrize('fn, match', (
    # contrib trained nothing, silently.
    (_different_number_of_updates, 'tower 0 is at GradientDescent.*; '
     'tower 1 is at its end'),
    (_different_optimizers,
     'tower 0 is at Adam.*; tower 1 is at GradientDescent')))
def test_towers_that_disagree_are_named(behavior, fn, match):
  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match=match):
      _build(fn)


@pytest.mark.parametrize('fn, match', (
    (lambda tower: _weight('b' if tower else 'a'), '`a:0`.*in tower 0, `b`'),
    (lambda tower: [_weight(str(i)) for i in range(2 - tower)],
     'makes `1:0` in tower 0 and not in tower 1'),
    (lambda tower: [_weight(f'v{i}') for i in range(1 + tower)],
     'makes `v1` in tower 1 and not in tower 0')))
def test_different_variables_are_named(behavior, fn, match):
  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match=match):
      _build(fn)


def test_error_of_the_user_comes_through(behavior):
  def fn(tower):
    if tower:
      raise KeyError('mine')
    w = _weight()
    return tf.gradients(w * w, [w])

  with tf.Graph().as_default():
    with pytest.raises(KeyError, match='mine'):
      _build(fn)


def test_more_than_ten_keras_layers(behavior):
  def fn(tower):
    del tower
    x = tf.ones([1, 1])
    for _ in range(12):
      x = tf.keras.layers.Dense(1)(x)
    return x

  with tf.Graph().as_default():
    _build(fn)
    assert len(tf1.global_variables()) == 24


def test_an_optimizer_with_accumulators_is_refused(behavior):
  def fn(tower):
    optimizer = tf1.train.SyncReplicasOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, 1)
    return optimizer.minimize(_weight() ** 2, step)

  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    with pytest.raises(RuntimeError, match='SyncReplicasOptimizer.*Leave it'):
      _build(fn)


def test_a_single_tower_updates_as_it_likes(behavior):
  def fn(unused_tower):
    w = tf1.get_variable('w', initializer=[1.0, 2.0])
    tf1.train.SyncReplicasOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, 1).minimize(
            tf.reduce_sum(w), tf1.train.get_or_create_global_step())
    return tf.raw_ops.ResourceScatterAdd(
        resource=w.handle, indices=[1], updates=[5.0])

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = shard_towers.ShardTowers(['/cpu:0'])
    with strategy.scope():
      _, (scatter,) = strategy.build_towers(
          fn, tower_weights.TowerWeights([1.0], [1.0]))
    session.run(tf1.global_variables_initializer())
    session.run(scatter)
    w, = tf1.trainable_variables()
    assert session.run(w).tolist() == [1, 7]


@pytest.mark.parametrize('groups, added', [
    (None, 2.5), ([[0, 1]], 2.5), ([[0], [1]], 2.0), ([[1], [0]], 2.0)])
def test_an_addition_is_the_mean_of_the_group_of_the_first_tower(
    behavior, groups, added):
  def fn(tower):
    v = tf1.get_variable('v', initializer=1.0, trainable=False)
    return v.assign_add(tf.constant(3.0 if tower else 2.0))

  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      _, (first, _) = strategy.build_towers(fn, tower_weights.TowerWeights(
          [.5, .5], [1.0, 1.0], groups))
    session.run(tf1.global_variables_initializer())
    session.run(first)
    assert session.run(tf1.global_variables()[0]) == 1.0 + added
