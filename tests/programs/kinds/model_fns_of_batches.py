# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, in which rows of a batch meet."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.normal, model_fns.ints
_spec, _weights = model_fns.spec, model_fns.weights


def segmentation(features, labels, mode):
  """Strides and back, with a dice loss per class over the batch."""
  down = layers.conv2d(features, 4, 3, 2, 'same', activation=tf.nn.relu)
  up = layers.conv2d_transpose(down, 3, 2, 2, 'same')
  logits = layers.conv2d(tf.concat([features, up], -1), 3, 1)
  probability, truth = tf.nn.softmax(logits), tf.one_hot(labels, 3)
  both = tf.reduce_sum(probability * truth, [0, 1, 2])
  total = tf.reduce_sum(probability, [0, 1, 2]) + tf.reduce_sum(
      truth, [0, 1, 2])
  dice = tf.reduce_mean((2 * both + 1) / (total + 1))
  weights = tf.gather([0.2, 1.0, 3.0], labels)
  loss = 1 - dice + tf1.losses.sparse_softmax_cross_entropy(
      labels, logits, weights)
  found = tf.argmax(logits, -1)
  return _spec(mode, loss, {'classes': found}, lambda: {
      'iou': tf1.metrics.mean_iou(labels, found, 3),
      'dice': tf1.metrics.mean(dice)})


def _overlaps(a, b):
  """Returns the overlap of each box of `a` with each of `b`, per image."""
  a, b = a[:, :, None], b[:, None]
  sides = tf.nn.relu(tf.minimum(a[..., 2:], b[..., 2:]) - tf.maximum(
      a[..., :2], b[..., :2]))
  both = tf.reduce_prod(sides, -1)
  return both / (tf.reduce_prod(a[..., 2:] - a[..., :2], -1) + tf.reduce_prod(
      b[..., 2:] - b[..., :2], -1) - both + 1e-6)


def boxes(features, labels, mode):
  """Anchors matched to boxes by overlap, and detections without overlaps."""
  anchors = tf.constant([[[0., 0, 2, 2], [0, 2, 2, 4], [2, 0, 4, 2],
                          [2, 2, 4, 4], [1, 1, 3, 3], [0, 0, 4, 4]]])
  moved = tf.reshape(layers.dense(features, 24), [-1, 6, 4])
  logits = layers.dense(features, 6)
  found = anchors + moved
  if mode == tf.estimator.ModeKeys.PREDICT:
    kept = tf.map_fn(lambda x: tf.image.non_max_suppression_padded(
        x[0], x[1], 3, 0.5, pad_to_max_output_size=True)[0],
                     (found, logits), tf.int32)
    return _spec(mode, None, {'boxes': tf.gather(found, kept, batch_dims=1),
                              'kept': kept}, None)
  overlaps = _overlaps(tf.tile(anchors, [tf.shape(labels)[0], 1, 1]), labels)
  target = tf.gather(labels, tf.argmax(overlaps, 2), batch_dims=1)
  # The best anchor of a box is taken, too.
  best = tf.reduce_max(tf.one_hot(tf.argmax(overlaps, 1), 6), 1) > 0
  positive = tf.cast(best | (tf.reduce_max(overlaps, 2) > 0.4), tf.float32)
  count = tf.maximum(tf.reduce_sum(positive), 1)
  probability = tf.sigmoid(logits)
  focal = tf.square(positive - probability) * (
      tf.nn.sigmoid_cross_entropy_with_logits(labels=positive, logits=logits))
  error = tf.reduce_sum(tf.keras.losses.huber(target, found)[..., None] * (
      positive[..., None]))
  loss = (tf.reduce_sum(focal) + error) / count
  return _spec(mode, loss, None, lambda: {
      'overlap': tf1.metrics.mean(tf.reduce_max(overlaps, 2), positive),
      'found': tf1.metrics.recall(positive, probability > 0.5)})


def pairs_of_classes(features, labels, mode):
  """A smooth AUC: each positive with each negative of the batch."""
  score = layers.dense(layers.dense(features, 4, tf.tanh), 1)[:, 0]
  positive = tf.boolean_mask(score, labels > 0)
  negative = tf.boolean_mask(score, labels <= 0)
  gaps = positive[:, None] - negative[None]
  loss = tf.reduce_mean(tf.square(tf.nn.relu(0.5 - gaps)))
  return _spec(mode, loss, {'score': score}, lambda: {
      'auc': tf1.metrics.auc(labels, tf.sigmoid(score)),
      'gap': tf1.metrics.mean(gaps)})


def survival(features, labels, mode):
  """A partial likelihood over the rows at risk, sorted by time."""
  risk = layers.dense(features, 1)[:, 0]
  order = tf.argsort(labels['time'], direction='DESCENDING')
  sorted_risk = tf.gather(risk, order)
  event = tf.gather(labels['event'], order)
  at_risk = tf.math.cumulative_logsumexp(sorted_risk)
  loss = -tf.reduce_sum((sorted_risk - at_risk) * event) / tf.reduce_sum(event)
  later = tf.cast(labels['time'][:, None] < labels['time'][None], tf.float32)
  right = tf.cast(risk[:, None] > risk[None], tf.float32)
  comparable = later * labels['event'][:, None]
  return _spec(mode, loss, {'risk': risk}, lambda: {
      'concordance': tf1.metrics.mean(right, comparable)})


def transport(features, labels, mode):
  """A plan between rows and classes of equal size, by a loop."""
  del labels
  logits = layers.dense(features, 3, use_bias=False)

  def balance(i, plan):
    plan -= tf.reduce_logsumexp(plan, 0, keepdims=True)
    return i + 1, plan - tf.reduce_logsumexp(plan, 1, keepdims=True)

  _, plan = tf.while_loop(lambda i, _: i < 3, balance, [0, logits / 0.5])
  plan = tf.stop_gradient(tf.exp(plan))
  loss = -tf.reduce_mean(tf.reduce_sum(plan * tf.nn.log_softmax(logits), 1))
  return _spec(mode, loss, {'plan': plan}, lambda: {
      'share': tf1.metrics.mean_tensor(tf.reduce_mean(plan, 0))})


def balanced_tasks(features, labels, mode):
  """Weights of tasks that follow the norms of the tasks' gradients."""
  shared = _weights('shared', 5, 4)
  hidden = tf.tanh(features @ shared)
  losses = [tf.reduce_mean(tf.square(layers.dense(hidden, 1)[:, 0] -
                                     labels[:, i])) for i in range(2)]
  weights = tf1.get_variable('weights', [2],
                             initializer=tf1.ones_initializer())
  loss = tf.reduce_sum(tf.stack(losses) * tf.stop_gradient(weights))
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    norms = tf.stack([weights[i] * tf.norm(tf.gradients(each, shared)[0])
                      for i, each in enumerate(losses)])
    target = tf.stop_gradient(tf.reduce_mean(norms))
    gap = tf.reduce_sum(tf.abs(norms - target))
    own = [v for v in tf1.trainable_variables() if v is not weights]
    adam, sgd = (tf1.train.AdamOptimizer(0.01),
                 tf1.train.GradientDescentOptimizer(0.01))
    pairs = adam.compute_gradients(loss, own)
    of_weights = sgd.compute_gradients(gap, [weights])
    with tf.control_dependencies([g for g, _ in [*pairs, *of_weights]]):
      train_op = tf.group(
          adam.apply_gradients(pairs, tf1.train.get_global_step()),
          sgd.apply_gradients(of_weights))
  return _spec(mode, loss, {'hidden': hidden}, lambda: {
      'first': tf1.metrics.mean(losses[0])}, train_op)


def policy(features, labels, mode):
  """An actor and a critic: advantages of mean 0, clipped ratios, entropy."""
  hidden = layers.dense(features, 6, tf.tanh)
  logits, value = layers.dense(hidden, 3), layers.dense(hidden, 1)[:, 0]
  log_p = tf.nn.log_softmax(logits)
  chosen = tf.reduce_sum(log_p * tf.one_hot(labels['action'], 3), 1)
  advantage = labels['reward'] - tf.stop_gradient(value)
  mean, variance = tf.nn.moments(advantage, 0)
  advantage = (advantage - mean) / (tf.sqrt(variance) + 1e-6)
  ratio = tf.exp(chosen - labels['log_p'])
  loss = -tf.reduce_mean(tf.minimum(
      ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage))
  loss += 0.5 * tf.reduce_mean(tf.square(labels['reward'] - value))
  loss += 0.01 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, 1))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'clipped': tf1.metrics.mean(tf.cast(
          tf.abs(ratio - 1) > 0.2, tf.float32)),
      'deviation': tf1.metrics.mean(tf.sqrt(variance))})


def code_book(features, labels, mode):
  """Codes that follow the means of the rows next to them."""
  del labels
  codes = tf1.get_variable('codes', [3, 4], trainable=False)
  sizes = tf1.get_variable('sizes', [3], trainable=False,
                           initializer=tf1.ones_initializer())
  sums = tf1.get_variable('sums', [3, 4], trainable=False)
  encoded = layers.dense(features, 4)
  distance = tf.reduce_sum(tf.square(encoded[:, None] - codes[None]), -1)
  nearest = tf.argmin(distance, 1)
  code = tf.gather(codes, nearest)
  through = encoded + tf.stop_gradient(code - encoded)
  loss = tf.reduce_mean(tf.square(layers.dense(through, 5) - features))
  loss += 0.25 * tf.reduce_mean(tf.square(tf.stop_gradient(code) - encoded))
  share = tf.reduce_mean(tf.one_hot(nearest, 3), 0)
  perplexity = tf.exp(-tf.reduce_sum(share * tf.math.log(share + 1e-9)))
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    own = tf.one_hot(nearest, 3)
    with tf.control_dependencies([tf1.train.AdamOptimizer(0.01).minimize(
        loss, tf1.train.get_global_step())]):
      size = sizes.assign(0.9 * sizes + 0.1 * tf.reduce_sum(own, 0))
      total = sums.assign(0.9 * sums + 0.1 * tf.matmul(
          own, encoded, transpose_a=True))
      train_op = codes.assign(total / (size[:, None] + 1e-3))
  return _spec(mode, loss, {'code': nearest}, lambda: {
      'perplexity': tf1.metrics.mean(perplexity)}, train_op)


# The model_fns, each with a batch.
ALL = {
    segmentation: (_normal(4, 4, 2), _ints(0, 3, 4, 4)),
    boxes: (_normal(5), np.float32(
        [[[0, 0, 2, 2.5], [2, 1.5, 4, 4]]]) + 0.1 * _normal(2, 4)),
    pairs_of_classes: (_normal(5), np.float32([1, 0, 0, 1, 0, 1])),
    survival: (_normal(4), {'time': np.square(_normal()),
                            'event': np.float32([1, 0, 1, 1, 0, 1])}),
    transport: (_normal(4), _normal()),
    balanced_tasks: (_normal(5), _normal(2)),
    policy: (_normal(4), {'action': _ints(0, 3), 'reward': _normal(),
                          'log_p': -np.square(_normal())}),
    code_book: (_normal(5), _normal()),
}
