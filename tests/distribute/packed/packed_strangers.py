# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs that use variables as most programs do not.

Each function returns a model_fn for the optimizer of a form. No sum has more
than two terms, or constants: TensorFlow adds in an order that depends on which
buffer is free, and its graph optimizer moves constants.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def _features():
  return tf.constant(np.random.RandomState(1).standard_normal([4, 4]),
                     tf.float32)


def _random(seed):
  return tf1.random_uniform_initializer(-1.0, 1.0, seed=seed)


def _spec(mode, loss, *train_ops, **kwargs):
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf.group(*train_ops), **kwargs)


def _kernels(*names, **kwargs):
  return [tf1.get_variable(name, [4, 4], initializer=_random(seed), **kwargs)
          for seed, name in enumerate(names)]


def around_an_assign(make_optimizer):
  """Reads variables of several types before and after the step's assigns."""

  def model_fn(features, labels, mode):
    del features, labels
    x = _features()
    v, w = _kernels('v', 'w')
    scale, shift, rate = (tf1.get_variable(
        name, [4], initializer=tf1.constant_initializer(value),
        trainable=False) for name, value in (
            ('scale', 1.0), ('shift', 2.0), ('rate', 0.5)))
    steps, seen = (tf1.get_variable(
        name, [2], tf.int32, tf1.zeros_initializer(), trainable=False)
                   for name in ('steps', 'seen'))
    doubles = [tf1.get_variable(name, [4], tf.float64, _random(9))
               for name in ('da', 'db', 'dc')]
    before = x @ v * scale + shift
    with tf.control_dependencies([before]):
      assigned = [scale.assign_add(0.25 * tf.ones([4])),
                  shift.assign_sub(rate * tf.reduce_mean(before)),
                  steps.assign_add([1, 2])]
    with tf.control_dependencies(assigned):
      after = before @ w * scale.read_value() + shift.read_value()
      counted = tf.cast(tf.reduce_sum(steps.read_value()), tf.float32)
      noted = seen.assign_add(steps.read_value())
    loss = tf.reduce_mean(tf.square(after)) * 0.01 + counted + tf.cast(
        tf.reduce_sum(tf.add_n([tf.square(each) for each in doubles])),
        tf.float32)
    return _spec(mode, loss, noted, make_optimizer().minimize(
        loss, tf1.train.get_global_step()))

  return model_fn


def started_by_another(make_optimizer):
  """Initialises a variable with a part of the model, of another variable.

  A local one, whose initial value comes after those of the shared variables:
  TensorFlow does not order the initial values of resource variables.
  """

  def model_fn(features, labels, mode):
    del features, labels
    x = _features()
    first, v, w = _kernels('first', 'v', 'w')
    # Of the loss, and of an initial value.
    norms = tf.sqrt(tf.reduce_sum(tf.square(first), 0))
    gain = tf1.get_variable('gain', initializer=tf.ones([4]))
    own = tf1.get_variable(
        'own', initializer=norms, trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES])
    outputs = x @ v @ w @ (first / norms * gain)
    loss = tf.reduce_mean(tf.square(outputs)) + 0.1 * tf.reduce_sum(own)
    return _spec(mode, loss, make_optimizer().minimize(
        loss, tf1.train.get_global_step()))

  return model_fn


def two_games(make_optimizer):
  """Minimizes two losses in turn; each one has no gradient for some."""

  def model_fn(features, labels, mode):
    del features, labels
    x = _features()
    common, v, w, penalized = _kernels(
        'common', 'v', 'w', 'penalized')
    hidden = tf.tanh(x @ common)
    first = tf.reduce_mean(tf.square(hidden @ v)) + (
        0.1 * tf.reduce_sum(tf.square(penalized)))
    step = tf1.train.get_global_step()
    one = make_optimizer().minimize(first)
    with tf.control_dependencies([one]):
      second = tf.reduce_mean(tf.square(
          tf.stop_gradient(hidden) @ w))
      other = make_optimizer().minimize(second, step)
    return _spec(mode, first + second, one, other)

  return model_fn


def tables(make_optimizer):
  """Looks the same ids up in tables, of which one has parts and one no uses.

  Also has regularisers, averages of variables, and reads in a branch, a loop
  and a function.
  """

  def model_fn(features, labels, mode):
    del features, labels
    x = _features()
    ids = tf.constant([3, 3, 0, 6])
    deep, wide = (tf1.get_variable(
        name, [8, 4], initializer=_random(seed), regularizer=(
            lambda value: 0.01 * tf.reduce_sum(tf.square(value))))
                  for seed, name in enumerate(('v_deep', 'v_wide')))
    parts = tf1.get_variable('parts', [8, 4], initializer=_random(5),
                             partitioner=tf1.fixed_size_partitioner(3))
    tf1.get_variable('unused', [4], initializer=_random(7))
    bias, slope, other = (tf1.get_variable(name, [4], initializer=_random(6))
                          for name in ('bias', 'slope', 'other'))
    rows = sum(tf.nn.embedding_lookup(each, ids) for each in (
        deep, wide, parts))
    rows = tf.cond(tf.reduce_sum(rows) > 0.0, lambda: rows * slope,
                   lambda: rows - slope)
    _, rows = tf.while_loop(lambda i, _: i < 2,
                            lambda i, each: (i + 1, tf.tanh(each + bias)),
                            [0, rows])
    rows += tf.function(lambda each: each * other)(x) * bias
    loss = tf.reduce_mean(tf.square(rows)) + tf1.losses.get_regularization_loss(
        ) + tf.reduce_sum(tf.square(deep))
    update = make_optimizer().minimize(loss, tf1.train.get_global_step())
    average = tf1.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([update]):
      averaged = average.apply([bias, slope, other])
    return _spec(mode, loss, averaged)

  return model_fn


def references(make_optimizer):
  """Has variables without resources, and clips gradients by all norms."""

  def model_fn(features, labels, mode):
    del features, labels
    x = _features()
    v, w, u = _kernels('v_one', 'w_one', 'u', use_resource=False)
    scale = tf1.get_variable('scale', [4], initializer=tf1.ones_initializer(),
                             use_resource=False, trainable=False)
    outputs = tf.tanh(x @ v * scale) @ w @ u + u
    with tf.control_dependencies([outputs]):
      scaled = scale.assign(scale * 1.5)
    loss = tf.reduce_mean(tf.square(outputs))
    optimizer = make_optimizer()
    pairs = [pair for pair in optimizer.compute_gradients(loss)
             if pair[0] is not None]
    gradients, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
    tf1.summary.scalar('norm', norm)
    return _spec(mode, loss, scaled, optimizer.apply_gradients(
        zip(gradients, [variable for _, variable in pairs]),
        tf1.train.get_global_step()))

  return model_fn


def _tables(*names, **kwargs):
  return [tf1.get_variable(name, [8, 4], initializer=_random(seed), **kwargs)
          for seed, name in enumerate(names)]


def lookups(make_optimizer):
  """Looks up what another lookup found, ids of several ranks, and no ids."""

  def model_fn(features, labels, mode):
    del features, labels
    tables = _tables('v_first', 'v_second', 'v_third', 'v_fourth')
    references = _tables('v_fifth', 'v_sixth', use_resource=False)
    pairs = tf1.placeholder_with_default(
        np.array([[1, 1], [7, 0], [2, 5], [3, 1]], np.int64), [None, 2])
    first = tf.gather(tables[0], pairs)
    # The second table's ids are found with the first one's rows.
    second = tf.nn.embedding_lookup(tables[1], tf.argmax(first, -1))
    third = tf.gather(tables[2], tf1.placeholder_with_default(3, []))
    none = tf.gather(tables[3], tf1.placeholder_with_default(
        np.zeros([0], np.int64), [None]))
    fifth, sixth = (tf.nn.embedding_lookup(each, pairs[:, 0])
                    for each in references)
    outputs = tf.reduce_sum(first * second, 1) * third * tf.tanh(fifth) + sixth
    loss = tf.reduce_mean(tf.square(outputs)) + tf.reduce_sum(none)
    return _spec(mode, loss, make_optimizer().minimize(
        loss, tf1.train.get_global_step()))

  return model_fn


def lookups_around_an_update(make_optimizer):
  """Looks rows up, changes them, and looks them up again, with a loop."""

  def model_fn(features, labels, mode):
    del features, labels
    ids = tf1.placeholder_with_default([3, 3, 0, 6], [None])
    first, second = _tables('v_first', 'v_second', use_resource=True)
    counts, = _tables('counts', use_resource=True, trainable=False)
    before = tf.gather(first, ids) * tf.gather(second, ids)
    with tf.control_dependencies([before]):
      counted = counts.scatter_add(tf.IndexedSlices(tf.ones([4, 4]), ids))
    with tf.control_dependencies([counted]):
      seen = tf.gather(counts, ids) * tf.gather(first, ids)
    _, chosen = tf1.while_loop(
        lambda i, _: i < 2,
        lambda i, each: (i + 1, (each + tf.cast(tf.reduce_sum(
            tf.gather(second, ids)) > 0.0, tf.int32)) % 8), [0, ids])
    after = tf.gather(second, chosen)
    loss = tf.reduce_mean(tf.square(before * after)) + tf.reduce_mean(
        tf.square(seen))
    return _spec(mode, loss, counted, make_optimizer().minimize(
        loss, tf1.train.get_global_step()))

  return model_fn


def columns(make_optimizer):
  """Has the columns of a recommender: a vocabulary, hashes, a cross."""

  def model_fn(features, labels, mode):
    del labels
    features = {'word': tf.constant(['a', 'b', 'b', 'c']),
                'user': tf.constant([5, 2, 5, 900], tf.int64),
                'place': tf.constant([1, 9, 1, -1], tf.int64)}
    word = tf.feature_column.categorical_column_with_vocabulary_list(
        'word', ['a', 'b'], num_oov_buckets=2)
    user = tf.feature_column.categorical_column_with_hash_bucket(
        'user', 16, tf.int64)
    bounded = tf.feature_column.categorical_column_with_identity(
        'place', 8, default_value=0)
    cross = tf.feature_column.crossed_column(['word', 'user'], 32)
    with tf1.variable_scope('v', initializer=_random(3)):
      hidden = tf1.feature_column.input_layer(features, [
          tf.feature_column.embedding_column(
              column, 4, initializer=_random(seed))
          for seed, column in enumerate((word, user, bounded))])
      logits = tf1.feature_column.linear_model(features, [word, user, cross])
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1, True) * 0.5 +
                                    logits - 1.0))
    return _spec(mode, loss, make_optimizer().minimize(
        loss, tf1.train.get_global_step()))

  return model_fn


PROGRAMS = {each.__name__: each for each in (
    around_an_assign, started_by_another, two_games, tables, references,
    lookups, lookups_around_an_update, columns)}
