# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, whose rows do not stay the first dimension.

Rows are stacked, repeated, moved behind other dimensions, or found by numbers.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(4)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights
_cross_entropy = model_fns.cross_entropy


def pairs(features, labels, mode):
  """Both pictures of a pair in one batch, through one network and its norm."""
  both = layers.batch_normalization(layers.dense(
      tf.concat([features['a'], features['b']], 0), 6),
                                    training=_is_training(mode))
  a, b = tf.split(layers.dense(tf.nn.relu(both), 4), 2)
  distance = tf.norm(a - b + 1e-3, axis=1)
  loss = tf.reduce_mean(
      labels * tf.square(distance) +
      (1 - labels) * tf.square(tf.nn.relu(1 - distance)))
  updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(updates if _is_training(mode) else []):
    loss = tf.identity(loss)
  return _spec(mode, loss, {'distance': distance}, lambda: {
      'right': tf1.metrics.accuracy(labels > 0, distance < 0.5)})


def sets(features, labels, mode):
  """Heads of attention between masked parts of a set and learned queries."""
  x, mask = features['x'], features['mask']
  parts = layers.dense(x, 8, tf.nn.relu)
  queries = tf.tile(_weights('queries/kernel', 3, 8)[None],
                    [tf.shape(x)[0], 1, 1])

  def attend(queries, keys, mask):
    heads = [tf.stack(tf.split(layers.dense(each, 8), 2, -1), 1)
             for each in (queries, keys)]
    scores = tf.matmul(*heads, transpose_b=True) / 2 - (
        9 * (1 - mask[:, None, None]))
    found = tf.matmul(tf.nn.softmax(scores), heads[1])
    return tf.concat(tf.unstack(found, axis=1), -1)

  summary = attend(queries, parts, mask)
  parts += attend(parts, summary, tf.ones_like(summary[:, :, 0]))
  pooled = tf.reduce_sum(parts * mask[..., None], 1) / (
      1 + tf.reduce_sum(mask, 1, keepdims=True))
  found = layers.dense(pooled, 1)
  loss = tf1.losses.mean_squared_error(labels, found)
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_absolute_error(labels, found)})


def graphs(features, labels, mode):
  """Messages along edges; the nodes of all graphs have numbers of their own."""
  count = tf.shape(features['nodes'])[0]
  first = 4 * tf.range(count)[:, None]
  state = tf.reshape(features['nodes'], [-1, 3])
  source, target = (
      tf.reshape(features['edges'][..., i] + first, [-1]) for i in range(2))
  for _ in range(2):
    message = layers.dense(tf.concat(
        [tf.gather(state, source), tf.gather(state, target)], 1), 4, tf.tanh)
    received = tf.math.unsorted_segment_sum(message, target, 4 * count)
    state = layers.dense(tf.concat([state, received], 1), 4, tf.tanh)
  graph = tf.repeat(tf.range(count), 4)
  pooled = tf.concat([tf.math.segment_sum(state, graph),
                      tf.math.segment_max(state, graph)], 1)
  pooled.set_shape([None, 8])
  found = layers.dense(pooled, 1)
  loss = tf1.losses.mean_squared_error(labels, found)
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_squared_error(labels, found)})


def regions(features, labels, mode):
  """Cuts out of pictures, each with the number of its picture."""
  image, boxes = features['image'], features['boxes']
  hidden = layers.conv2d(image, 3, 3, padding='same', activation=tf.nn.relu)
  picture = tf.reshape(tf.tile(
      tf.range(tf.shape(image)[0])[:, None], [1, 2]), [-1])
  cuts = tf.image.crop_and_resize(
      hidden, tf.reshape(boxes, [-1, 4]), picture, [2, 2])
  logits = tf.reshape(layers.dense(tf.reshape(cuts, [-1, 12]), 3), [-1, 2, 3])
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, -1))})


def straightened(features, labels, mode):
  """Pictures turned by a matrix each, through one list of all pixels."""
  moved = 0.2 * tf.reshape(layers.dense(layers.flatten(features), 6), [
      -1, 2, 3]) + tf.constant([[[1.0, 0, 0], [0, 1, 0]]])
  x, y = tf.meshgrid(tf.linspace(-1.0, 1.0, 4), tf.linspace(-1.0, 1.0, 4))
  grid = tf.stack([tf.reshape(x, [-1]), tf.reshape(y, [-1]), tf.ones([16])])
  rows = tf.shape(features)[0]
  places = 1.5 * (tf.matmul(moved, tf.tile(grid[None], [rows, 1, 1])) + 1)
  x, y = (tf.reshape(places[:, i], [-1]) for i in range(2))
  first = tf.repeat(16 * tf.range(rows), 16)
  pixels, found = tf.reshape(features, [-1, 2]), 0
  for right in (0, 1):
    for down in (0, 1):
      at_x, at_y = tf.floor(x) + right, tf.floor(y) + down
      share = (1 - tf.abs(x - at_x)) * (1 - tf.abs(y - at_y))
      at_x, at_y = (tf.clip_by_value(tf.cast(each, tf.int32), 0, 3)
                    for each in (at_x, at_y))
      found += share[:, None] * tf.gather(pixels, first + 4 * at_y + at_x)
  hidden = layers.conv2d(tf.reshape(found, [-1, 4, 4, 2]), 3, 3)
  logits = layers.dense(layers.flatten(hidden), 3)
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  return _spec(mode, loss, {'moved': moved}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, -1))})


def _every(x, rate):
  """Returns `[rows, time, n]` as a batch of every `rate`-th moment."""
  x = tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % rate], [0, 0]])
  by_phase = tf.transpose(tf.reshape(x, [-1, rate, x.shape[2]]), [1, 0, 2])
  return tf.reshape(by_phase, [tf.shape(x)[0] * rate, -1, x.shape[2]])


def _all_moments(x, rate):
  """Returns what `_every` returned, as it was before."""
  by_phase = tf.transpose(tf.reshape(x, [rate, -1, x.shape[2]]), [1, 0, 2])
  return tf.reshape(by_phase, [tf.shape(x)[0] // rate, -1, x.shape[2]])


def waves(features, labels, mode):
  """Convolutions with holes in time: every second moment in the batch."""
  hidden, logits = layers.conv1d(features, 4, 1), 0
  for rate in (1, 2):
    found = tf.nn.conv1d(
        _every(tf.pad(hidden, [[0, 0], [rate, 0], [0, 0]]), rate),
        _weights(f'{rate}/kernel', 2, 4, 8), 1, 'VALID')
    found = _all_moments(found, rate)[:, :tf.shape(features)[1]]
    value, gate = tf.split(found, 2, -1)
    value = tf.tanh(value) * tf.sigmoid(gate)
    hidden += layers.conv1d(value, 4, 1)
    logits += layers.conv1d(value, 3, 1)
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, -1))})


def samples(features, labels, mode):
  """Several draws of each row before the rows, joined by a soft maximum."""
  del labels
  hidden = layers.dense(features, 5, tf.tanh)
  mean, log_scale, target = (tf.tile(each, [3, 1]) for each in (
      layers.dense(hidden, 2), layers.dense(hidden, 2), features))
  noise = tf.random.normal(tf.shape(mean), seed=7)
  code = mean + tf.exp(log_scale) * noise
  made = layers.dense(layers.dense(code, 5, tf.tanh), 4)
  weight = tf.reshape(
      tf.reduce_sum(tf.square(noise) / 2 - tf.square(code) / 2 + log_scale, 1) -
      tf.reduce_sum(tf.square(made - target), 1), [3, -1])
  bound = tf.reduce_logsumexp(weight, 0) - np.log(3)
  share = tf.nn.softmax(weight, 0)
  return _spec(mode, -tf.reduce_mean(bound), {'bound': bound}, lambda: {
      'used': tf1.metrics.mean(1 / tf.reduce_sum(tf.square(share), 0))})


def interactions(features, labels, mode):
  """Products of all fields, with the rows behind the values; cross layers."""
  fields = tf.nn.embedding_lookup(_weights('fields/kernel', 10, 3), features)
  by_value = tf.stack(tf.split(fields, 3, 2))
  products = tf.reshape(
      tf.matmul(by_value, by_value, transpose_b=True), [3, -1, 16])
  products = tf.nn.conv1d(tf.transpose(products, [1, 0, 2]), _weights(
      'products/kernel', 1, 16, 3), 1, 'VALID')
  flat = crossed = tf.reshape(fields, [-1, 12])
  for i in range(2):
    crossed += flat * tf.tensordot(crossed, _weights(f'{i}/kernel', 12, 1), 1)
  logits = layers.dense(tf.concat(
      [tf.reduce_sum(products, 1), crossed], 1), 1)[:, 0]
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'auc': tf1.metrics.auc(labels, tf.sigmoid(logits))})


def documents(features, labels, mode):
  """Sentences as rows of an RNN, then attention in rows of documents."""
  words = tf.nn.embedding_lookup(_weights('words/kernel', 9, 4), tf.reshape(
      features['words'], [-1, 4]))
  states, _ = tf1.nn.dynamic_rnn(
      tf1.nn.rnn_cell.GRUCell(6), words, tf.reshape(features['length'], [-1]),
      dtype=tf.float32)

  def attend(x):
    score = layers.dense(layers.dense(x, 4, tf.tanh), 1, use_bias=False)
    return tf.reduce_sum(x * tf.nn.softmax(score, 1), 1)

  sentences = tf.reshape(attend(states), [-1, 3, 6])
  logits = layers.dense(attend(sentences), 3)
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, 1))})


def answers(features, labels, mode):
  """Steps chosen out of all rows: a list of numbers, and a partition."""
  states, _ = tf1.nn.dynamic_rnn(
      tf1.nn.rnn_cell.BasicLSTMCell(4), tf.one_hot(features['question'], 6),
      features['length'], dtype=tf.float32)
  logits = layers.dense(states, 6)
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits[:, -1]}, None)
  flat = tf.reshape(labels['next'], [-1])
  chosen = tf.gather(tf.reshape(logits, [-1]), 6 * tf.range(
      tf.size(flat)) + flat)
  is_step = tf.reshape(tf.sequence_mask(features['length'], 4), [-1])
  _, chosen = tf.dynamic_partition(chosen, tf.cast(is_step, tf.int32), 2)
  _, right = tf.dynamic_partition(
      tf.reshape(labels['right'], [-1]), tf.cast(is_step, tf.int32), 2)
  loss = tf1.losses.sigmoid_cross_entropy(right, chosen)
  return _spec(mode, loss, {'logits': logits[:, -1]}, lambda: {
      'auc': tf1.metrics.auc(right, tf.sigmoid(chosen))})


def dispatched(features, labels, mode):
  """Rows sent to two experts each by a split of unknown sizes, and back."""
  scores, best = tf.nn.top_k(features @ _weights('gate/kernel', 5, 4), 2)
  gates = tf.reduce_sum(
      tf.one_hot(best, 4) * tf.nn.softmax(scores)[..., None], 1)
  expert, row = tf.unstack(tf.where(tf.transpose(gates) > 0), axis=1)
  sizes = tf.reduce_sum(tf.cast(gates > 0, tf.int32), 0)
  found = tf.concat([
      layers.dense(each, 3, tf.nn.relu)
      for each in tf.split(tf.gather(features, row), sizes, 0, 4)], 0)
  found *= tf.gather_nd(gates, tf.stack([row, expert], 1))[:, None]
  found = layers.dense(tf.math.unsorted_segment_sum(
      found, row, tf.shape(features)[0]), 1)
  importance = tf.reduce_sum(gates, 0)
  mean, variance = tf.nn.moments(importance, 0)
  loss = tf.reduce_mean(tf.square(found - labels)) + (
      0.1 * variance / tf.square(mean))
  return _spec(mode, loss, {'found': found, 'gates': gates}, lambda: {
      'importance': tf1.metrics.mean_tensor(importance)})


def crosses(features, labels, mode):
  """Hashed texts of two fields; each entry that the batch uses counts once."""
  text = tf.strings.as_string(features)
  both = tf.strings.join([text[:, 0], text[:, 1]], '_')
  hashed = tf.stack([
      tf.strings.to_hash_bucket_fast(both, 17),
      tf.strings.to_hash_bucket_strong(text[:, 2], 17, [1, 2])], 1)
  entries = tf.concat([features, hashed + 10], 1)
  table = _weights('table/kernel', 27, 3)
  found = tf.nn.embedding_lookup(table, entries)
  logits = tf.reduce_sum(tf.square(tf.reduce_sum(found, 1)) - tf.reduce_sum(
      tf.square(found), 1), 1) / 2
  used, _ = tf.unique(tf.reshape(entries, [-1]))
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits) + (
      0.01 * tf.nn.l2_loss(tf.gather(table, used)))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'used': tf1.metrics.mean(tf.size(used))})


def grades(features, labels, mode):
  """Grades in order, by thresholds that the step keeps in order."""
  steps = tf.nn.softplus(_weights('steps', 3))
  below = tf.sigmoid(tf.cumsum(steps)[None] - layers.dense(features, 1) - 2)
  share = tf.concat([below, tf.ones_like(below[:, :1])], 1) - tf.pad(
      below, [[0, 0], [1, 0]])
  loss = -tf.reduce_mean(tf.math.log(
      tf.gather(share, labels, batch_dims=1) + 1e-6))
  grade = tf.argmax(share, 1)
  return _spec(mode, loss, {'grade': grade}, lambda: {
      'error': tf1.metrics.mean_absolute_error(labels, grade)})


_CORNERS = np.sort(np.tanh(np.abs(_normal(2, 2, 2))), 2)

# The model_fns, each with a batch.
ALL = {
    pairs: ({'a': _normal(3), 'b': _normal(3)}, _ints(0, 2, dtype=np.float32)),
    sets: ({'x': _normal(5, 3), 'mask': _ints(0, 2, 5, dtype=np.float32)},
           _normal(1)),
    graphs: ({'nodes': _normal(4, 3), 'edges': _ints(0, 4, 6, 2,
                                                     dtype=np.int32)},
             _normal(1)),
    regions: ({'image': _normal(4, 4, 2),
               'boxes': _CORNERS.reshape(-1, 2, 4)}, _ints(0, 3, 2)),
    straightened: (_normal(4, 4, 2), _ints(0, 3)),
    waves: (_normal(5, 2), _ints(0, 3, 5)),
    samples: (_normal(4), _normal()),
    interactions: (_ints(0, 10, 4), _ints(0, 2, dtype=np.float32)),
    documents: ({'words': _ints(0, 9, 3, 4), 'length': _ints(1, 5, 3)},
                _ints(0, 3)),
    answers: ({'question': _ints(0, 6, 4), 'length': _ints(1, 5)},
              {'next': _ints(0, 6, 4, dtype=np.int32),
               'right': _ints(0, 2, 4, dtype=np.float32)}),
    dispatched: (_normal(5), _normal(1)),
    crosses: (_ints(0, 10, 3), _ints(0, 2, dtype=np.float32)),
    grades: (_normal(3), _ints(0, 4)),
}
# Their rows do not meet: the mean over the shards is that of the batch.
OF_ROWS = [sets, graphs, regions, straightened, waves, interactions, documents,
           answers, grades]
