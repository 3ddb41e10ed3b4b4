# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding models as recommenders and language models have them.

Each function returns a model_fn for the optimizer of a form. As in
`packed_strangers`, no sum has more than two terms.
"""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def _ids(values, shape=(None,), dtype=np.int64):
  return tf1.placeholder_with_default(np.array(values, dtype), shape)


def _data(*shape, seed=1):
  return tf1.placeholder_with_default(np.random.RandomState(
      seed).standard_normal(shape).astype(np.float32), shape)


def _table(name, *shape, seed=0, **kwargs):
  return tf1.get_variable(
      name, shape or [8, 4], initializer=tf1.random_uniform_initializer(
          -1.0, 1.0, seed=seed + 1), **kwargs)


def _tables(*names, **kwargs):
  return [_table(name, seed=seed, **kwargs)
          for seed, name in enumerate(names)]


def _mean(values):
  return tf.reduce_mean(tf.square(values))


def _model(build):
  """Returns a program of a function that returns a loss, and more ops."""

  @functools.wraps(build)
  def make(make_optimizer):

    def model_fn(features, labels, mode):
      del features, labels
      loss, *others = build()
      return tf.estimator.EstimatorSpec(
          mode, loss=loss, train_op=tf.group(*others, make_optimizer(
              ).minimize(loss, tf1.train.get_global_step())))

    return model_fn

  return make


@_model
def deep_fm():
  """First and second order of all fields, and dense layers on the second."""
  ids = _ids([[0, 3, 6], [1, 3, 7], [0, 4, 7]], [None, 3])
  values = _data(3, 3)[..., tf.newaxis]
  first = tf.nn.embedding_lookup(_table('v_wide', 8, 1), ids) * values
  second = tf.nn.embedding_lookup(_table('v_deep', 8, 4), ids) * values
  crossed = tf.square(tf.reduce_sum(second, 1)) - tf.reduce_sum(
      tf.square(second), 1)
  hidden = tf.nn.relu(tf.reshape(second, [-1, 12]) @ _table('kernel', 12, 4))
  logits = tf.reduce_sum(first, [1, 2]) + tf.reduce_sum(crossed * hidden, 1)
  return [tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
      tf.constant([1.0, 0.0, 1.0]), logits))]


@_model
def attention():
  """Attention over a history, whose items have categories (DIN)."""
  history = _ids([[1, 2, 0], [5, 0, 0]], [None, None])
  target = _ids([3, 5])
  items, categories = _tables('v_items', 'v_categories')
  category_of = tf.constant([0, 1, 1, 2, 0, 3, 2, 1], tf.int64)

  def rows(ids):
    return tf.concat([
        tf.nn.embedding_lookup(items, ids),
        tf.nn.embedding_lookup(categories, tf.gather(category_of, ids))], -1)

  past, wanted = rows(history), rows(target)
  scores = tf.einsum('bth,bh->bt', past, wanted)
  scores = tf.where(tf.sequence_mask([2, 1], tf.shape(history)[1]), scores,
                    tf.fill(tf.shape(scores), -1e9))
  pooled = tf.einsum('bt,bth->bh', tf.nn.softmax(scores), past)
  bias = tf.gather(_table('bias', 8), target)
  return [_mean(tf.reduce_sum(pooled * wanted, 1) + bias)]


@_model
def evolution():
  """A recurrence over looked-up rows, that looks up in each step (DIEN)."""
  history = _ids([[1, 2, 0], [5, 0, 7]], [None, 3])
  items, states = _tables('v_items', 'v_states')
  kernel = _table('kernel', 4, 4)
  past = tf.transpose(tf.nn.embedding_lookup(items, history), [1, 0, 2])

  def step(state, inputs):
    rows, ids = inputs
    return tf.tanh(state @ kernel + rows) * tf.gather(states, ids)

  found = tf.scan(step, (past, tf.transpose(history)),
                  initializer=tf.gather(states, history[:, 0]))
  return [_mean(found[-1])]


@_model
def two_towers():
  """Towers with a shared table, and the batch's others as negatives."""
  features = {'seen': tf.SparseTensor([[0, 0], [0, 2], [1, 0]], _ids(
      [2, 2, 5]), [3, 3]), 'item': _ids([[5], [0], [2]], [None, 1])}
  seen, item = (tf.feature_column.categorical_column_with_identity(name, 8)
                for name in ('seen', 'item'))
  if hasattr(tf1.feature_column, 'shared_embedding_columns'):
    seen, item = tf1.feature_column.shared_embedding_columns(
        [seen, item], 4, 'sqrtn', tf1.random_uniform_initializer(seed=2))
  user = tf1.feature_column.input_layer(features, [seen])
  item = tf1.feature_column.input_layer(features, [item])
  logits = tf.matmul(user @ _table('v_user', 4, 4),
                     item @ _table('v_item', 4, 4), transpose_b=True)
  return [tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.range(3), logits=logits))]


def experts(make_optimizer):
  """Experts and gates on shared rows, for two tasks (MMoE)."""

  def model_fn(features, labels, mode):
    del features, labels
    users, items = _tables('v_users', 'v_items')
    x = tf.concat([tf.gather(users, _ids([1, 1, 4])),
                   tf.gather(items, _ids([7, 0, 7]))], 1)
    outputs = tf.stack([tf.nn.relu(x @ _table(f'expert_{i}', 8, 4, seed=i))
                        for i in range(3)], 1)
    losses = []
    for seed, task in enumerate(('click', 'buy')):
      gate = tf.nn.softmax(x @ _table(f'gate_{task}', 8, 3, seed=seed))
      losses.append(_mean(tf.reduce_sum(
          gate[..., tf.newaxis] * outputs, 1) @ _table(f'tower_{task}', 4, 1)))
    loss = losses[0] * 0.25 + losses[1]
    optimizer = make_optimizer()
    pairs = optimizer.compute_gradients(loss)
    clipped, _ = tf.clip_by_global_norm([pair[0] for pair in pairs], 0.5)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.apply_gradients(
            zip(clipped, [pair[1] for pair in pairs]),
            tf1.train.get_global_step()))

  return model_fn


@_model
def sampled_softmax():
  """Candidates drawn at random, of a table in parts (YouTube)."""
  watched = tf.reduce_mean(tf.nn.embedding_lookup(
      _table('v_watched'), _ids([[1, 2], [3, 3]], [2, 2])), 1)
  weights = _table('weights', 9, 4, partitioner=(
      tf1.fixed_size_partitioner(3)))
  biases = _table('biases', 9)
  return [tf.reduce_mean(tf1.nn.sampled_softmax_loss(
      weights, biases, labels=_ids([[2], [5]], [2, 1]), inputs=watched,
      num_sampled=4, num_classes=9, partition_strategy='div', seed=7))]


@_model
def noise_contrast():
  """Words near each other (word2vec)."""
  words = tf.nn.embedding_lookup(_table('v_words'), _ids([1, 5, 5], [3]))
  return [tf.reduce_mean(tf1.nn.nce_loss(
      _table('weights', 8, 4, seed=3), _table('biases', 8),
      labels=_ids([[2], [0], [7]], [3, 1]), inputs=words, num_sampled=3,
      num_classes=8, sampled_values=tf.random.log_uniform_candidate_sampler(
          _ids([[2], [0], [7]], [3, 1]), 1, 3, True, 8, seed=5)))]


@_model
def weighted_columns():
  """Weights, combiners, a norm's bound, and a missing feature."""
  where = [[0, 0], [0, 1], [2, 0]]
  features = {'tag': tf.SparseTensor(where, _ids([1, 6, 6]), [3, 2]),
              'weight': tf.SparseTensor(where, _data(3), [3, 2])}
  tag = tf.feature_column.categorical_column_with_identity('tag', 8)
  weighted = tf.feature_column.weighted_categorical_column(tag, 'weight')
  columns = [tf.feature_column.embedding_column(
      column, 4, combiner, tf1.random_uniform_initializer(seed=seed),
      max_norm=norm) for seed, (column, combiner, norm) in enumerate((
          (weighted, 'sum', None), (weighted, 'mean', 0.5),
          (tag, 'sqrtn', None)))]
  return [_mean(tf.concat([tf1.feature_column.input_layer(
      features, [column]) for column in columns], 1) @ _table('v', 12, 1))]


@_model
def sequences():
  """A column of sequences."""
  features = {'words': tf.SparseTensor(
      [[0, 0], [0, 1], [2, 0]], _ids([1, 6, 6]), [3, 2])}
  columns = [tf.feature_column.embedding_column(
      tf.feature_column.sequence_categorical_column_with_identity(
          'words', 8), 4, initializer=tf1.random_uniform_initializer(seed=3))]
  rows, lengths = tf.keras.experimental.SequenceFeatures(columns)(features)
  return [_mean(rows @ _table('v', 4, 1)) + tf.cast(
      tf.reduce_max(lengths), tf.float32)]


@_model
def sparse_ids():
  """Rows without ids, ids below zero, and parts of tables."""
  where = [[0, 0], [0, 1], [2, 0], [3, 0]]
  ids = tf.SparseTensor(where, _ids([3, 5, 3, -1]), [4, 2])
  weights = tf.SparseTensor(where, tf.abs(_data(4)), [4, 2])
  parts = [_table(name, 8, 4, partitioner=tf1.fixed_size_partitioner(number))
           for name, number in (('v_two', 2), ('v_three', 3))]
  first = tf1.nn.safe_embedding_lookup_sparse(parts[0], ids, weights)
  second = tf1.nn.safe_embedding_lookup_sparse(
      parts[1], ids, combiner='sum', default_id=2, partition_strategy='mod')
  third = tf1.nn.embedding_lookup_sparse(
      _table('v_whole'), tf.SparseTensor(where, _ids([3, 5, 3, 1]), [4, 2]),
      weights, combiner='sqrtn', max_norm=0.5)
  return [_mean(first * second + third)]


@_model
def parts():
  """Parts by size, 'div' and 'mod', several of a server."""
  ids = _ids([[0, 8], [3, 3], [7, 1]], [None, 2], np.int32)
  rows = [tf1.nn.embedding_lookup(_table(
      name, 9, 4, partitioner=partitioner, use_resource=is_resource),
                                  ids, partition_strategy=strategy)
          for name, partitioner, strategy, is_resource in (
              ('v_a', tf1.fixed_size_partitioner(4), 'div', True),
              ('v_b', tf1.min_max_variable_partitioner(3, min_slice_size=16),
               'mod', True),
              ('v_c', tf1.variable_axis_size_partitioner(64), 'mod', False),
              ('v_d', tf1.fixed_size_partitioner(2), 'div', False))]
  return [_mean(rows[0] * rows[1] + rows[2] * rows[3])]


@_model
def branches():
  """Lookups in branches, with ids and rows of outside; and outside."""
  a, b, c = _tables('v_a', 'v_b', 'v_c')
  ids = _ids([1, 5, 5])
  outside = tf.gather(a, ids) * tf.gather(b, ids)
  rows = tf1.cond(tf.reduce_sum(outside) > 0.0,
                  lambda: tf.gather(b, ids) + outside,
                  lambda: tf.gather(c, (ids + 1) % 8) - outside)
  return [_mean(rows * tf.gather(c, ids))]


@_model
def captured():
  """Rows and variables that only branches use, or ops beside them."""
  a, b, c, d, e, f = _tables('v_a', 'v_b', 'v_c', 'v_d', 'v_e', 'v_f')
  ids = _ids([1, 5, 5])
  one, other, third, fourth = (tf.gather(each, ids) for each in (a, b, c, d))
  chosen = tf1.cond(tf.reduce_sum(_data(3)) > 0.0,
                    lambda: one * 2.0 + tf.reduce_sum(e),
                    lambda: other - tf.reduce_sum(f))
  with tf1.colocate_with(third.op), tf.name_scope('beside'):
    beside = tf.tanh(third)
  return [_mean(chosen + beside * fourth)]


@_model
def cached():
  """Variables that a worker reads once."""
  ids = _ids([1, 5, 5])
  rows = [tf.gather(_table(
      f'v_{index}', caching_device='/job:worker/task:0', seed=index,
      use_resource=index < 2), ids) for index in range(4)]
  kernels = [_table(f'kernel_{index}', 4, 4, use_resource=False, seed=index,
                    caching_device='/job:worker/task:0') for index in range(3)]
  return [_mean(rows[0] * rows[1] @ kernels[0] +
                rows[2] * rows[3] @ kernels[1] @ kernels[2])]


@_model
def maps():
  """Lookups in `map_fn` and `while_loop`, of ids from outside."""
  a, b, c = _tables('v_a', 'v_b', 'v_c')
  ids = _ids([[1, 5], [5, 2], [0, 0]], [None, 2])
  mapped = tf.map_fn(lambda each: tf.reduce_sum(tf.gather(a, each), 0), ids,
                     fn_output_signature=tf.float32)
  _, looped = tf1.while_loop(
      lambda i, _: i < 2,
      lambda i, x: (i + 1, tf.tanh(x * tf.gather(b, ids[:, i]))),
      [0, tf.gather(b, ids[:, 0])], shape_invariants=[
          tf.TensorShape([]), tf.TensorShape([None, 4])])
  return [_mean(mapped * looped) + _mean(tf.gather(c, ids))]


@_model
def ranks():
  """Ids of unknown rank, and of both types, and none."""
  a, b, c, d = _tables('v_a', 'v_b', 'v_c', 'v_d')
  unknown = _ids([[1, 5], [5, 2]], None)
  ids = _ids([[1, 5], [5, 2]], [None, None], np.int32)
  none = _ids(np.zeros([0, 2]), [None, 2])
  rows = tf.gather(a, unknown) * tf.gather(b, ids) * (
      tf.gather(c, tf.cast(unknown, tf.int32)))
  rows.set_shape([None, None, 4])
  return [_mean(rows) + tf.reduce_sum(tf.gather(d, none)) +
          _mean(tf.gather(d, ids))]


@_model
def no_ids():
  """Several tables, none of which finds a row in the step."""
  none = _ids([])
  pairs = _ids(np.zeros([2, 0]), [2, None], np.int32)
  a, b, c = _tables('v_a', 'v_b', 'v_c')
  x = _data(4, 4) @ _table('kernel', 4, 4)
  return [_mean(x) + tf.reduce_sum(tf.gather(a, none) * tf.gather(b, none)) +
          tf.reduce_sum(tf.gather(b, pairs) * tf.gather(c, pairs))]


@_model
def other_gathers():
  """Columns of a table, rows of each of its parts, and cells."""
  ids = _ids([1, 3, 3], [3], np.int32)
  a, b, c = _tables('v_a', 'v_b', 'v_c')
  columns = tf.gather(a, ids, axis=1)
  each = tf.gather(_table('v_d', 3, 4, 2), ids[:, tf.newaxis], batch_dims=1,
                   axis=1)
  cells = tf.gather_nd(b, tf.stack([ids, ids], 1))
  listed = tf1.nn.embedding_lookup([a, b, c], ids)
  read = tf.gather(c.read_value(), ids)
  return [_mean(columns) + _mean(each) + _mean(cells) + _mean(listed * read)]


@_model
def types():
  """Tables of all types, which another table's optimizer leaves alone."""
  ids = _ids([1, 3, 3])
  total = tf.nn.embedding_lookup(_table('v'), ids)
  for is_resource in (True, False):
    for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.int32,
                  tf.int64, tf.complex64, tf.bool, tf.string):
      values = np.arange(16) % 3
      values = values.astype(str if dtype == tf.string else
                             dtype.as_numpy_dtype).reshape([8, 2])
      for index in range(2):
        rows = tf.nn.embedding_lookup(tf1.get_variable(
            f'{dtype.name}_{index}_{is_resource}', dtype=dtype,
            initializer=values, trainable=False, use_resource=is_resource),
                                      ids)
        rows = (tf.strings.to_number(rows) if dtype == tf.string else
                tf.cast(rows, tf.float32))
        total = total + tf.reduce_sum(rows, 1, True) * 0.125
  return [_mean(total)]


@_model
def trained_types():
  """Tables of several types that are trained."""
  ids = _ids([1, 3, 3])
  rows = [tf.cast(tf.nn.embedding_lookup(tf1.get_variable(
      f'v_{dtype.name}_{index}', dtype=dtype, initializer=tf.cast(
          np.arange(16).reshape([8, 2]) * 0.125 * (index + 1), dtype)), ids),
                  tf.float32)
          for dtype in (tf.bfloat16, tf.float64) for index in range(2)]
  return [_mean(rows[0] * rows[1]) + _mean(rows[2] * rows[3])]


def _late(ids):
  """Returns `ids`, which are known only after some work."""
  x = _data(256, 256)
  for _ in range(30):
    x = tf.tanh(x @ x)
  return ids + tf.cast(0.0 * x[0, 0], ids.dtype)


@_model
def changed_after_a_lookup():
  """Changes a table when its rows have been looked up."""
  ids = _ids([1, 3, 3])
  a, = _tables('a', use_resource=True, trainable=False)
  b = _table('v_b', seed=1, use_resource=True)
  before = tf.gather(a, ids)
  with tf.control_dependencies([before]):
    changed = a.assign(tf.zeros([8, 4]))
  with tf.control_dependencies([changed]):
    after = a.read_value()
  return [_mean(before * tf.gather(b, _late(ids)) + 0.5) +
          _mean(after + 0.25), changed]


def center_loss(make_optimizer):
  """Moves the rows of the labels towards the features, before the update."""

  def model_fn(features, labels, mode):
    del features, labels
    ids = _ids([1, 3, 3])
    centers, = _tables('centers', trainable=False)
    outputs = tf.gather(_table('v_rows'), ids) * 2.0
    chosen = tf.gather(centers, ids)
    moved = tf1.scatter_sub(centers, ids, 0.5 * (chosen - outputs))
    with tf.control_dependencies([chosen, moved]):
      loss = _mean(outputs - tf.gather(centers, ids))
      train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def gradients_of_rows(make_optimizer):
  """Takes gradients of rows, and makes slices of them by hand."""

  def model_fn(features, labels, mode):
    del features, labels
    ids = _ids([1, 3, 4])
    a, b, c = _tables('v_a', 'v_b', 'v_c')
    rows = [tf.gather(table, ids) for table in (a, b)]
    loss = _mean(rows[0] * rows[1]) + _mean(c * 0.5)
    gradients = tf.gradients(loss, rows)
    norm = tf.sqrt(tf.reduce_sum(tf.square(gradients[0])))
    optimizer = make_optimizer()
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.apply_gradients([
            (tf.IndexedSlices(gradients[0] / (norm + 1.0), ids), a),
            (tf.IndexedSlices(gradients[1], ids, tf.shape(
                b, out_type=tf.int64)), b),
            (tf.gradients(loss, c)[0], c)],
                                                  tf1.train.get_global_step()))

  return model_fn


@_model
def printed():
  """Prints and checks in between."""
  ids = _ids([1, 3, 3])
  a, b = _tables('v_a', 'v_b')
  with tf.control_dependencies([tf1.assert_less(ids, np.int64(8))]):
    checked = tf.identity(ids)
  shown = tf1.Print(checked, [checked], 'ids', first_n=1)
  rows = tf.gather(a, shown) * tf.gather(b, checked)
  rows = tf1.Print(rows, [tf.shape(rows)], 'rows', first_n=1)
  with tf.control_dependencies([tf.print('step', rows[0, 0])]):
    return [_mean(rows)]


@_model
def wide_rows():
  """Rows too large for a message, and tables of one row."""
  ids = _ids([0, 0])
  a, b = _table('v_a', 1, 70000), _table('v_b', 1, 70000, seed=2)
  c, d = _table('v_c', 1, 20000), _table('v_d', 1, 20000, seed=2)
  return [_mean(tf.gather(a, ids) * tf.gather(b, ids)) +
          _mean(tf.gather(c, ids) * tf.gather(d, ids))]


@_model
def neighbours():
  """Neighbours of neighbours: tables of ids, and of features."""
  ids = _ids([1, 3, 6])
  edges, others = (tf1.get_variable(name, initializer=np.random.RandomState(
      seed).randint(0, 8, [8, 2]), trainable=False)
                   for seed, name in enumerate(('edges', 'others')))
  a, b = _tables('v_a', 'v_b')
  first = tf.gather(edges, ids)
  second = tf.gather(others, tf.gather(edges, first)) + (
      tf.gather(others, first)[..., tf.newaxis]) * 0
  return [_mean(tf.gather(a, ids) * tf.reduce_sum(tf.gather(b, first), 1)) +
          _mean(tf.gather(a, second) * tf.gather(b, second))]


@_model
def devices():
  """Device scopes by hand, with work on a server."""
  ids = _ids([1, 3, 3])
  a, b, c, d = _tables('v_a', 'v_b', 'v_c', 'v_d')
  with tf1.device('/cpu:0'):
    rows = tf.nn.embedding_lookup(a, ids) * tf.nn.embedding_lookup(b, ids)
  with tf1.device('/job:ps/task:0'):
    there = tf.tanh(tf.gather(c, ids) * tf.gather(d, ids + 1))
  with tf1.device(None):
    anywhere = tf.gather(a, ids) * tf.gather(c, ids)
  return [_mean(rows * there + anywhere)]


@_model
def ragged():
  """Ragged ids, unique ids, and rows as a mean of each."""
  ids = tf.RaggedTensor.from_row_splits(_ids([1, 3, 3, 0]), [0, 2, 2, 4])
  a, b = _tables('v_a', 'v_b')
  unique, places = tf.unique(ids.flat_values)
  rows = tf.gather(tf.nn.embedding_lookup(a, unique), places)
  return [_mean(tf.reduce_sum(tf.nn.embedding_lookup(b, ids), 1)) +
          _mean(rows * tf.gather(b, unique[:1]))]


@_model
def drawn_ids():
  """Ids from Python, drawn at random, of a vocabulary, of a dataset."""
  a, b, c, d = _tables('v_a', 'v_b', 'v_c', 'v_d')
  python = tf1.py_func(lambda: np.array([1, 2, 5]), [], tf.int64)
  python.set_shape([None])
  drawn = tf.random.uniform([3], 0, 8, tf.int64, seed=4)
  table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
      ['x', 'y'], tf.constant([3, 4], tf.int64)), 0)
  words = table.lookup(tf.constant(['x', 'z', 'y']))
  tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                        table._initializer.initialize(table))
  batch = tf1.data.make_one_shot_iterator(
      tf1.data.Dataset.range(8).repeat().batch(3)).get_next()
  return [_mean(tf.nn.embedding_lookup(a, python) * tf.nn.embedding_lookup(b, python) *
                tf.nn.embedding_lookup(c, drawn) * tf.nn.embedding_lookup(d, drawn)) +
          _mean(tf.nn.embedding_lookup(a, words) * tf.nn.embedding_lookup(c, words) *
                tf.nn.embedding_lookup(b, batch) * tf.nn.embedding_lookup(d, batch))]


@_model
def custom_gradient():
  """A gradient of the program's own, and rows that are used twice."""
  ids = _ids([1, 3, 3])
  a, b = _tables('v_a', 'v_b')

  @tf.custom_gradient
  def halved(x):
    return tf.identity(x), lambda grad: grad * 0.5

  first, second = halved(tf.gather(a, ids)), tf.gather(b, ids)
  return [_mean(first * second)]


@_model
def growing():
  """Tables without a static shape."""
  ids = _ids([1, 3])
  tables = [tf1.get_variable(name, initializer=_data(8, 4, seed=seed) + (
      tf1.placeholder_with_default(np.zeros([1, 4], np.float32),
                                   [None, None])), validate_shape=False)
            for seed, name in enumerate(('v_a', 'v_b'))]
  return [_mean(tf.gather(tables[0], ids) * tf.gather(tables[1], ids))]


PROGRAMS = {each.__name__: each for each in (
    deep_fm, attention, evolution, two_towers, experts, sampled_softmax,
    noise_contrast, weighted_columns, sequences, sparse_ids, parts, branches,
    captured, cached, maps, ranks, no_ids, other_gathers, types, trained_types,
    changed_after_a_lookup, center_loss, gradients_of_rows, printed,
    wide_rows, neighbours, devices, ragged, drawn_ids, custom_gradient, growing)}
