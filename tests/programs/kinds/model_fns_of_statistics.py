# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, whose loss is a statistic of the batch.

Their features are dictionaries of dense tensors, PREDICT needs no labels, and
trained variables of several dimensions are named `kernel`.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(7)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights


def redundancy(features, labels, mode):
  """Two views whose correlations over the batch become the identity."""
  del labels
  first, second = (layers.dense(layers.dense(x, 5, tf.tanh, name='a', reuse=i),
                                3, name='b', reuse=i)
                   for i, x in ((False, features['x']), (True, features['y'])))
  if _is_predicting(mode):
    return _spec(mode, None, {'view': first}, None)

  def standard(x):
    mean, variance = tf.nn.moments(x, 0)
    return (x - mean) / tf.sqrt(variance + 1e-3)

  rows = tf.cast(tf.shape(first)[0], tf.float32)
  both = tf.matmul(standard(first), standard(second), transpose_a=True) / rows
  gap = tf.square(both - tf.eye(3))
  on = tf.linalg.diag_part(gap)
  loss = tf.reduce_sum(on) + 0.1 * (tf.reduce_sum(gap) - tf.reduce_sum(on))
  # What keeps the spread of each column, and what the columns share.
  spread = tf.math.reduce_std(first, 0)
  loss += tf.reduce_mean(tf.nn.relu(1 - spread))
  return _spec(mode, loss, {'view': first}, lambda: {
      'diagonal': tf1.metrics.mean(tf.linalg.diag_part(both))})


def agreement(features, labels, mode):
  """A concordance: means, variances and a covariance of the batch."""
  found = layers.dense(layers.dense(features['x'], 4, tf.tanh), 2)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  (mean, variance), (own_mean, own_variance) = (
      tf.nn.moments(x, [0]) for x in (labels, found))
  covariance = tf.reduce_mean((labels - mean) * (found - own_mean), 0)
  concordance = 2 * covariance / (
      variance + own_variance + tf.square(mean - own_mean))
  loss = tf.reduce_mean(1 - concordance)
  return _spec(mode, loss, {'found': found}, lambda: {
      'pearson': tf1.metrics.mean(
          covariance / tf.sqrt(variance * own_variance)),
      'error': tf1.metrics.mean_squared_error(labels, found)})


def discrepancy(features, labels, mode):
  """Kernels between the rows of two domains, with the batch's own width."""
  near = layers.dense(features['x'], 4, tf.tanh, name='a')
  far = layers.dense(features['y'], 4, tf.tanh, name='a', reuse=True)
  logits = layers.dense(near, 3)
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits}, None)
  rows = tf.concat([near, far], 0)
  squares = tf.reduce_sum(tf.square(rows[:, None] - rows[None]), -1)
  count = tf.cast(tf.shape(rows)[0], tf.float32)
  width = tf.stop_gradient(tf.reduce_sum(squares) / (count * count - count))
  kernels = tf.add_n([tf.exp(-squares / (width * scale))
                      for scale in (0.5, 1.0, 2.0)])
  half = tf.shape(near)[0]
  apart = tf.reduce_mean(kernels[:half, :half]) + tf.reduce_mean(
      kernels[half:, half:]) - 2 * tf.reduce_mean(kernels[:half, half:])
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits) + apart
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'apart': tf1.metrics.mean(apart)})


def clusters(features, labels, mode):
  """Soft clusters, sharpened by the shares of the clusters in the batch."""
  del labels
  hidden = layers.dense(features['x'], 3, tf.tanh)
  centers = _weights('centers/kernel', 4, 3)
  near = 1 / (1 + tf.reduce_sum(
      tf.square(hidden[:, None] - centers[None]), -1))
  share = near / tf.reduce_sum(near, 1, keepdims=True)
  cluster = tf.argmax(share, 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'cluster': cluster}, None)
  sharp = tf.square(share) / tf.reduce_sum(share, 0)
  sharp = tf.stop_gradient(sharp / tf.reduce_sum(sharp, 1, keepdims=True))
  back = layers.dense(hidden, 4)
  loss = tf.reduce_mean(tf.reduce_sum(
      sharp * tf.math.log(sharp / share), 1)) + tf.reduce_mean(
          tf.square(back - features['x']))
  return _spec(mode, loss, {'cluster': cluster}, lambda: {
      'largest': tf1.metrics.mean(tf.reduce_max(tf.reduce_mean(share, 0)))})


def two_teachers(features, labels, mode):
  """Each network learns from the rows that the other finds easy."""
  logits = [layers.dense(layers.dense(features['x'], 5, tf.tanh), 3)
            for _ in range(2)]
  if _is_predicting(mode):
    return _spec(mode, None, {'logits': logits[0]}, None)
  losses = [tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=each) for each in logits]
  # Fewer rows are kept from step to step.
  step = tf.cast(tf1.train.get_global_step(), tf.float32)
  rate = 1 - 0.3 * tf.minimum(step / 2, 1)
  kept = tf.cast(tf.math.ceil(
      rate * tf.cast(tf.shape(labels)[0], tf.float32)), tf.int32)
  easy = [tf.argsort(each, stable=True)[:kept] for each in losses]
  loss = tf.reduce_mean(tf.gather(losses[0], easy[1])) + tf.reduce_mean(
      tf.gather(losses[1], easy[0]))
  same = tf.size(tf.sets.intersection(easy[0][None], easy[1][None]).values)
  return _spec(mode, loss, {'logits': logits[0]}, lambda: {
      'same': tf1.metrics.mean(same / kept)})


def depth(features, labels, mode):
  """A loss of logarithms that no scale changes, and one with a largest error.
  """
  found = layers.conv2d(features['x'], 1, 3, padding='same')[..., 0]
  if _is_predicting(mode):
    return _spec(mode, None, {'depth': found}, None)
  mask = tf.cast(labels > 0.3, tf.float32)
  count = tf.reduce_sum(mask)
  gap = (found - tf.math.log(tf.maximum(labels, 0.1))) * mask
  loss = tf.reduce_sum(tf.square(gap)) / count - 0.5 * tf.square(
      tf.reduce_sum(gap) / count)
  error = tf.abs(gap)
  least = 0.2 * tf.reduce_max(error)
  loss += tf.reduce_sum(tf.where(
      error <= least, error,
      (tf.square(error) + tf.square(least)) / (2 * least))) / count
  return _spec(mode, loss, {'depth': found}, lambda: {
      'near': tf1.metrics.mean(tf.cast(error < 0.5, tf.float32), mask)})


def proxies(features, labels, mode):
  """Proxies of classes as anchors; those without a row are left out."""
  rows = tf.nn.l2_normalize(layers.dense(features['x'], 4), 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'row': rows}, None)
  anchors = tf.nn.l2_normalize(_weights('proxies/kernel', 5, 4), 1)
  cosine = tf.matmul(rows, anchors, transpose_b=True)
  truth = tf.one_hot(labels, 5)
  with_rows = tf.where(tf.reduce_sum(truth, 0) > 0)
  pull = tf.reduce_sum(truth * tf.exp(-4 * (cosine - 0.1)), 0)
  push = tf.reduce_sum((1 - truth) * tf.exp(4 * (cosine + 0.1)), 0)
  loss = tf.reduce_sum(tf.math.log1p(pull)) / tf.cast(
      tf.shape(with_rows)[0], tf.float32) + tf.reduce_mean(tf.math.log1p(push))
  return _spec(mode, loss, {'row': rows}, lambda: {
      'classes': tf1.metrics.mean(tf.shape(with_rows)[0])})


def conflicts(features, labels, mode):
  """Gradients of tasks, each without its part against the others."""
  hidden = layers.dense(features['x'], 4, tf.tanh)
  found = tf.concat([layers.dense(hidden, 1) for _ in range(2)], 1)
  if _is_predicting(mode):
    return _spec(mode, None, {'found': found}, None)
  errors = tf.reduce_mean(tf.square(found - labels), 0)
  train_op = None
  if _is_training(mode):
    optimizer = tf1.train.AdagradOptimizer(0.1)
    own = tf1.trainable_variables()
    of_tasks = [[tf.zeros_like(v) if g is None else g for g, v in zip(
        tf.gradients(errors[i], own), own)] for i in range(2)]
    products = [tf.add_n([tf.reduce_sum(a * b) for a, b in zip(one, other)])
                for one, other in (of_tasks, (of_tasks[1],) * 2)]
    share = tf.minimum(products[0] / products[1], 0.0)
    train_op = optimizer.apply_gradients(
        [(one - share * other + other, v)
         for one, other, v in zip(*of_tasks, own)],
        tf1.train.get_global_step())
  return _spec(mode, tf.reduce_sum(errors), {'found': found}, lambda: {
      'first': tf1.metrics.mean(errors[0])}, train_op)


def least_and_most(features, labels, mode):
  """An AUC as a game: one variable goes up the loss, the others go down."""
  score = layers.dense(features['x'], 1)[:, 0]
  if _is_predicting(mode):
    return _spec(mode, None, {'score': score}, None)
  a, b, dual = (tf1.get_variable(name, [], initializer=tf1.zeros_initializer())
                for name in ('a', 'b', 'dual'))
  share = tf.reduce_mean(labels)
  loss = tf.reduce_mean(
      (1 - share) * tf.square(score - a) * labels +
      share * tf.square(score - b) * (1 - labels) +
      2 * (1 + dual) * (share * score * (1 - labels) -
                        (1 - share) * score * labels)
      - share * (1 - share) * tf.square(dual))
  train_op = None
  if _is_training(mode):
    optimizer = tf1.train.AdagradOptimizer(0.1)
    train_op = optimizer.apply_gradients(
        [(-gradient if variable is dual else gradient, variable)
         for gradient, variable in optimizer.compute_gradients(loss)],
        tf1.train.get_global_step())
  return _spec(mode, loss, {'score': score}, lambda: {
      'auc': tf1.metrics.auc(labels, tf.sigmoid(score))}, train_op)


# The model_fns, each with a batch.
ALL = {
    redundancy: ({'x': _normal(4), 'y': _normal(4)}, _ints(0, 2)),
    agreement: ({'x': _normal(3)}, _normal(2)),
    discrepancy: ({'x': _normal(3), 'y': 1 + _normal(3)}, _ints(0, 3)),
    clusters: ({'x': _normal(4)}, _ints(0, 2)),
    two_teachers: ({'x': _normal(4)}, _ints(0, 3)),
    depth: ({'x': _normal(4, 4, 2)}, np.abs(_normal(4, 4))),
    proxies: ({'x': _normal(4)}, np.int64([0, 1, 3, 3, 1, 1])),
    conflicts: ({'x': _normal(3)}, _normal(2)),
    least_and_most: ({'x': _normal(4)}, np.float32([0, 1, 1, 0, 0, 1])),
}
