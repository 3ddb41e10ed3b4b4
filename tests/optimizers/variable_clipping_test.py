# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clipping variables after their update."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

Optimizer = variable_clipping.VariableClippingOptimizer


def _sgd(rate=1.0):
  return tf1.train.GradientDescentOptimizer(rate)


def _run(train_op, fetches, steps=1):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(steps):
      session.run(train_op)
    return session.run(fetches)


@pytest.mark.parametrize('ids', [[0], [0, 0], [0, 0, 0]],
                         ids=['once', 'twice', 'three_times'])
def test_a_row_that_occurs_several_times_is_clipped_once(behavior, ids):
  # [6, 8] has norm 10; clipped to 2 it is [1.2, 1.6]. contrib: 2, 6, 14.
  with tf.Graph().as_default():
    table = tf1.get_variable('table', initializer=[[6.0, 8.0], [30.0, 40.0]])
    gradient = tf.IndexedSlices(tf.zeros([len(ids), 2]), tf.constant(ids))
    optimizer = Optimizer(_sgd(), [(table, [1])], 2.0)
    got = _run(optimizer.apply_gradients([(gradient, table)]), table)
  np.testing.assert_allclose(got[0], [1.2, 1.6], rtol=1e-6)
  # Not in the batch.
  np.testing.assert_array_equal(got[1], [30.0, 40.0])


def test_dense_update_is_clipped_after_it(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[0.0, 1.0], [4.0, 3.0]])
    gradient = tf.constant([[-3.0, -3.0], [0.0, 3.0]])
    # [3, 4] -> [.6, .8]; [4, 0] -> [1, 0].
    got = _run(Optimizer(_sgd(), [(w, 1)], 1.0).apply_gradients(
        [(gradient, w)]), w)
  np.testing.assert_allclose(got, [[0.6, 0.8], [1.0, 0.0]], rtol=1e-6)


def test_slices_along_dim_0_are_columns(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[3.0, 0.3], [4.0, 0.4]])
    gradient = tf.IndexedSlices(tf.zeros([1, 2]), [0])
    got = _run(Optimizer(_sgd(), [(w, [-2])], 1.0).apply_gradients(
        [(gradient, w)]), w)
  np.testing.assert_allclose(got[:, 0], [0.6, 0.8], rtol=1e-6)
  np.testing.assert_array_equal(got[:, 1], np.float32([0.3, 0.4]))


@pytest.mark.parametrize('make', [
    _sgd,
    lambda: tf1.train.MomentumOptimizer(0.5, 0.9),
    lambda: tf1.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    lambda: tf1.train.AdagradOptimizer(0.5),
    lambda: tf1.train.AdamOptimizer(0.5),
    lambda: tf1.train.RMSPropOptimizer(0.5),
    lambda: tf1.train.FtrlOptimizer(0.5),
], ids=['sgd', 'momentum', 'nesterov', 'adagrad', 'adam', 'rmsprop', 'ftrl'])
@pytest.mark.parametrize('max_norm', [1.5, 1e9], ids=['clips', 'never'])
def test_trajectory_is_the_bare_update_then_the_clip(behavior, make, max_norm):
  # The reference: the bare optimizer, and numpy clips between the steps.
  def build(wrap):
    table = tf1.get_variable('table', initializer=tf.reshape(
        tf.range(8.0) / 4, [4, 2]))
    bias = tf1.get_variable('bias', initializer=[1.0, -2.0])
    loss = tf.reduce_sum(tf.square(tf.gather(table, [1, 3, 1]) + bias - 3.0))
    return table, wrap(make(), table).minimize(loss)

  with tf.Graph().as_default():
    table, train_op = build(lambda o, t: o)
    value = tf1.placeholder(tf.float32, [4, 2])
    write = table.assign(value)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(4):
        session.run(train_op)
        rows = session.run(table)
        for row in {1, 3}:
          norm = np.sqrt(np.sum(np.float64(rows[row])**2))
          if norm > max_norm:
            rows[row] = rows[row] * (max_norm / norm)
        session.run(write, {value: rows})
      want = session.run(table)
      names = {v.op.name for v in tf1.global_variables()}
  with tf.Graph().as_default():
    table, train_op = build(lambda o, t: Optimizer(o, [(t, 1)], max_norm))
    got = _run(train_op, table, steps=4)
    assert {v.op.name for v in tf1.global_variables()} == names
  if max_norm > 1e8:
    np.testing.assert_array_equal(got, want)
  else:
    np.testing.assert_allclose(got, want, rtol=2e-5)


def test_adam_moves_rows_outside_the_batch_and_rows_all_clips_them(behavior):
  norms = {}
  for rows in ('touched', 'all'):
    with tf.Graph().as_default():
      table = tf1.get_variable('table', initializer=[[0.9, 0.0], [0.9, 0.0]])
      ids = tf1.placeholder(tf.int32, [1])
      loss = -tf.reduce_sum(tf.gather(table, ids))
      train_op = Optimizer(tf1.train.AdamOptimizer(0.1), [(table, 1)], 1.0,
                           rows=rows).minimize(loss)
      with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(train_op, {ids: [0]})
        for _ in range(4):
          session.run(train_op, {ids: [1]})
        norms[rows] = np.linalg.norm(session.run(table), axis=1)
  # Momentum pushes row 0 on; lazily it is out of the ball until it occurs.
  assert norms['touched'][0] > 1.1
  assert norms['touched'][1] <= 1.000001
  assert np.all(norms['all'] <= 1.000001)


@pytest.mark.parametrize('dims, want', [
    # Rows, the parts being row blocks: each row is in one part.
    ([1], [[0.6, 0.8], [0.0, 0.5], [0.6, 0.8], [0.0, 1.0]]),
    # Columns, split over both parts: norms sqrt(9+0+9+0), sqrt(16+.25+16+4).
    ([0], np.float64([[3, 4], [0, 0.5], [3, 4], [0, 2]])
     / np.sqrt([18, 36.25])),
])
@pytest.mark.parametrize('by_name', [False, True])
def test_partitioned_variable(behavior, dims, want, by_name):
  start = np.float32([[3, 4], [0, 0.5], [3, 4], [0, 2]])

  def initializer(shape, dtype, partition_info):
    del dtype
    first = partition_info.var_offset[0]
    return tf.constant(start[first:first + shape[0]])

  with tf.Graph().as_default():
    table = tf1.get_variable(
        'table', [4, 2], initializer=initializer,
        partitioner=tf1.fixed_size_partitioner(2))
    loss = 0.0 * tf.reduce_sum(tf.convert_to_tensor(table))
    key = 'table' if by_name else table
    got = _run(Optimizer(_sgd(), {key: dims}, 1.0).minimize(loss), list(table))
  np.testing.assert_allclose(np.concatenate(got), want, rtol=1e-6)


def test_keys_of_every_kind(behavior):
  for make_key in (lambda v: v.ref(), lambda v: 'mbed', lambda v: '^embed$',
                   lambda v: (lambda name: name == 'embed')):
    with tf.Graph().as_default():
      embed = tf1.get_variable('embed', initializer=[[6.0, 8.0]])
      other = tf1.get_variable('other', initializer=[[6.0, 8.0]])
      loss = 0.0 * tf.reduce_sum(embed + other)
      got = _run(Optimizer(_sgd(), {make_key(embed): [1]}, 2.0).minimize(loss),
                 [embed, other])
    np.testing.assert_allclose(got[0], [[1.2, 1.6]], rtol=1e-6)
    np.testing.assert_array_equal(got[1], [[6.0, 8.0]])


def test_variable_as_dict_key_where_it_is_one():
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[[6.0, 8.0]], use_resource=False)
    tf1.disable_tensor_equality()
    try:
      optimizer = Optimizer(_sgd(), {v: [1]}, 2.0)
      got = _run(optimizer.minimize(0.0 * tf.reduce_sum(v)), v)
    finally:
      tf1.enable_tensor_equality()
  np.testing.assert_allclose(got, [[1.2, 1.6]], rtol=1e-6)


def test_fraction_clipped_counts_slices(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[3.0], [0.5], [0.1], [2.0]])
    optimizer = Optimizer(_sgd(), [(w, 1)], 1.0)
    train_op = optimizer.minimize(0.0 * tf.reduce_sum(w))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      got = [session.run([optimizer.fraction_clipped, train_op])[0]
             for _ in range(2)]
  # Two of four; then all are within.
  assert got == [0.5, 0.0]


@pytest.mark.parametrize('in_function', [False, True])
def test_eager_and_function(in_function):
  table = tf.Variable([[6.0, 8.0], [6.0, 8.0]])
  optimizer = Optimizer(_sgd(), [(table, 1)], 2.0)

  def train():
    optimizer.minimize(lambda: tf.reduce_sum(0.0 * tf.gather(table, [0, 0])),
                       var_list=[table])

  train = tf.function(train) if in_function else train
  train()
  train()
  np.testing.assert_allclose(table, [[1.2, 1.6], [6.0, 8.0]], rtol=1e-6)


@pytest.mark.parametrize('strategy_fn', [
    lambda: tf.distribute.OneDeviceStrategy('/cpu:0'),
    lambda: tf.distribute.MirroredStrategy(
        ['/cpu:0', '/cpu:1'],
        cross_device_ops=tf.distribute.ReductionToOneDevice()),
], ids=['one_device', 'mirrored'])
def test_replicas_clip_every_copy(behavior, strategy_fn):
  with tf.Graph().as_default():
    strategy = strategy_fn()
    with strategy.scope():
      table = tf1.get_variable('table', initializer=tf.fill([3, 2], 6.0))
      dense = tf1.get_variable('dense', initializer=[[6.0, 8.0]])
      optimizer = Optimizer(_sgd(), {'table': 1, 'dense': 1}, 2.0)

      def replica_step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        ids = tf.reshape(tf.cast(replica, tf.int32), [1])
        loss = 0.0 * (tf.reduce_sum(tf.gather(table, ids))
                      + tf.reduce_sum(dense))
        return optimizer.minimize(loss)

      train_op = strategy.group(
          strategy.extended.call_for_each_replica(replica_step))
      init = tf1.global_variables_initializer()
    with tf1.Session(
        config=tf1.ConfigProto(device_count={'CPU': 2})) as session:
      session.run(init)
      session.run(train_op)
      for copy in session.run(strategy.experimental_local_results(table)):
        touched = strategy.num_replicas_in_sync
        np.testing.assert_allclose(
            np.linalg.norm(copy[:touched], axis=1), 2.0, rtol=1e-6)
        np.testing.assert_array_equal(copy[touched:], 6.0)
      for copy in session.run(strategy.experimental_local_results(dense)):
        np.testing.assert_allclose(copy, [[1.2, 1.6]], rtol=1e-6)


def test_lock_lets_the_update_through(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[6.0, 8.0]])
    optimizer = Optimizer(_sgd(), [(w, 1)], 2.0, use_locking=True)
    got = _run(optimizer.minimize(0.0 * tf.reduce_sum(w)), w, steps=2)
  np.testing.assert_allclose(got, [[1.2, 1.6]], rtol=1e-6)


def test_update_and_clip_are_made_under_one_lock(behavior):
  with tf.Graph().as_default() as graph:
    w = tf1.get_variable('w', initializer=[[6.0, 8.0]])
    optimizer = Optimizer(_sgd(), [(w, 1)], 2.0, use_locking=True)
    before = set(graph.get_operations())
    train_op = optimizer.apply_gradients([(tf.zeros([1, 2]), w)])
    new = [op for op in graph.get_operations() if op not in before]
    lock, = (op for op in new if op.type == 'MutexLock')
    release, = (op for op in new if op.type == 'ConsumeMutexLock')
    update, = (op for op in new if op.type.endswith('ApplyGradientDescent'))
    clip = next(op for op in new if op.type.startswith(('Merge', 'Stateful')))
  assert _follows(update, lock) and _follows(clip, update)
  assert _follows(release, clip)
  assert train_op is release or _follows(train_op, release)


def _follows(op, other):
  """Whether `op` waits for `other`."""
  seen, waiting = set(), [op]
  while waiting:
    op = waiting.pop()
    if op not in seen:
      seen.add(op)
      waiting += [*(t.op for t in op.inputs), *op.control_inputs]
  return other in seen


def test_an_exported_graph_can_be_imported_and_trained(behavior, tmp_path):
  path = str(tmp_path / 'graph.meta')
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[6.0, 8.0]])
    Optimizer(_sgd(), [(w, 1)], 2.0).apply_gradients(
        [(tf.zeros([1, 2]), w)], name='train')
    tf1.train.export_meta_graph(path)
  with tf.Graph().as_default():
    tf1.train.import_meta_graph(path, clear_devices=True)
    got = _run('train', tf1.trainable_variables()[0].read_value())
  np.testing.assert_allclose(got, [[1.2, 1.6]], rtol=1e-6)


@pytest.mark.parametrize('max_norm, error', [
    (0, ValueError), (-1.0, ValueError), (float('inf'), ValueError),
    (float('nan'), ValueError), ('1', TypeError), (None, TypeError),
    (True, TypeError)])
def test_bad_max_norm(max_norm, error):
  with pytest.raises(error, match='`max_norm` must .*Received: '):
    Optimizer(_sgd(), {'v': 1}, max_norm)


def test_unknown_rows_is_an_error():
  with pytest.raises(ValueError, match='`rows` must be .*Received: .some'):
    Optimizer(_sgd(), {'v': 1}, 1.0, rows='some')


def test_variable_of_another_graph_is_an_error_with_near_names(behavior):
  with tf.Graph().as_default():
    stranger = tf1.get_variable('embedding', initializer=[[1.0]])
  with tf.Graph().as_default():
    w = tf1.get_variable('embeddings', initializer=[[1.0]])
    with pytest.raises(ValueError, match="embedding'.*Near.*embeddings"):
      Optimizer(_sgd(), [(stranger, 1)], 1.0).minimize(tf.reduce_sum(w))


def test_variable_without_gradient_is_left_alone(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[6.0, 8.0]])
    other = tf1.get_variable('other', initializer=[[6.0, 8.0]])
    optimizer = Optimizer(_sgd(), {'w|other': 1}, 2.0)
    got = _run(optimizer.minimize(0.0 * tf.reduce_sum(w)), [w, other])
  np.testing.assert_allclose(got[0], [[1.2, 1.6]], rtol=1e-6)
  np.testing.assert_array_equal(got[1], [[6.0, 8.0]])


def test_defaults_are_those_of_contrib():
  found = inspect.signature(variable_clipping.VariableClippingOptimizer)
  assert [(name, each.default) for name, each in found.parameters.items()
          if each.kind is each.POSITIONAL_OR_KEYWORD][3:] == [
              ('use_locking', False), ('colocate_clip_ops_with_vars', False),
              ('name', 'VariableClipping')]


def test_the_bound_may_be_a_tensor(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    bound = tf1.placeholder(tf.float32, [])
    weight = tf1.get_variable('weight', initializer=[[6.0, 8.0], [0.3, 0.4]])
    step = variable_clipping.VariableClippingOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), {weight: [1]},
        bound).apply_gradients([(tf.zeros([2, 2]), weight)])
    session.run(tf1.global_variables_initializer())
    session.run(step, {bound: 20.0})
    np.testing.assert_allclose(
        session.run(weight), [[6.0, 8.0], [0.3, 0.4]], rtol=1e-6)
    session.run(step, {bound: 2.0})
    np.testing.assert_allclose(
        session.run(weight), [[1.2, 1.6], [0.3, 0.4]], rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match='`max_norm` must'):
      session.run(step, {bound: 0.0})
