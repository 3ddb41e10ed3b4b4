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


def make_ids(values, shape=(None,), dtype=np.int64):
  return tf1.placeholder_with_default(np.array(values, dtype), shape)


def make_data(*shape, seed=1):
  return tf1.placeholder_with_default(np.random.RandomState(
      seed).standard_normal(shape).astype(np.float32), shape)


def make_table(name, *shape, seed=0, **kwargs):
  return tf1.get_variable(
      name, shape or [8, 4], initializer=tf1.random_uniform_initializer(
          -1.0, 1.0, seed=seed + 1), **kwargs)


def make_tables(*names, **kwargs):
  return [make_table(name, seed=seed, **kwargs)
          for seed, name in enumerate(names)]


def mean_square(values):
  return tf.reduce_mean(tf.square(values))


def program(build):
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


@program
def deep_fm():
  """First and second order of all fields, and dense layers on the second."""
  ids = make_ids([[0, 3, 6], [1, 3, 7], [0, 4, 7]], [None, 3])
  values = make_data(3, 3)[..., tf.newaxis]
  first = tf.nn.embedding_lookup(make_table('v_wide', 8, 1), ids) * values
  second = tf.nn.embedding_lookup(make_table('v_deep', 8, 4), ids) * values
  crossed = tf.square(tf.reduce_sum(second, 1)) - tf.reduce_sum(
      tf.square(second), 1)
  hidden = tf.nn.relu(
      tf.reshape(second, [-1, 12]) @ make_table('kernel', 12, 4))
  logits = tf.reduce_sum(first, [1, 2]) + tf.reduce_sum(crossed * hidden, 1)
  return [tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
      tf.constant([1.0, 0.0, 1.0]), logits))]


@program
def attention():
  """Attention over a history, whose items have categories (DIN)."""
  history = make_ids([[1, 2, 0], [5, 0, 0]], [None, None])
  target = make_ids([3, 5])
  items, categories = make_tables('v_items', 'v_categories')
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
  bias = tf.gather(make_table('bias', 8), target)
  return [mean_square(tf.reduce_sum(pooled * wanted, 1) + bias)]


@program
def evolution():
  """A recurrence over looked-up rows, that looks up in each step (DIEN)."""
  history = make_ids([[1, 2, 0], [5, 0, 7]], [None, 3])
  items, states = make_tables('v_items', 'v_states')
  kernel = make_table('kernel', 4, 4)
  past = tf.transpose(tf.nn.embedding_lookup(items, history), [1, 0, 2])

  def step(state, inputs):
    rows, ids = inputs
    return tf.tanh(state @ kernel + rows) * tf.gather(states, ids)

  found = tf.scan(step, (past, tf.transpose(history)),
                  initializer=tf.gather(states, history[:, 0]))
  return [mean_square(found[-1])]


@program
def two_towers():
  """Towers with a shared table, and the batch's others as negatives."""
  features = {'seen': tf.SparseTensor([[0, 0], [0, 2], [1, 0]], make_ids(
      [2, 2, 5]), [3, 3]), 'item': make_ids([[5], [0], [2]], [None, 1])}
  seen, item = (tf.feature_column.categorical_column_with_identity(name, 8)
                for name in ('seen', 'item'))
  if hasattr(tf1.feature_column, 'shared_embedding_columns'):
    seen, item = tf1.feature_column.shared_embedding_columns(
        [seen, item], 4, 'sqrtn', tf1.random_uniform_initializer(seed=2))
  user = tf1.feature_column.input_layer(features, [seen])
  item = tf1.feature_column.input_layer(features, [item])
  logits = tf.matmul(user @ make_table('v_user', 4, 4),
                     item @ make_table('v_item', 4, 4), transpose_b=True)
  return [tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.range(3), logits=logits))]


def experts(make_optimizer):
  """Experts and gates on shared rows, for two tasks (MMoE)."""

  def model_fn(features, labels, mode):
    del features, labels
    users, items = make_tables('v_users', 'v_items')
    x = tf.concat([tf.gather(users, make_ids([1, 1, 4])),
                   tf.gather(items, make_ids([7, 0, 7]))], 1)
    outputs = tf.stack([tf.nn.relu(x @ make_table(f'expert_{i}', 8, 4, seed=i))
                        for i in range(3)], 1)
    losses = []
    for seed, task in enumerate(('click', 'buy')):
      gate = tf.nn.softmax(x @ make_table(f'gate_{task}', 8, 3, seed=seed))
      losses.append(mean_square(tf.reduce_sum(
          gate[..., tf.newaxis] * outputs, 1) @ make_table(
              f'tower_{task}', 4, 1)))
    loss = losses[0] * 0.25 + losses[1]
    optimizer = make_optimizer()
    pairs = optimizer.compute_gradients(loss)
    clipped, _ = tf.clip_by_global_norm([pair[0] for pair in pairs], 0.5)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.apply_gradients(
            zip(clipped, [pair[1] for pair in pairs]),
            tf1.train.get_global_step()))

  return model_fn


@program
def sampled_softmax():
  """Candidates drawn at random, of a table in parts (YouTube)."""
  watched = tf.reduce_mean(tf.nn.embedding_lookup(
      make_table('v_watched'), make_ids([[1, 2], [3, 3]], [2, 2])), 1)
  weights = make_table('weights', 9, 4, partitioner=(
      tf1.fixed_size_partitioner(3)))
  biases = make_table('biases', 9)
  return [tf.reduce_mean(tf1.nn.sampled_softmax_loss(
      weights, biases, labels=make_ids([[2], [5]], [2, 1]), inputs=watched,
      num_sampled=4, num_classes=9, partition_strategy='div', seed=7))]


@program
def noise_contrast():
  """Words near each other (word2vec)."""
  words = tf.nn.embedding_lookup(
      make_table('v_words'), make_ids([1, 5, 5], [3]))
  return [tf.reduce_mean(tf1.nn.nce_loss(
      make_table('weights', 8, 4, seed=3), make_table('biases', 8),
      labels=make_ids([[2], [0], [7]], [3, 1]), inputs=words, num_sampled=3,
      num_classes=8, sampled_values=tf.random.log_uniform_candidate_sampler(
          make_ids([[2], [0], [7]], [3, 1]), 1, 3, True, 8, seed=5)))]


@program
def weighted_columns():
  """Weights, combiners, a norm's bound, and a missing feature."""
  where = [[0, 0], [0, 1], [2, 0]]
  features = {'tag': tf.SparseTensor(where, make_ids([1, 6, 6]), [3, 2]),
              'weight': tf.SparseTensor(where, make_data(3), [3, 2])}
  tag = tf.feature_column.categorical_column_with_identity('tag', 8)
  weighted = tf.feature_column.weighted_categorical_column(tag, 'weight')
  columns = [tf.feature_column.embedding_column(
      column, 4, combiner, tf1.random_uniform_initializer(seed=seed),
      max_norm=norm) for seed, (column, combiner, norm) in enumerate((
          (weighted, 'sum', None), (weighted, 'mean', 0.5),
          (tag, 'sqrtn', None)))]
  return [mean_square(tf.concat([tf1.feature_column.input_layer(
      features, [column]) for column in columns], 1) @ make_table('v', 12, 1))]


@program
def sequences():
  """A column of sequences."""
  features = {'words': tf.SparseTensor(
      [[0, 0], [0, 1], [2, 0]], make_ids([1, 6, 6]), [3, 2])}
  columns = [tf.feature_column.embedding_column(
      tf.feature_column.sequence_categorical_column_with_identity(
          'words', 8), 4, initializer=tf1.random_uniform_initializer(seed=3))]
  rows, lengths = tf.keras.experimental.SequenceFeatures(columns)(features)
  return [mean_square(rows @ make_table('v', 4, 1)) + tf.cast(
      tf.reduce_max(lengths), tf.float32)]


@program
def sparse_ids():
  """Rows without ids, ids below zero, and parts of tables."""
  where = [[0, 0], [0, 1], [2, 0], [3, 0]]
  ids = tf.SparseTensor(where, make_ids([3, 5, 3, -1]), [4, 2])
  weights = tf.SparseTensor(where, tf.abs(make_data(4)), [4, 2])
  parts = [make_table(
      name, 8, 4, partitioner=tf1.fixed_size_partitioner(number))
           for name, number in (('v_two', 2), ('v_three', 3))]
  first = tf1.nn.safe_embedding_lookup_sparse(parts[0], ids, weights)
  second = tf1.nn.safe_embedding_lookup_sparse(
      parts[1], ids, combiner='sum', default_id=2, partition_strategy='mod')
  known = tf.SparseTensor(where, make_ids([3, 5, 3, 1]), [4, 2])
  third = tf1.nn.embedding_lookup_sparse(
      make_table('v_whole'), known, weights, combiner='sqrtn', max_norm=0.5)
  return [mean_square(first * second + third)]


@program
def parts():
  """Parts by size, 'div' and 'mod', several of a server."""
  ids = make_ids([[0, 8], [3, 3], [7, 1]], [None, 2], np.int32)
  rows = [tf1.nn.embedding_lookup(make_table(
      name, 9, 4, partitioner=partitioner, use_resource=is_resource),
                                  ids, partition_strategy=strategy)
          for name, partitioner, strategy, is_resource in (
              ('v_a', tf1.fixed_size_partitioner(4), 'div', True),
              ('v_b', tf1.min_max_variable_partitioner(3, min_slice_size=16),
               'mod', True),
              ('v_c', tf1.variable_axis_size_partitioner(64), 'mod', False),
              ('v_d', tf1.fixed_size_partitioner(2), 'div', False))]
  return [mean_square(rows[0] * rows[1] + rows[2] * rows[3])]


PROGRAMS = {each.__name__: each for each in (
    deep_fm, attention, evolution, two_towers, experts, sampled_softmax,
    noise_contrast, weighted_columns, sequences, sparse_ids, parts)}
