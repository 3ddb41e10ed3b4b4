# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the values of towers, each of its rows, are in the batch."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import shard_towers
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1

_ROWS = ([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]], [[4.0, 8.0]])
_SHARES = [.75, .25]
_WEIGHTS = tower_weights.TowerWeights(_SHARES, _SHARES, by_terms=True)


def _build(fn):
  """Builds `fn` of the rows of each of two towers."""
  batch = [tf.constant(rows) for rows in _ROWS]
  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    return strategy.build_towers(
        lambda tower: fn(batch[tower]), _WEIGHTS, batch=batch)


@pytest.mark.parametrize('reduce, expected', (
    (tf.reduce_sum, 36.0), (tf.reduce_mean, 4.5)))
@pytest.mark.parametrize('with_tape', (False, True))
def test_gradients_are_those_of_all_rows(
    behavior, reduce, expected, with_tape):
  # d/dw of w times the sum 1 + ... + 8, or their mean.
  def fn(x):
    w = tf1.get_variable('w', initializer=3.0)
    with tf.GradientTape() as tape:
      loss = w * reduce(x)
    return tape.gradient(loss, w) if with_tape else tf.gradients(loss, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn)
    session.run(tf1.global_variables_initializer())
    assert session.run(gradients) == [expected] * 2


def test_gradients_of_what_is_no_variable_are_the_towers_own(behavior):
  def fn(x):
    tf1.get_variable('w', initializer=3.0)
    with tf.GradientTape() as tape:
      tape.watch(x)
      total = tf.reduce_sum(x * x)
    return tf.gradients(tf.reduce_sum(x * x), [x])[0], tape.gradient(total, x)

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn)
    for own, rows in zip(session.run(gradients), _ROWS):
      for gradient in own:
        np.testing.assert_array_equal(gradient, 2 * np.array(rows))


def _reduced(fn):
  """Returns what a value of each tower is in the batch, evaluated."""
  with tf.Graph().as_default(), tf1.Session() as session:
    run, values = _build(fn)
    found = run.reduced(values, _SHARES)
    return found if found is None else session.run(found).tolist()


@pytest.mark.parametrize('fn, expected', (
    (tf.reduce_sum, 36.0),
    (tf.reduce_mean, 4.5),
    (lambda x: tf.reduce_sum(x, 0), [10.0, 26.0]),
    (lambda x: tf.reduce_mean(x, 0), [2.5, 6.5]),
    (lambda x: tf.shape(x)[0], 4),
    (lambda x: tf.constant(7.0), 7.0),
    (lambda x: tf.constant([7.0, 8.0]), [7.0, 8.0]),
    # With a value for each row: to be put together.
    (lambda x: x, None),
    (lambda x: tf.reduce_sum(x, 1), None),
    (lambda x: 'text', None),
))
def test_reduced(behavior, fn, expected):
  assert _reduced(fn) == expected


def test_what_is_neither_a_sum_nor_a_mean_is_not_reduced(behavior):
  with pytest.raises(ValueError, match='must be a sum or a mean over the rows'):
    _reduced(lambda x: tf.sqrt(tf.reduce_sum(x)))


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


def test_a_metric_that_counts_the_towers_in_a_loop_is_refused(behavior):
  def fn(unused_x):
    v = tf1.get_variable(
        'v', initializer=0.0, trainable=False, use_resource=True,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES,
                     tf1.GraphKeys.METRIC_VARIABLES])

    def body(i):
      with tf.control_dependencies([v.assign_add(1.0, read_value=False)]):
        return [i + 1]

    return tf.while_loop(lambda i: i < 3, body, [0])

  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match=(
        'metric must be updated with sums.*for `v:0`. Update it outside')):
      _build(fn)


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
          [.5, .5], [1.0, 1.0], groups), sum_gradients=False)
    session.run(tf1.global_variables_initializer())
    session.run(first)
    assert session.run(tf1.global_variables()[0]) == 1.0 + added
