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


def test_tf_gradients_are_the_weighted_sum_in_every_tower(behavior):
  # d/dw of (tower + 1) * w, weights 1/4 and 3/4: 1 * 1/4 + 2 * 3/4.
  def fn(tower):
    w = _weight()
    return tf.gradients((tower + 1.0) * w, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn, tower_weights.TowerWeights([.5, .5], [.25, .75]))
    assert session.run(gradients) == [1.75, 1.75]


def test_gradient_of_a_tower_without_rows_counts_as_0(behavior):
  def fn(tower):
    w = _weight()
    return tf.gradients(w * (np.nan if tower else 2.0), [w])[0]

  for zero in (0.0, None):
    with tf.Graph().as_default(), tf1.Session() as session:
      none = tf.constant(0.0) if zero is None else zero
      one = tf.constant(1.0) if zero is None else 1.0
      weights = tower_weights.TowerWeights([one, none], [one, none])
      _, gradients = _build(fn, weights)
      assert session.run(gradients) == [2.0, 2.0]


def test_sparse_gradients_are_concatenated(behavior):
  # Tower 0 looks rows 0 and 2 up, tower 1 row 2.
  def fn(tower):
    table = tf1.get_variable('table', [4, 1],
                             initializer=tf1.initializers.ones())
    rows = tf.nn.embedding_lookup(table, [2] if tower else [0, 2])
    loss = tf.reduce_sum(rows)
    gradient = tf.gradients(loss, [table])[0]
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    return gradient, optimizer.apply_gradients([(gradient, table)])

  with tf.Graph().as_default(), tf1.Session() as session:
    _, results = _build(fn)
    gradient = results[1][0]
    assert isinstance(gradient, tf.IndexedSlices)
    session.run(tf1.global_variables_initializer())
    assert session.run([gradient.indices, gradient.values])[0].tolist() == [
        0, 2, 2]
    session.run(results[0][1])
    table = session.run(tf1.global_variables()[0])
    # 1 - .5 for row 0; 1 - .5 - .5 for row 2.
    assert table.ravel().tolist() == [.5, 1, 0, 1]


def test_gradients_through_control_flow(behavior):
  def fn(tower):
    w = _weight(value=3.0)
    loss = tf.cond(tf.constant(tower) > 0, lambda: w * w, lambda: 4.0 * w)
    _, total = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t + loss),
                             [0, 0.0])
    return tf.gradients(total, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn)
    session.run(tf1.global_variables_initializer())
    # Two rounds of 4, and two of 2 w = 6, halved.
    assert session.run(gradients) == [10.0, 10.0]


def test_towers_share_a_variable_that_the_body_of_a_loop_makes(behavior):
  # As an RNN cell under `dynamic_rnn` does.
  def fn(tower):
    def body(i, total):
      return i + 1, total * _weight(value=2.0)

    _, cube = tf.while_loop(lambda i, _: i < 3, body, [0, tower + 1.0])
    return tf.gradients(cube, tf1.trainable_variables())[0]

  # As in Estimator: the gradient reads the shape of a handle elsewhere.
  config = tf1.ConfigProto(allow_soft_placement=True)
  with tf.Graph().as_default(), tf1.Session(config=config) as session:
    _, gradients = _build(fn, tower_weights.TowerWeights([.5, .5], [.25, .75]))
    session.run(tf1.global_variables_initializer())
    assert [v.name for v in tf1.global_variables()] == ['w:0']
    # 3 w^2 = 12, times 1/4 * 1 + 3/4 * 2.
    assert session.run(gradients) == [21.0, 21.0]


def test_a_gradient_tape_sums_over_the_towers(behavior):
  # 2 w = 4, times 1/4 * 1 + 3/4 * 2.
  def fn(tower):
    w = _weight(value=2.0)
    with tf.GradientTape() as tape:
      loss = (tower + 1.0) * w * w
    return tape.gradient(loss, w)

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn, tower_weights.TowerWeights([.5, .5], [.25, .75]))
    session.run(tf1.global_variables_initializer())
    assert session.run(gradients) == [7.0, 7.0]


def test_a_recomputed_function_has_the_gradient_of_all_towers(behavior):
  # 2 w = 6, times 1/4 * 1 + 3/4 * 2.
  def fn(tower):
    w = _weight(value=3.0)
    loss = tf.recompute_grad(lambda x: x * w * w)(tf.constant(tower + 1.0))
    return tf.gradients(loss, [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradients = _build(fn, tower_weights.TowerWeights([.5, .5], [.25, .75]))
    session.run(tf1.global_variables_initializer())
    assert session.run(gradients) == [10.5, 10.5]


def test_assignment_takes_place_once_with_the_value_of_tower_0(behavior):
  def fn(tower):
    counter = tf1.get_variable('counter', [], trainable=False,
                               initializer=tf1.initializers.zeros())
    return tf1.assign_add(counter, tower + 1.0)

  with tf.Graph().as_default(), tf1.Session() as session:
    _, results = _build(fn)
    session.run(tf1.global_variables_initializer())
    session.run(results[0])
    session.run(results[0])
    assert session.run(tf1.global_variables()[0]) == 2.0


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


def test_synchronized_batch_norm_has_the_gradient_of_the_batch(behavior):
  # Rows of towers: 3 and 1. One device normalises all four.
  x = np.array([[1., 2], [3, 1], [0, 5], [2, 2]], np.float32)

  def fn(tower, rows=(slice(0, 3), slice(3, 4))):
    w = tf1.get_variable('w', initializer=tf.constant([[1., .5], [-1., 2.]]))
    layer = tf.keras.layers.BatchNormalization(synchronized=True)
    y = layer(tf.constant(x[rows[tower]]) @ w, training=True)
    loss = tf.reduce_mean(tf.square(y[:, 0] * y[:, 1] - 1))
    return tf.gradients(loss, [w])[0]

  values = []
  for in_towers in (False, True):
    with tf.Graph().as_default(), tf1.Session() as session:
      gradient = (_build(fn, tower_weights.TowerWeights([.75, .25], [.75, .25])
                         )[1][0] if in_towers else fn(0, [slice(0, 4)]))
      session.run(tf1.global_variables_initializer())
      values.append(session.run(gradient))
  np.testing.assert_allclose(values[1], values[0], rtol=1e-4, atol=1e-5)


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
    assert session.run(results) == [(5.0, 5.0)] * 2


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
    np.testing.assert_allclose(
        session.run(results), [(expected, parts)] * 2, rtol=1e-6)
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


def _different_gradients(tower):
  w, u = _weight('w'), _weight('u')
  tf.gradients(u * u if tower else w * w, [w, u])


@pytest.mark.parametrize('fn, match', (
    # contrib trained nothing, silently.
    (_different_number_of_updates, 'tower 0 is at the gradient of `w:0`; '
     'tower 1 is at its end'),
    (_different_optimizers,
     'tower 0 is at Adam.*; tower 1 is at GradientDescent'),
    (_different_gradients, '`w:0`; tower 1 is at the gradient of `u:0`')))
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
