# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, with loops, memories and classes that count.

As in `model_fns_of_gradients`, features are dictionaries, PREDICT needs no
labels, and trained variables of several dimensions are named `kernel`.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(2)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights


def _squashed(x):
  square = tf.reduce_sum(tf.square(x), -1, keepdims=True)
  return x * tf.sqrt(square + 1e-7) / (1 + square)


def _routed(votes):
  """Returns the capsules `[rows, 3, 5]` of the votes `[rows, 4, 3, 5]`."""

  def route(i, logits, unused_found):
    share = tf.nn.softmax(logits, 2)
    found = _squashed(tf.reduce_sum(share[..., None] * votes, 1))
    return i + 1, logits + tf.reduce_sum(votes * found[:, None], -1), found

  rows = tf.shape(votes)[0]
  return tf.while_loop(lambda i, *_: i < 3, route, [
      0, tf.zeros([rows, 4, 3]), tf.zeros([rows, 3, 5])])[-1]


def capsules(features, labels, mode):
  """Capsules, whose shares a loop finds by agreement, and a picture of one."""
  image = features['image']
  parts = layers.conv2d(image, 4, 3, 2, activation=tf.nn.relu)
  parts = _squashed(tf.reshape(parts, [-1, 4, 4]))
  found = _routed(tf.einsum(
      'bid,icde->bice', parts, _weights('routes/kernel', 4, 3, 4, 5)))
  length = tf.sqrt(tf.reduce_sum(tf.square(found), -1) + 1e-7)
  kind = tf.argmax(length, -1)
  shown = tf.one_hot(kind if _is_predicting(mode) else labels, 3)
  picture = layers.dense(
      tf.reshape(found * shown[..., None], [-1, 15]), 36, tf.sigmoid)
  if _is_predicting(mode):
    return _spec(mode, None, {'kind': kind, 'picture': picture}, None)
  margin = shown * tf.square(tf.nn.relu(0.9 - length)) + (
      0.5 * (1 - shown) * tf.square(tf.nn.relu(length - 0.1)))
  loss = tf.reduce_mean(tf.reduce_sum(margin, 1)) + 0.1 * tf.reduce_mean(
      tf.square(picture - tf.reshape(image, [-1, 36])))
  return _spec(mode, loss, {'kind': kind}, lambda: {
      'accuracy': tf1.metrics.accuracy(labels, kind),
      'lengths': tf1.metrics.mean_tensor(tf.reduce_mean(length, 0))})


def sampled_words(features, labels, mode):
  """A decoder that takes words of its own, by chance and more often later."""
  words = _weights('words/kernel', 7, 5)
  update, project = _weights('update/kernel', 10, 5), _weights(
      'project/kernel', 5, 7)
  step = tf.cast(tf1.train.get_or_create_global_step(), tf.float32)
  own_share = 0.3 + 0.1 * step if _is_training(mode) else 0.0
  first = tf.tanh(layers.dense(features['source'], 5))
  rows = tf.shape(first)[0]
  # Not in the loop, whose iterations draw in any order.
  is_own = tf.random.uniform([rows, 4], seed=3) < own_share

  def decode(i, word, state, outputs):
    state = tf.tanh(tf.concat(
        [state, tf.nn.embedding_lookup(words, word)], 1) @ update)
    logits = state @ project
    word = tf.argmax(logits, -1)
    if not _is_predicting(mode):
      word = tf.where(is_own[:, i], word, labels[:, i])
    return i + 1, word, state, outputs.write(i, logits)

  *_, outputs = tf.while_loop(lambda i, *_: i < 4, decode, [
      0, tf.zeros([rows], tf.int64), first, tf.TensorArray(tf.float32, 4)])
  logits = tf.transpose(outputs.stack(), [1, 0, 2])
  logits.set_shape([None, 4, 7])
  found = tf.argmax(logits, -1)
  if _is_predicting(mode):
    return _spec(mode, None, {'words': found}, None)
  loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=logits))
  return _spec(mode, loss, {'words': found}, lambda: {
      'right': tf1.metrics.accuracy(labels, found)})


def sessions(features, labels, mode):
  """A table of states that steps move on; the other rows are the negatives."""
  states = tf1.get_variable('states', [8, 4], trainable=False,
                            initializer=tf1.zeros_initializer())
  items = _weights('items/kernel', 9, 4)
  before = tf.gather(states, features['session']) * (
      1 - features['is_first'])[:, None]
  cell = tf1.nn.rnn_cell.GRUCell(4)
  _, after = cell(tf.nn.embedding_lookup(items, features['item']), before)
  scores = tf.matmul(after, items, transpose_b=True)
  if _is_predicting(mode):
    best = tf.nn.top_k(scores, 3)
    return _spec(mode, None, {'items': best.indices, 'scores': best.values},
                 None)
  mask = labels['mask']
  own = tf.nn.embedding_lookup(items, labels['item'])
  gaps = tf.matmul(after, own, transpose_b=True)
  gaps = tf.linalg.diag_part(gaps)[:, None] - gaps
  others = 1 - tf.eye(tf.shape(gaps)[0])
  share = tf.nn.softmax(tf.where(others > 0, -gaps, tf.fill(
      tf.shape(gaps), -1e9)))
  by_row = -tf.math.log(tf.reduce_sum(share * tf.sigmoid(gaps) * others, 1) + (
      1e-6))
  loss = tf.reduce_sum(by_row * mask) / tf.reduce_sum(mask)
  train_op = None
  if _is_training(mode):
    with tf.control_dependencies([tf1.train.AdagradOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step())]):
      train_op = tf.group(tf1.scatter_update(
          states, features['session'], after))
  return _spec(mode, loss, {'scores': scores}, lambda: {
      'recall': tf1.metrics.mean(tf.cast(
          tf.nn.in_top_k(labels['item'], scores, 3), tf.float32), mask)},
               train_op)


def balanced_classes(features, labels, mode):
  """Classes count by their share of the batch; tasks by variances of theirs."""
  hidden = layers.dense(features['x'], 5, tf.tanh)
  logits, size = layers.dense(hidden, 3), layers.dense(hidden, 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits, 'size': size}, None)
  truth = tf.one_hot(labels['kind'], 3)
  count = tf.reduce_sum(truth, 0)
  weight = tf.math.divide_no_nan(0.1, 1 - tf.pow(0.9, count))
  weight *= 3 / tf.reduce_sum(weight)
  by_row = tf.nn.softmax_cross_entropy_with_logits(
      labels=0.9 * truth + 0.1 / 3, logits=logits)
  by_row *= tf.reduce_sum(weight * truth, 1)
  losses = tf.stack([tf.reduce_mean(by_row), tf.reduce_mean(
      tf.square(size - labels['size']))])
  log_variance = tf1.get_variable('log_variance', [2],
                                  initializer=tf1.zeros_initializer())
  loss = tf.reduce_sum(tf.exp(-log_variance) * losses + log_variance)
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'kind': tf1.metrics.mean_per_class_accuracy(
          labels['kind'], tf.argmax(logits, -1), 3),
      'losses': tf1.metrics.mean_tensor(losses)})


# The model_fns, each with a batch.
ALL = {
    capsules: ({'image': np.square(_normal(6, 6, 1))}, _ints(0, 3)),
    sampled_words: ({'source': _normal(3)}, _ints(0, 7, 4)),
    sessions: ({'session': np.int64([5, 0, 3, 7, 1, 2]), 'item': _ints(0, 9),
                'is_first': np.float32([0, 1, 0, 0, 1, 0])},
               {'item': np.int64([1, 4, 0, 8, 3, 6]),
                'mask': np.float32([1, 1, 0, 1, 1, 1])}),
    balanced_classes: ({'x': _normal(4)},
                       {'kind': np.int64([0, 0, 2, 0, 2, 0]),
                        'size': _normal(1)}),
}
# Their rows do not meet: the mean over the shards is that of the batch.
OF_ROWS = [capsules]
