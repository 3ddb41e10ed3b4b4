# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, with derivatives by inputs, and with loops.

Loops end early for some rows, choose among rows, or have gradients inside.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(3)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights
_cross_entropy = model_fns.cross_entropy


def field(features, labels, mode):
  """First and second derivatives by the coordinates of each row."""
  waves = tf.constant(np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4))
  hidden = tf.concat([tf.sin(features @ waves), tf.cos(features @ waves)], -1)
  hidden = tf.sin(2 * layers.dense(hidden, 6))
  found = layers.dense(hidden, 1)
  slope, = tf.gradients(found, features)
  bend = tf.add_n([tf.gradients(slope[:, i], features)[0][:, i]
                   for i in range(2)])
  loss = tf.reduce_mean(tf.square(found - labels))
  loss += 0.1 * tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1))
  loss += 0.01 * tf.reduce_mean(tf.square(bend))
  return _spec(mode, loss, {'found': found, 'bend': bend}, lambda: {
      'slope': tf1.metrics.mean(tf.norm(slope, axis=1))})


def energies(features, labels, mode):
  """A loop moves rows down an energy: gradients by rows in its body."""

  def energy(x):
    with tf1.variable_scope('energy', reuse=tf1.AUTO_REUSE, use_resource=True):
      return tf.reduce_sum(tf.nn.softplus(x @ _weights('kernel', 3, 6)), 1)

  low = energy(features)
  moved = tf.stop_gradient(tf.while_loop(
      lambda i, _: i < 3,
      lambda i, x: (i + 1, x - 0.1 * tf.gradients(energy(x), x)[0]),
      [0, features + labels])[1])
  high = energy(moved)
  loss = tf.reduce_mean(low - high) + (
      0.1 * tf.reduce_mean(tf.square(low) + tf.square(high)))
  return _spec(mode, loss, {'moved': moved}, lambda: {
      'gap': tf1.metrics.mean(high - low)})


def slopes(features, labels, mode):
  """A tape's gradient by rows, and the Jacobian of each row."""
  with tf1.variable_scope('slopes', use_resource=True):
    kernel = _weights('kernel', 3, 2)
  with tf.GradientTape() as tape:
    tape.watch(features)
    cubes = tf.reduce_sum(tf.pow(tf.tanh(features @ kernel), 3))
  by_cubes = tape.gradient(cubes, features)
  with tf.GradientTape() as tape:
    tape.watch(features)
    found = tf.tanh(features @ kernel)
  jacobian = tape.batch_jacobian(found, features)
  loss = tf.reduce_mean(tf.square(found[:, :1] - labels))
  loss += tf.reduce_mean(tf.square(by_cubes)) + tf.reduce_mean(
      tf.square(jacobian))
  return _spec(mode, loss, {'jacobian': jacobian}, lambda: {
      'slope': tf1.metrics.mean(by_cubes)})


@tf.custom_gradient
def _flowed(start, kernel):
  """Follows a flow for a second; its gradient follows it back."""

  def slope(x):
    return tf.tanh(x @ kernel)

  def advance(i, x):
    first = slope(x)
    second = slope(x + first / 8)
    third = slope(x + second / 8)
    last = slope(x + third / 4)
    return i + 1, x + (first + 2 * second + 2 * third + last) / 24

  end = tf.while_loop(lambda i, _: i < 4, advance, [0, start])[1]

  def gradient(upstream):

    def retreat(i, x, by_x, by_kernel):
      back = slope(x)
      scaled = (1 - tf.square(back)) * by_x
      return (i + 1, x - back / 4,
              by_x + tf.matmul(scaled, kernel, transpose_b=True) / 4,
              by_kernel + tf.matmul(x, scaled, transpose_a=True) / 4)

    return tf.while_loop(lambda i, *_: i < 4, retreat, [
        0, end, upstream, tf.zeros_like(kernel)])[2:]

  return end, gradient


def flow(features, labels, mode):
  """A differential equation, whose gradient is a loop back in time."""
  found = layers.dense(_flowed(layers.dense(features, 4), tf.identity(
      _weights('flow/kernel', 4, 4))), 1)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_absolute_error(labels, found)})


def halting(features, labels, mode):
  """A cell that each row repeats until its chance to halt is used up."""
  cell = tf1.nn.rnn_cell.GRUCell(4)
  cell.build(tf.TensorShape([None, 3]))
  halt = _weights('halt/kernel', 4, 1)
  first = layers.dense(features, 4)
  none = tf.zeros([tf.shape(features)[0], 1])

  def advance(i, state, used, found, steps):
    _, new = cell(features, state)
    chance = tf.sigmoid(new @ halt)
    goes_on = tf.cast(used < 0.99, tf.float32)
    is_last = tf.cast(used + chance >= 0.99, tf.float32)
    share = goes_on * (is_last * (1 - used) + (1 - is_last) * chance)
    return (i + 1, goes_on * new + (1 - goes_on) * state, used + share,
            found + share * new, steps + goes_on)

  *_, found, steps = tf.while_loop(
      lambda i, state, used, *_: (i < 5) & tf.reduce_any(used < 0.99),
      advance, [0, first, none, tf.zeros_like(first), none])
  found = layers.dense(found, 1)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found, 'steps': steps}, lambda: {
      'steps': tf1.metrics.mean(steps)})


def pointers(features, labels, mode):
  """Attention over the inputs as the output, each input taken once."""
  keys, state = tf1.nn.dynamic_rnn(
      tf1.nn.rnn_cell.GRUCell(4), features, dtype=tf.float32)
  keys = layers.dense(keys, 4)
  query, score = _weights('query/kernel', 4, 4), _weights('score/kernel', 4, 1)
  cell = tf1.nn.rnn_cell.GRUCell(4, name='decoder')
  taken = tf.zeros_like(features[:, :, 0])
  given, outputs = tf.zeros_like(features[:, 0]), []
  for i in range(3):
    _, state = cell(given, state)
    logits = tf.tensordot(
        tf.tanh(keys + (state @ query)[:, None]), score, 1)[..., 0] - 9 * taken
    outputs.append(logits)
    chosen = labels[:, i] if _is_training(mode) else tf.argmax(
        logits, 1, tf.int32)
    given = tf.gather(features, chosen, batch_dims=1)
    taken += tf.one_hot(chosen, 3)
  logits = tf.stack(outputs, 1)
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  order = tf.argmax(logits, -1)
  return _spec(mode, loss, {'order': order}, lambda: {
      'right': tf1.metrics.accuracy(labels, order)})


def transducer(features, labels, mode):
  """All alignments of words to frames: a scan over words in one over frames."""
  frames = layers.dense(features, 6)
  words = tf.nn.embedding_lookup(
      _weights('words/kernel', 5, 6), tf.pad(labels, [[0, 0], [1, 0]]))
  log_p = tf.nn.log_softmax(
      layers.dense(tf.tanh(frames[:, :, None] + words[:, None]), 5))
  stay = tf.transpose(log_p[..., 0], [1, 0, 2])
  emit = tf.transpose(tf.reduce_sum(
      log_p[:, :, :2] * tf.one_hot(labels, 5)[:, None], -1), [1, 0, 2])

  def over_words(before, now):
    return tf.reduce_logsumexp(tf.stack([before + now[0], now[1]]), 0)

  def over_frames(before, now):
    stayed = before + now[0]
    later = tf.scan(over_words, (
        tf.transpose(now[1]), tf.transpose(stayed[:, 1:])), stayed[:, 0])
    return tf.concat([stayed[:, :1], tf.transpose(later)], 1)

  first = tf.concat([tf.zeros_like(emit[0, :, :1]), tf.cumsum(emit[0], 1)], 1)
  total = tf.scan(over_frames, (stay[:-1], emit[1:]), first)[-1, :, 2] + (
      stay[-1, :, 2])
  return _spec(mode, -tf.reduce_mean(total), {'total': total}, lambda: {
      'total': tf1.metrics.mean(total)})


def beams(features, labels, mode):
  """Padding left out of a layer; PREDICT keeps the three best sentences."""
  words, project = _weights('words/kernel', 7, 4), _weights(
      'project/kernel', 4, 7)
  embedded = tf.nn.embedding_lookup(words, features)
  flat = tf.reshape(embedded, [-1, 4])
  places = tf.where(tf.reshape(features, [-1]) > 0)
  hidden = tf.scatter_nd(
      places, layers.dense(tf.gather_nd(flat, places), 4, tf.nn.relu),
      tf.shape(flat, tf.int64))
  state = tf.reduce_mean(embedded + tf.reshape(hidden, tf.shape(embedded)), 1)

  def advance(word, state):
    state = tf.tanh(state + tf.nn.embedding_lookup(words, word))
    return state, state @ project

  if _is_predicting(mode):
    rows = tf.shape(features)[0]
    beam = tf.tile(tf.range(rows)[:, None], [1, 3])

    def search(i, found, scores, state):
      state, logits = advance(
          tf.reshape(found[:, :, -1], [-1]), tf.reshape(state, [-1, 4]))
      logits = tf.reshape(tf.nn.log_softmax(logits), [rows, 3, 7])
      scores, best = tf.nn.top_k(
          tf.reshape(scores[:, :, None] + logits, [rows, 21]), 3)
      chosen = tf.stack([beam, best // 7], 2)
      found = tf.concat([tf.gather_nd(found, chosen), best[..., None] % 7], 2)
      return i + 1, found, scores, tf.gather_nd(
          tf.reshape(state, [rows, 3, 4]), chosen)

    _, found, scores, _ = tf.while_loop(
        lambda i, *_: i < 4, search, [
            0, tf.zeros([rows, 3, 1], tf.int32),
            tf.tile([[0.0, -1e9, -1e9]], [rows, 1]),
            tf.tile(state[:, None], [1, 3, 1])], [
                tf.TensorShape([]), tf.TensorShape([None, 3, None]),
                tf.TensorShape([None, 3]), tf.TensorShape([None, 3, 4])])
    return _spec(mode, None, {'words': found, 'scores': scores}, None)
  losses = []
  for i in range(3):
    state, logits = advance(labels[:, i], state)
    losses.append(_cross_entropy(labels[:, i + 1], logits))
  is_word = tf.cast(labels[:, 1:] > 0, tf.float32)
  losses = tf.stack(losses, 1) * is_word
  loss = tf.reduce_sum(losses) / tf.reduce_sum(is_word)
  return _spec(mode, loss, None, lambda: {
      'by_word': tf1.metrics.mean_tensor(tf.reduce_sum(losses, 0))})


def private(features, labels, mode):
  """A loop takes each row's gradient and cuts its length; then noise."""
  with tf1.variable_scope('private', use_resource=True):
    kernel = _weights('kernel', 5, 1)
  found = features @ kernel
  by_row = tf.reduce_sum(tf.square(found - labels), 1)
  loss = tf.reduce_mean(by_row)
  train_op = None
  if _is_training(mode):
    rows = tf.shape(features)[0]

    def add(i, total):
      error = tf.square(features[i:i + 1] @ kernel - labels[i:i + 1])
      gradient, = tf.gradients(error, kernel)
      return i + 1, total + tf.clip_by_norm(gradient, 0.5)

    _, total = tf.while_loop(
        lambda i, _: i < rows, add, [0, tf.zeros([5, 1])])
    total += tf.random.normal([5, 1], stddev=0.1, seed=8)
    train_op = tf1.train.GradientDescentOptimizer(0.1).apply_gradients(
        [(total / tf.cast(rows, tf.float32), kernel)],
        tf1.train.get_global_step())
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean(by_row)}, train_op)


# The model_fns, each with a batch.
ALL = {
    field: (_normal(2), _normal(1)),
    energies: (_normal(3), _normal(1)),
    slopes: (_normal(3), _normal(1)),
    flow: (_normal(3), _normal(1)),
    halting: (_normal(3), _normal(1)),
    pointers: (_normal(3, 2), np.argsort(_normal(3), 1).astype(np.int32)),
    transducer: (_normal(4, 3), _ints(1, 5, 2)),
    beams: (_ints(0, 7, 5), np.maximum(_ints(0, 7, 4), [[1, 1, 0, 0]])),
    private: (_normal(5), _normal(1)),
}
# Their rows do not meet: the mean over the shards is that of the batch.
OF_ROWS = [field, energies, slopes, flow, halting, pointers, transducer]
