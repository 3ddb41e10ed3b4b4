# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model_fns of the kinds that public code has, each small, with its data.

In most of them rows meet rows, or a loop, a count or a mask spans the batch.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
layers = tf1.layers

_ROWS = 6
is_training = tf.estimator.ModeKeys.TRAIN.__eq__
is_predicting = tf.estimator.ModeKeys.PREDICT.__eq__


def drawing(seed):
  """Returns two functions, which draw numbers and integers for each row."""
  random = np.random.RandomState(seed)

  def normal(*shape):
    return random.randn(_ROWS, *shape).astype(np.float32)

  def ints(low, high, *shape, dtype=np.int64):
    return random.randint(low, high, [_ROWS, *shape]).astype(dtype)

  return normal, ints


normal, ints = drawing(0)


def weights(name, *shape):
  return tf1.get_variable(name, shape,
                          initializer=tf1.glorot_uniform_initializer())


def cross_entropy(labels, logits):
  return tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=logits)


def spec(mode, loss, predictions, metrics, train_op=None):
  """Returns a spec; `metrics` makes the metrics, which only EVAL has."""
  if mode == tf.estimator.ModeKeys.TRAIN and train_op is None:
    train_op = tf1.train.AdagradOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, predictions=predictions,
      eval_metric_ops=metrics()
      if mode == tf.estimator.ModeKeys.EVAL else None)


def interest(features, labels, mode):
  """Attention of a candidate to a padded history, and a batch norm."""
  items = weights('items', 20, 4)
  query = tf.nn.embedding_lookup(items, features['candidate'])
  keys = tf.nn.embedding_lookup(items, features['history'])
  queries = tf.tile(query[:, None], [1, 5, 1])
  score = layers.dense(
      tf.concat([queries, keys, queries - keys, queries * keys], -1), 8,
      tf.nn.sigmoid)
  score = tf.squeeze(layers.dense(score, 1), -1)
  score = tf.where(tf.sequence_mask(features['length'], 5), score,
                   tf.fill(tf.shape(score), -2.0**32 + 1))
  user = tf.squeeze(tf.matmul(tf.nn.softmax(score)[:, None], keys), 1)
  is_training = mode == tf.estimator.ModeKeys.TRAIN
  hidden = layers.batch_normalization(
      tf.concat([user, query], -1), training=is_training)
  logits = layers.dense(hidden, 1)[:, 0]
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
      labels=labels, logits=logits))
  updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(updates if is_training else []):
    loss = tf.identity(loss)
  click = tf.sigmoid(logits)
  return spec(mode, loss, {'click': click},
               lambda: {'auc': tf1.metrics.auc(labels, click)})


def experts(features, labels, mode):
  """Two tasks with gates over experts; the second is a product of both."""
  outputs = tf.stack([layers.dense(features, 4, tf.nn.relu)
                      for _ in range(3)], 1)

  def task():
    gate = tf.nn.softmax(layers.dense(features, 3))
    mixed = tf.reduce_sum(outputs * gate[..., None], 1)
    return tf.sigmoid(layers.dense(mixed, 1))[:, 0]

  click, both = task(), task()
  both *= click
  tf1.losses.log_loss(labels[:, 0], click)
  tf1.losses.log_loss(labels[:, 1], both)
  return spec(mode, tf1.losses.get_total_loss(), {'both': both},
               lambda: {'auc': tf1.metrics.auc(labels[:, 1], both),
                        'mean': tf1.metrics.mean(click)})


def speech(features, labels, mode):
  """CTC, time-major, with an edit distance."""
  frames = tf.transpose(layers.dense(features['frames'], 6), [1, 0, 2])
  sparse = tf.sparse.from_dense(labels)
  loss = tf.reduce_mean(tf1.nn.ctc_loss(sparse, frames, features['length']))
  decoded, _ = tf.nn.ctc_greedy_decoder(frames, features['length'])
  distance = tf.edit_distance(tf.cast(decoded[0], tf.int32), sparse)
  return spec(mode, loss, {'distance': distance}, lambda: {
      'label_error_rate': tf1.metrics.mean(tf.reduce_mean(distance))})


def detection(features, labels, mode):
  """The hardest negatives of the batch, three for each positive."""
  logits = layers.dense(features, 3)
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=logits)
  is_positive = labels > 0
  positives = tf.reduce_sum(tf.cast(is_positive, tf.int32))
  negative = tf.where(is_positive, tf.zeros_like(losses), losses)
  count = tf.minimum(3 * positives, tf.size(losses) - positives)
  least = tf.nn.top_k(tf.reshape(negative, [-1]), count).values[-1]
  chosen = tf.where(is_positive | (negative >= least), losses,
                    tf.zeros_like(losses))
  loss = tf.reduce_sum(chosen) / tf.cast(positives, tf.float32)
  kind = tf.argmax(logits, -1)
  return spec(mode, loss, {'kind': kind}, lambda: {
      'accuracy': tf1.metrics.accuracy(labels, kind)})


def translation(features, labels, mode):
  """An RNN, a masked mean per word, a global norm; a loop that predicts."""
  cell = tf1.nn.rnn_cell.GRUCell(5)
  _, state = tf1.nn.dynamic_rnn(
      cell, features['source'], features['length'], dtype=tf.float32)
  words, project = weights('words', 7, 5), weights('project', 5, 7)

  def advance(state, word):
    state = tf.tanh(state + tf.nn.embedding_lookup(words, word))
    return state, state @ project

  if mode == tf.estimator.ModeKeys.PREDICT:
    def body(i, word, state, found):
      state, logits = advance(state, word)
      word = tf.argmax(logits, -1)
      return i + 1, word, state, found.write(i, word)
    first = tf.zeros([tf.shape(features['source'])[0]], tf.int64)
    *_, found = tf.while_loop(lambda i, *_: i < 4, body, [
        0, first, state, tf.TensorArray(tf.int64, 4)])
    return spec(mode, None, {'words': tf.transpose(found.stack())}, None)
  losses = []
  for i in range(3):
    state, logits = advance(state, labels[:, i])
    losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels[:, i + 1], logits=logits))
  mask = tf.sequence_mask(features['target_length'], 3, dtype=tf.float32)
  loss = tf.reduce_sum(tf.stack(losses, 1) * mask) / tf.reduce_sum(mask)
  optimizer = tf1.train.AdamOptimizer(0.01)
  gradients, variables = zip(*optimizer.compute_gradients(loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
  return spec(
      mode, loss, None, lambda: {'perplexity': tf1.metrics.mean(tf.exp(loss))},
      optimizer.apply_gradients(zip(gradients, variables),
                                tf1.train.get_global_step()))


def triplets(features, labels, mode):
  """The hardest positive and negative of each row within the batch."""
  vectors = tf.nn.l2_normalize(layers.dense(features, 4), -1)
  distances = tf.maximum(
      2 - 2 * tf.matmul(vectors, vectors, transpose_b=True), 0.0)
  same = tf.equal(labels[:, None], labels[None])
  itself = tf.cast(tf.eye(tf.shape(labels)[0]), tf.bool)
  positive = tf.reduce_max(
      tf.where(same & ~itself, distances, tf.zeros_like(distances)), 1)
  negative = tf.reduce_min(
      tf.where(same, tf.fill(tf.shape(distances), 9.0), distances), 1)
  loss = tf.reduce_mean(tf.nn.softplus(positive - negative))
  right = tf.reduce_mean(tf.cast(positive < negative, tf.float32))
  return spec(mode, loss, {'vector': vectors}, lambda: {
      'right': tf1.metrics.mean(right)})


def tagging(features, labels, mode):
  """A conditional random field: `tf.scan` over time."""
  unary, pairs = layers.dense(features, 3), weights('pairs', 3, 3)
  paths = tf.scan(
      lambda before, now: tf.reduce_logsumexp(
          before[:, :, None] + pairs[None], 1) + now,
      tf.transpose(unary, [1, 0, 2]))[-1]
  score = tf.reduce_sum(unary * tf.one_hot(labels, 3), [1, 2]) + tf.reduce_sum(
      tf.gather_nd(pairs, tf.stack([labels[:, :-1], labels[:, 1:]], -1)), 1)
  loss = tf.reduce_mean(tf.reduce_logsumexp(paths, 1) - score)
  tags = tf.argmax(unary, -1)
  return spec(mode, loss, {'tags': tags}, lambda: {
      'accuracy': tf1.metrics.accuracy(labels, tags)})


def retrieval(features, labels, mode):
  """A softmax over the batch, corrected by counts of the batch's items."""
  del labels
  queries = layers.dense(features['query'], 4)
  item = features['item']
  items = tf.nn.embedding_lookup(weights('items', 9, 4), item)
  _, index, count = tf.unique_with_counts(item)
  popularity = tf.gather(tf.math.log(tf.cast(count, tf.float32)), index)
  logits = 2 * tf.matmul(queries, items, transpose_b=True) - popularity[None]
  same = tf.cast(tf.equal(item[:, None], item[None]), tf.float32)
  loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(
      labels=same / tf.reduce_sum(same, 1, keepdims=True), logits=logits))
  rows = tf.range(tf.shape(queries)[0])
  return spec(mode, loss, {'score': tf.reduce_sum(queries * items, 1)},
               lambda: {'recall': tf1.metrics.mean(tf.cast(
                   tf.nn.in_top_k(rows, logits, 1), tf.float32))})


def mixture(features, labels, mode):
  """A mixture of densities, with a penalty on all kernels."""
  hidden = layers.dense(features, 8, tf.tanh)
  mean, log_scale, share = tf.split(layers.dense(hidden, 9), 3, -1)
  density = tf.nn.log_softmax(share) - log_scale - tf.square(
      (labels - mean) / tf.exp(log_scale)) / 2
  loss = -tf.reduce_mean(tf.reduce_logsumexp(density, 1))
  loss += 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables()
                           if 'kernel' in v.name])
  expected = tf.reduce_sum(tf.nn.softmax(share) * mean, 1, keepdims=True)
  return spec(mode, loss, {'mean': expected}, lambda: {
      'error': tf1.metrics.mean_absolute_error(labels, expected)})


def ranking(features, labels, mode):
  """Pairs within a query, weighted by ranks, over the pairs of the batch."""
  score = layers.dense(features, 1)[:, :, 0]
  gap = score[:, :, None] - score[:, None]
  is_better = tf.cast(labels[:, :, None] > labels[:, None], tf.float32)
  gain = tf.pow(2.0, labels)
  rank = tf.cast(tf.argsort(tf.argsort(-score, -1), -1), tf.float32)
  discount = 1 / tf.math.log(2 + rank)
  weight = tf.stop_gradient(
      tf.abs(gain[:, :, None] - gain[:, None]) *
      tf.abs(discount[:, :, None] - discount[:, None])) * is_better
  pairs = tf.reduce_sum(is_better)
  loss = tf.reduce_sum(weight * tf.nn.softplus(-gap)) / tf.maximum(pairs, 1)
  return spec(mode, loss, {'score': score}, lambda: {
      'pairs': tf1.metrics.mean(pairs)})


def two_optimizers(features, labels, mode):
  """FTRL and RMSProp, weights by label, and moving averages of variables."""
  with tf1.variable_scope('deep'):
    hidden = layers.dense(features, 4, tf.nn.relu)
    logits = layers.dense(hidden, 1)[:, 0]
  with tf1.variable_scope('wide'):
    logits += tf.reduce_sum(features * weights('weight', 5), 1)
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits, weights=1 + labels)
  step = tf1.train.get_global_step()
  average = tf1.train.ExponentialMovingAverage(0.9, step)
  with tf.control_dependencies([
      tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001).minimize(
          loss, step, tf1.trainable_variables('wide')),
      tf1.train.RMSPropOptimizer(0.01).minimize(
          loss, var_list=tf1.trainable_variables('deep'))]):
    train_op = average.apply(tf1.trainable_variables())
  click = tf.sigmoid(logits)
  return spec(mode, loss, {'click': click}, lambda: {
      'precision': tf1.metrics.precision_at_thresholds(labels, click, [0.5])},
               train_op)


def plateau(features, labels, mode):
  """A moving average of the loss chooses the learning rate; decay by hand."""
  predicted = layers.dense(features, 1)
  loss = tf.reduce_mean(tf.square(predicted - labels))
  average = tf1.get_variable('average', [], trainable=False,
                             initializer=tf1.zeros_initializer())
  rate = tf.where(average.assign(0.9 * average + 0.1 * loss) > 0.05, 0.1, 0.01)
  optimizer = tf1.train.MomentumOptimizer(rate, 0.9)
  train_op = optimizer.apply_gradients(
      [(tf.clip_by_norm(gradient, 1.0) + 1e-4 * variable, variable)
       for gradient, variable in optimizer.compute_gradients(loss)],
      tf1.train.get_global_step())
  return spec(mode, loss, {'predicted': predicted}, lambda: {
      'rmse': tf1.metrics.root_mean_squared_error(labels, predicted)}, train_op)


# The model_fns, each with a batch.
ALL = {
    interest: ({'candidate': ints(0, 20), 'history': ints(0, 20, 5),
                'length': ints(1, 6)}, ints(0, 2, dtype=np.float32)),
    experts: (normal(7), ints(0, 2, 2, dtype=np.float32)),
    speech: ({'frames': normal(8, 3), 'length': ints(6, 9, dtype=np.int32)},
             ints(1, 5, 3, dtype=np.int32)),
    detection: (normal(9, 4), np.where(normal(9) > 0.5, ints(1, 3, 9), 0)),
    translation: ({'source': normal(4, 3), 'length': ints(1, 5),
                   'target_length': ints(1, 4)}, ints(0, 7, 4)),
    triplets: (normal(5), np.int32([0, 1, 2, 0, 1, 2])),
    tagging: (normal(5, 4), ints(0, 3, 5)),
    retrieval: ({'query': normal(6), 'item': ints(0, 9)}, normal()),
    mixture: (normal(3), normal(1)),
    ranking: (normal(4, 3), ints(0, 3, 4, dtype=np.float32)),
    two_optimizers: (normal(5), ints(0, 2, dtype=np.float32)),
    plateau: (normal(3), normal(1)),
}
# Their rows do not meet: the mean over the shards is that of the batch.
OF_ROWS = [experts, speech, tagging, mixture, two_optimizers]
