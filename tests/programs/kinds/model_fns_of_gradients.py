# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, which take or change gradients themselves.

Their features are dictionaries of dense tensors, PREDICT needs no labels, and
trained variables of several dimensions are named `kernel`.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(1)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights
_cross_entropy = model_fns.cross_entropy


@tf.custom_gradient
def _reversed(x, scale):
  return tf.identity(x), lambda upstream: (-scale * upstream, None)


def domains(features, labels, mode):
  """A gradient reversed for a judge of domains, by a scale that rises."""
  hidden = layers.dense(features['x'], 5, tf.tanh)
  logits = layers.dense(hidden, 3)
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits}, None)
  step = tf.cast(tf1.train.get_global_step(), tf.float32)
  judged = layers.dense(
      _reversed(hidden, 2 / (1 + tf.exp(-step)) - 0.5), 1)[:, 0]
  loss = tf1.losses.sparse_softmax_cross_entropy(
      labels['kind'], logits, 1 - labels['domain'])
  loss += tf1.losses.sigmoid_cross_entropy(labels['domain'], judged)
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'accuracy': tf1.metrics.accuracy(
          labels['kind'], tf.argmax(logits, -1), 1 - labels['domain']),
      'judge': tf1.metrics.accuracy(labels['domain'], judged > 0)})


def recomputed(features, labels, mode):
  """Blocks that are computed again for their gradients."""

  def block_of(number):
    def block(x):
      with tf1.variable_scope(
          f'block{number}', reuse=tf1.AUTO_REUSE, use_resource=True):
        return x + tf.tanh(x @ _weights('kernel', 5, 5) + _weights('bias', 5))
    return tf.recompute_grad(block)

  hidden = features['x']
  for number in range(2):
    hidden = block_of(number)(hidden)
  found = layers.dense(hidden, 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_absolute_error(labels, found)})


def _found_by(x, kernel, last):
  return tf.tanh(x @ kernel) @ last


def _stepped(x, target, weights):
  """Returns weights after a step of descent, and the error before it."""
  error = target - _found_by(x, *weights)
  slopes = tf.gradients(tf.reduce_mean(tf.square(error)), weights)
  return [weight - 0.2 * slope
          for weight, slope in zip(weights, slopes)], error


def fast_weights(features, labels, mode):
  """An inner step of descent, through which the outer loss is taken back."""
  weights, error = _stepped(
      features['support'], features['target'], [
          _weights('inner/kernel', 4, 3), _weights('outer/kernel', 3, 1)])
  found = _found_by(features['x'], *weights)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'before': tf1.metrics.mean(tf.square(error)),
      'error': tf1.metrics.root_mean_squared_error(labels, found)})


def tasks(features, labels, mode):
  """Tasks in a loop, each with an inner step of descent of its own."""
  kernel, last = _weights('inner/kernel', 4, 3), _weights('outer/kernel', 3, 1)

  def solve(task):
    support, target, x = task
    weights, _ = _stepped(
        support, target, [tf.identity(kernel), tf.identity(last)])
    return _found_by(x, *weights)

  found = tf.map_fn(solve, tuple(features[key] for key in (
      'support', 'target', 'x')), tf.float32)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_squared_error(labels, found)})


def perturbed(features, labels, mode):
  """Words move along gradients of their losses, or in a random direction."""
  words = tf.nn.embedding_lookup(_weights('words/kernel', 9, 4),
                                 features['ids'])

  def network(words):
    with tf1.variable_scope('network', reuse=tf1.AUTO_REUSE):
      hidden = layers.dense(tf.reduce_mean(words, 1), 4, tf.tanh, name='a')
      return layers.dense(hidden, 3, name='b')

  logits = network(words)
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits}, None)
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  slope, = tf.gradients(loss, words)
  slope /= tf.sqrt(tf.reduce_sum(tf.square(slope), [1, 2], keepdims=True)) + (
      1e-6)
  moved = network(words + 0.5 * tf.stop_gradient(slope))
  direction = tf.nn.l2_normalize(
      tf.random.normal(tf.shape(words), seed=5), [1, 2])

  def divergence(direction):
    target = tf.nn.softmax(tf.stop_gradient(logits))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(
        labels=target, logits=network(words + direction)))

  worst, = tf.gradients(divergence(0.1 * direction), direction)
  worst = tf.nn.l2_normalize(tf.stop_gradient(worst), [1, 2])
  loss += tf.reduce_mean(_cross_entropy(labels, moved)) + (
      divergence(0.3 * worst))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'fooled': tf1.metrics.accuracy(
          tf.argmax(logits, -1), tf.argmax(moved, -1))})


def _normed(name, shape, is_training):
  """Returns weights of norm 1, by a vector that each forward pass writes."""
  weights = _weights(f'{name}/kernel', *shape)
  right = tf1.get_variable(f'{name}/right', [1, shape[1]], trainable=False,
                           initializer=tf1.ones_initializer())
  left = tf.nn.l2_normalize(tf.stop_gradient(
      tf.matmul(right, weights, transpose_b=True)), 1)
  new = tf.nn.l2_normalize(tf.stop_gradient(left @ weights), 1)
  norm = tf.matmul(left @ weights, new, transpose_b=True)
  with tf.control_dependencies([right.assign(new)] if is_training else []):
    return weights / norm


def critic(features, labels, mode):
  """A norm of weights by one more step of an iteration in each forward pass."""
  del labels
  first, last = (_normed(name, shape, _is_training(mode)) for name, shape in (
      ('first', (4, 3)), ('last', (3, 1))))

  def score(x):
    return (tf.nn.leaky_relu(x @ first) @ last)[:, 0]

  real = score(features['real'])
  if _is_predicting(mode):
    return _spec(mode, None, {'score': real}, None)
  false = score(layers.dense(features['noise'], 4))
  loss = tf.reduce_mean(tf.nn.relu(1 - real)) + (
      tf.reduce_mean(tf.nn.relu(1 + false)))
  return _spec(mode, loss, {'score': real}, lambda: {
      'gap': tf1.metrics.mean(real - false)})


@tf.RegisterGradient('TfpluginTestLargestOfBatch')
def _scaled_by_batch(op, upstream):
  """The gradient of a bias, rounded by the largest one of the whole batch."""
  del op
  largest = tf.reduce_max(tf.abs(upstream)) + 1e-6
  rounded = tf.round(upstream / largest * 15) / 15 * largest
  return rounded, tf.reduce_sum(rounded, 0)


def rounded(features, labels, mode):
  """Weights, values and gradients of few bits, by gradients of other ops."""
  override = tf1.get_default_graph().gradient_override_map

  def of_bits(x, bits):
    with override({'Round': 'Identity'}):
      return tf.round(x * (2**bits - 1)) / (2**bits - 1)

  kernel = tf.tanh(_weights('first/kernel', 4, 5))
  kernel = 2 * of_bits(
      kernel / 2 / tf.reduce_max(tf.abs(kernel)) + 0.5, 2) - 1
  with override({'BiasAdd': 'TfpluginTestLargestOfBatch'}):
    hidden = tf.nn.bias_add(features['x'] @ kernel, _weights('first/bias', 5))
  hidden = of_bits(tf.clip_by_value(hidden / 4 + 0.5, 0, 1), 3)
  found = layers.dense(hidden, 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  loss = tf1.losses.mean_squared_error(labels, found)
  return _spec(mode, loss, {'found': found}, lambda: {
      'below': tf1.metrics.percentage_below(found, 0.5)})


# The model_fns, each with a batch.
ALL = {
    domains: ({'x': _normal(4)}, {
        'kind': _ints(0, 3), 'domain': np.float32([0, 1, 0, 0, 0, 0])}),
    recomputed: ({'x': _normal(5)}, _normal(1)),
    fast_weights: ({'support': _normal(4), 'target': _normal(1),
                    'x': _normal(4)}, _normal(1)),
    tasks: ({'support': _normal(3, 4), 'target': _normal(3, 1),
             'x': _normal(2, 4)}, _normal(2, 1)),
    perturbed: ({'ids': _ints(0, 9, 5)}, _ints(0, 3)),
    critic: ({'real': _normal(4), 'noise': _normal(2)}, _normal()),
    rounded: ({'x': _normal(4)}, _normal(1)),
}
# Their rows do not meet: the mean over the shards is that of the batch.
OF_ROWS = [domains, recomputed, tasks, critic]
