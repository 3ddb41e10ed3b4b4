# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups in unusual places, of unusual tables, and around writes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.distribute.packed.packed_recommenders import make_data
from tests.distribute.packed.packed_recommenders import make_ids
from tests.distribute.packed.packed_recommenders import make_table
from tests.distribute.packed.packed_recommenders import make_tables
from tests.distribute.packed.packed_recommenders import mean_square
from tests.distribute.packed.packed_recommenders import program

tf1 = tf.compat.v1


@program
def branches():
  """Lookups in branches, with ids and rows of outside; and outside."""
  a, b, c = make_tables('v_a', 'v_b', 'v_c')
  ids = make_ids([1, 5, 5])
  outside = tf.gather(a, ids) * tf.gather(b, ids)
  rows = tf1.cond(tf.reduce_sum(outside) > 0.0,
                  lambda: tf.gather(b, ids) + outside,
                  lambda: tf.gather(c, (ids + 1) % 8) - outside)
  return [mean_square(rows * tf.gather(c, ids))]


@program
def captured():
  """Rows and variables that only branches use, or ops beside them."""
  a, b, c, d, e, f = make_tables('v_a', 'v_b', 'v_c', 'v_d', 'v_e', 'v_f')
  ids = make_ids([1, 5, 5])
  one, other, third, fourth = (tf.gather(each, ids) for each in (a, b, c, d))
  chosen = tf1.cond(tf.reduce_sum(make_data(3)) > 0.0,
                    lambda: one * 2.0 + tf.reduce_sum(e),
                    lambda: other - tf.reduce_sum(f))
  with tf1.colocate_with(third.op), tf.name_scope('beside'):
    beside = tf.tanh(third)
  return [mean_square(chosen + beside * fourth)]


@program
def cached():
  """Variables that a worker reads once."""
  ids = make_ids([1, 5, 5])
  rows = [tf.gather(make_table(
      f'v_{index}', caching_device='/job:worker/task:0', seed=index,
      use_resource=index < 2), ids) for index in range(4)]
  kernels = [make_table(f'kernel_{index}', 4, 4, use_resource=False, seed=index,
                    caching_device='/job:worker/task:0') for index in range(3)]
  return [mean_square(rows[0] * rows[1] @ kernels[0] +
                rows[2] * rows[3] @ kernels[1] @ kernels[2])]


@program
def maps():
  """Lookups in `map_fn` and `while_loop`, of ids from outside."""
  a, b, c = make_tables('v_a', 'v_b', 'v_c')
  ids = make_ids([[1, 5], [5, 2], [0, 0]], [None, 2])
  mapped = tf.map_fn(lambda each: tf.reduce_sum(tf.gather(a, each), 0), ids,
                     fn_output_signature=tf.float32)
  _, looped = tf1.while_loop(
      lambda i, _: i < 2,
      lambda i, x: (i + 1, tf.tanh(x * tf.gather(b, ids[:, i]))),
      [0, tf.gather(b, ids[:, 0])], shape_invariants=[
          tf.TensorShape([]), tf.TensorShape([None, 4])])
  return [mean_square(mapped * looped) + mean_square(tf.gather(c, ids))]


@program
def ranks():
  """Ids of unknown rank, and of both types, and none."""
  a, b, c, d = make_tables('v_a', 'v_b', 'v_c', 'v_d')
  unknown = make_ids([[1, 5], [5, 2]], None)
  ids = make_ids([[1, 5], [5, 2]], [None, None], np.int32)
  none = make_ids(np.zeros([0, 2]), [None, 2])
  rows = tf.gather(a, unknown) * tf.gather(b, ids) * (
      tf.gather(c, tf.cast(unknown, tf.int32)))
  rows.set_shape([None, None, 4])
  return [mean_square(rows) + tf.reduce_sum(tf.gather(d, none)) +
          mean_square(tf.gather(d, ids))]


@program
def no_ids():
  """Several tables, none of which finds a row in the step."""
  none = make_ids([])
  pairs = make_ids(np.zeros([2, 0]), [2, None], np.int32)
  a, b, c = make_tables('v_a', 'v_b', 'v_c')
  x = make_data(4, 4) @ make_table('kernel', 4, 4)
  rows = tf.gather(a, none) * tf.gather(b, none)
  return [mean_square(x) + tf.reduce_sum(rows) +
          tf.reduce_sum(tf.gather(b, pairs) * tf.gather(c, pairs))]


@program
def other_gathers():
  """Columns of a table, rows of each of its parts, and cells."""
  ids = make_ids([1, 3, 3], [3], np.int32)
  a, b, c = make_tables('v_a', 'v_b', 'v_c')
  columns = tf.gather(a, ids, axis=1)
  each = tf.gather(make_table('v_d', 3, 4, 2), ids[:, tf.newaxis], batch_dims=1,
                   axis=1)
  cells = tf.gather_nd(b, tf.stack([ids, ids], 1))
  listed = tf1.nn.embedding_lookup([a, b, c], ids)
  read = tf.gather(c.read_value(), ids)
  return [mean_square(columns) + mean_square(each) + mean_square(cells) +
          mean_square(listed * read)]


@program
def types():
  """Tables of all types, which another table's optimizer leaves alone."""
  ids = make_ids([1, 3, 3])
  total = tf.nn.embedding_lookup(make_table('v'), ids)
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
  return [mean_square(total)]


@program
def trained_types():
  """Tables of several types that are trained."""
  ids = make_ids([1, 3, 3])
  rows = [tf.cast(tf.nn.embedding_lookup(tf1.get_variable(
      f'v_{dtype.name}_{index}', dtype=dtype, initializer=tf.cast(
          np.arange(16).reshape([8, 2]) * 0.125 * (index + 1), dtype)), ids),
                  tf.float32)
          for dtype in (tf.bfloat16, tf.float64) for index in range(2)]
  return [mean_square(rows[0] * rows[1]) + mean_square(rows[2] * rows[3])]


def _late(ids):
  """Returns `ids`, which are known only after some work."""
  x = make_data(256, 256)
  for _ in range(30):
    x = tf.tanh(x @ x)
  return ids + tf.cast(0.0 * x[0, 0], ids.dtype)


@program
def changed_after_a_lookup():
  """Changes a table when its rows have been looked up."""
  ids = make_ids([1, 3, 3])
  a, = make_tables('a', use_resource=True, trainable=False)
  b = make_table('v_b', seed=1, use_resource=True)
  before = tf.gather(a, ids)
  with tf.control_dependencies([before]):
    changed = a.assign(tf.zeros([8, 4]))
  with tf.control_dependencies([changed]):
    after = a.read_value()
  return [mean_square(before * tf.gather(b, _late(ids)) + 0.5) +
          mean_square(after + 0.25), changed]


def center_loss(make_optimizer):
  """Moves the rows of the labels towards the features, before the update."""

  def model_fn(features, labels, mode):
    del features, labels
    ids = make_ids([1, 3, 3])
    centers, = make_tables('centers', trainable=False)
    outputs = tf.gather(make_table('v_rows'), ids) * 2.0
    chosen = tf.gather(centers, ids)
    moved = tf1.scatter_sub(centers, ids, 0.5 * (chosen - outputs))
    with tf.control_dependencies([chosen, moved]):
      loss = mean_square(outputs - tf.gather(centers, ids))
      train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def gradients_of_rows(make_optimizer):
  """Takes gradients of rows, and makes slices of them by hand."""

  def model_fn(features, labels, mode):
    del features, labels
    ids = make_ids([1, 3, 4])
    a, b, c = make_tables('v_a', 'v_b', 'v_c')
    rows = [tf.gather(table, ids) for table in (a, b)]
    loss = mean_square(rows[0] * rows[1]) + mean_square(c * 0.5)
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


@program
def printed():
  """Prints and checks in between."""
  ids = make_ids([1, 3, 3])
  a, b = make_tables('v_a', 'v_b')
  with tf.control_dependencies([tf1.assert_less(ids, np.int64(8))]):
    checked = tf.identity(ids)
  shown = tf1.Print(checked, [checked], 'ids', first_n=1)
  rows = tf.gather(a, shown) * tf.gather(b, checked)
  rows = tf1.Print(rows, [tf.shape(rows)], 'rows', first_n=1)
  with tf.control_dependencies([tf.print('step', rows[0, 0])]):
    return [mean_square(rows)]


@program
def wide_rows():
  """Rows too large for a message, and tables of one row."""
  ids = make_ids([0, 0])
  a, b = make_table('v_a', 1, 70000), make_table('v_b', 1, 70000, seed=2)
  c, d = make_table('v_c', 1, 20000), make_table('v_d', 1, 20000, seed=2)
  return [mean_square(tf.gather(a, ids) * tf.gather(b, ids)) +
          mean_square(tf.gather(c, ids) * tf.gather(d, ids))]


@program
def neighbours():
  """Neighbours of neighbours: tables of ids, and of features."""
  ids = make_ids([1, 3, 6])
  edges, others = (tf1.get_variable(name, initializer=np.random.RandomState(
      seed).randint(0, 8, [8, 2]), trainable=False)
                   for seed, name in enumerate(('edges', 'others')))
  a, b = make_tables('v_a', 'v_b')
  first = tf.gather(edges, ids)
  second = tf.gather(others, tf.gather(edges, first)) + (
      tf.gather(others, first)[..., tf.newaxis]) * 0
  near = tf.reduce_sum(tf.gather(b, first), 1)
  return [mean_square(tf.gather(a, ids) * near) +
          mean_square(tf.gather(a, second) * tf.gather(b, second))]


@program
def devices():
  """Device scopes by hand, with work on a server."""
  ids = make_ids([1, 3, 3])
  a, b, c, d = make_tables('v_a', 'v_b', 'v_c', 'v_d')
  with tf1.device('/cpu:0'):
    rows = tf.nn.embedding_lookup(a, ids) * tf.nn.embedding_lookup(b, ids)
  with tf1.device('/job:ps/task:0'):
    there = tf.tanh(tf.gather(c, ids) * tf.gather(d, ids + 1))
  with tf1.device(None):
    anywhere = tf.gather(a, ids) * tf.gather(c, ids)
  return [mean_square(rows * there + anywhere)]


@program
def ragged():
  """Ragged ids, unique ids, and rows as a mean of each."""
  ids = tf.RaggedTensor.from_row_splits(make_ids([1, 3, 3, 0]), [0, 2, 2, 4])
  a, b = make_tables('v_a', 'v_b')
  unique, places = tf.unique(ids.flat_values)
  rows = tf.gather(tf.nn.embedding_lookup(a, unique), places)
  return [mean_square(tf.reduce_sum(tf.nn.embedding_lookup(b, ids), 1)) +
          mean_square(rows * tf.gather(b, unique[:1]))]


@program
def drawn_ids():
  """Ids from Python, drawn at random, of a vocabulary, of a dataset."""
  a, b, c, d = make_tables('v_a', 'v_b', 'v_c', 'v_d')
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
  first, second, third, fourth, fifth, sixth, seventh, eighth = (
      tf.nn.embedding_lookup(table, ids) for table, ids in (
          (a, python), (b, python), (c, drawn), (d, drawn), (a, words),
          (c, words), (b, batch), (d, batch)))
  return [mean_square(first * second * third * fourth) +
          mean_square(fifth * sixth * seventh * eighth)]


@program
def custom_gradient():
  """A gradient of the program's own, and rows that are used twice."""
  ids = make_ids([1, 3, 3])
  a, b = make_tables('v_a', 'v_b')

  @tf.custom_gradient
  def halved(x):
    return tf.identity(x), lambda grad: grad * 0.5

  first, second = halved(tf.gather(a, ids)), tf.gather(b, ids)
  return [mean_square(first * second)]


@program
def growing():
  """Tables without a static shape."""
  ids = make_ids([1, 3])
  tables = [tf1.get_variable(name, initializer=make_data(8, 4, seed=seed) + (
      tf1.placeholder_with_default(np.zeros([1, 4], np.float32),
                                   [None, None])), validate_shape=False)
            for seed, name in enumerate(('a', 'b'))]
  return [mean_square(tf.gather(tables[0], ids) * tf.gather(tables[1], ids)) +
          mean_square(make_table('v'))]


PROGRAMS = {each.__name__: each for each in (
    branches, captured, cached, maps, ranks, no_ids, other_gathers, types,
    trained_types, changed_after_a_lookup, center_loss, gradients_of_rows,
    printed, wide_rows, neighbours, devices, ragged, drawn_ids,
    custom_gradient, growing)}
