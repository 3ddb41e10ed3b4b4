# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses that people write, of row losses, hidden units, a mask and labels."""

import functools

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_Reduction = tf1.losses.Reduction


def _weighted(reduction):
  return lambda r: tf1.losses.compute_weighted_loss(
      r.loss, r.mask + .5, reduction=reduction, loss_collection=None)


def _normalised(h):
  return h / tf.norm(h, axis=1, keepdims=True)


def _batch_size(r):
  return tf.cast(tf.shape(r.hidden)[0], tf.float32)


def _loop(r, body, start):
  """The result of a loop over rows."""
  _, total = tf.while_loop(
      lambda i, t: i < tf.shape(r.hidden)[0],
      lambda i, t: (i + 1, body(i, t)), [0, start])
  return total


def _in_function(r):
  @tf.function
  def loss(hidden):
    return tf.reduce_mean(tf.exp(-hidden)) / tf.reduce_max(hidden)
  return loss(r.hidden)


def _with_custom_gradient(r):
  @tf.custom_gradient
  def reversed_gradient(x):
    return tf.square(x), lambda dy: -2 * x * dy
  return tf.reduce_mean(reversed_gradient(r.hidden))


def _contrastive(r):
  z = _normalised(r.hidden)
  logits = z @ tf.transpose(z) / .5
  return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.range(tf.shape(z)[0]), logits=logits))


def _triplet(r):
  d = tf.reduce_sum(tf.square(r.hidden[:, None] - r.hidden[None]), 2)
  return tf.reduce_mean(tf.maximum(
      tf.reduce_max(d * r.mask, 1) - tf.reduce_min(d, 1) + .2, 0))


def _mixup(r):
  other = tf.reverse(r.hidden, [0])
  return tf.reduce_mean(tf.square(.3 * r.hidden + .7 * other))


def _dice(r):
  p = tf.sigmoid(r.hidden[:, 0])
  return 1 - 2 * tf.reduce_sum(p * r.mask[:, 0]) / (
      tf.reduce_sum(p) + tf.reduce_sum(r.mask))


def _focal(r):
  return tf.reduce_sum(r.mask * tf.square(1 - tf.exp(-r.loss)) * r.loss) / (
      tf.maximum(tf.reduce_sum(r.mask), 1))


def _covariance(r):
  c = r.hidden - tf.reduce_mean(r.hidden, 0)
  cov = tf.transpose(c) @ c / (_batch_size(r) - 1)
  return tf.reduce_sum(tf.square(cov)) - tf.linalg.trace(tf.square(cov))


def _correlation(r):
  a, b = r.hidden[:, 0], r.loss[:, 0]
  a, b = a - tf.reduce_mean(a), b - tf.reduce_mean(b)
  return -tf.reduce_sum(a * b) / tf.sqrt(
      tf.reduce_sum(a * a) * tf.reduce_sum(b * b))


def _rnn(r):
  sequence = tf.stack([r.hidden, r.hidden * .5, tf.square(r.hidden)], 1)
  cell = tf1.nn.rnn_cell.BasicRNNCell(4, name='cell')
  with tf1.variable_scope(
      'rnn', initializer=tf1.initializers.random_normal(seed=5)):
    outputs, state = tf1.nn.dynamic_rnn(
        cell, sequence, dtype=tf.float32,
        sequence_length=tf.cast(r.mask[:, 0] + 1, tf.int32))
  return tf.reduce_mean(state ** 2) + tf.reduce_mean(outputs)


def _time_major(r):
  sequence = tf.transpose(
      tf.stack([r.hidden, r.hidden * .5], 1), [1, 0, 2])
  flat = tf.reshape(sequence, [-1, 4])
  return tf.reduce_mean(flat * tf.cast(
      tf.range(tf.shape(flat)[0]), tf.float32)[:, None])


def _flattened(r):
  flat = tf.reshape(tf.stack([r.hidden, r.hidden * .5], 1), [-1, 4])
  return tf.reduce_mean(tf.square(flat) * tf.cast(
      tf.range(tf.shape(flat)[0]), tf.float32)[:, None])


def _segments(r):
  ids = tf.cast(r.mask[:, 0], tf.int32)
  return tf.reduce_mean(tf.square(tf.math.unsorted_segment_mean(
      r.hidden, ids, 2)))


def _unique(r):
  values, _, counts = tf.unique_with_counts(tf.cast(r.mask[:, 0], tf.int32))
  return tf.reduce_mean(r.hidden) * tf.cast(
      tf.reduce_sum(values + counts), tf.float32)


def _gather_last(r):
  sequence = tf.stack([r.hidden, -r.hidden], 1)
  last = tf.cast(r.mask[:, 0], tf.int32)
  return tf.reduce_mean(tf.square(tf.gather_nd(
      sequence, tf.stack([tf.range(tf.shape(last)[0]), last], 1)) + .5))


def _array(r):
  array = tf.TensorArray(tf.float32, tf.shape(r.hidden)[0])
  return tf.reduce_sum(array.unstack(r.hidden).stack()) / _batch_size(r)


def _penalty(r):
  gradient, = tf.gradients(r.loss, r.hidden)
  return tf.reduce_mean(tf.square(tf.norm(gradient + 1e-3, axis=1) - 1))


def _adversarial(r):
  gradient, = tf.gradients(tf.reduce_mean(r.loss), r.hidden)
  return tf.reduce_mean(tf.square(r.hidden + .1 * tf.sign(
      tf.stop_gradient(gradient))))


_MEANS = {
    'mean': lambda r: tf.reduce_mean(r.loss),
    'sum': lambda r: tf.reduce_sum(r.loss),
    'mean of each row, summed': lambda r: tf.reduce_sum(
        tf.reduce_mean(r.hidden, 1)),
    'sum of each row, averaged': lambda r: tf.reduce_mean(
        tf.reduce_sum(r.hidden, 1)),
    'l2_loss': lambda r: tf.nn.l2_loss(r.hidden),
    'sum over batch size': lambda r: tf.reduce_sum(r.loss) / _batch_size(r),
    'sum times 1 over size': lambda r: tf.reduce_sum(
        r.loss * (1. / _batch_size(r))),
    'sum of rows over size': lambda r: tf.reduce_sum(r.loss / _batch_size(r)),
    'size of an expanded tensor': lambda r: tf.reduce_sum(r.loss) / tf.cast(
        tf.shape(tf.expand_dims(r.hidden, 0))[1], tf.float32),
    'size of a transposed tensor': lambda r: tf.reduce_sum(r.loss) / tf.cast(
        tf.shape(tf.transpose(r.hidden))[1], tf.float32),
    'size of a reversed tensor': lambda r: tf.reduce_sum(r.loss) / tf.cast(
        tf.shape(tf.reverse(r.hidden, [0]))[0], tf.float32),
    'weighted, sum': _weighted(_Reduction.SUM),
    'weighted, mean': _weighted(_Reduction.MEAN),
    'weighted, batch size': _weighted(_Reduction.SUM_OVER_BATCH_SIZE),
    'weighted, nonzero': _weighted(_Reduction.SUM_BY_NONZERO_WEIGHTS),
    'keras': lambda r: tf.keras.losses.MeanSquaredError()(r.labels, r.hidden),
    'keras, sum': lambda r: tf.keras.losses.Huber(reduction='sum')(
        r.labels, r.hidden),
    'compute_average_loss': lambda r: tf.nn.compute_average_loss(
        r.loss[:, 0]),
    'with l2': lambda r: tf.reduce_sum(r.loss) + .1 * tf.nn.l2_loss(r.weight),
    'tensordot': lambda r: tf.tensordot(r.loss[:, 0], r.mask[:, 0], 1),
    'einsum': lambda r: tf.einsum('bi,bj->', r.hidden, r.loss),
    'einsum, rows in one': lambda r: tf.reduce_mean(
        tf.einsum('bi,cj->bi', r.hidden, r.loss)),
    'matmul by rows': lambda r: tf.reduce_sum(
        tf.matmul(r.hidden, r.hidden, transpose_a=True)),
    'add_n': lambda r: tf.add_n([
        tf.reduce_mean(r.loss), tf.reduce_sum(r.hidden)]),
    'count_nonzero': lambda r: tf.reduce_sum(r.loss) / tf.cast(
        tf.math.count_nonzero(r.mask) + 1, tf.float32),
}
_NORMS = {
    'rmse': lambda r: tf.sqrt(tf.reduce_mean(tf.square(r.hidden))),
    'perplexity': lambda r: tf.exp(tf.reduce_mean(r.loss)),
    'norm': lambda r: tf.norm(r.hidden),
    'norm of columns': lambda r: tf.reduce_sum(tf.norm(r.hidden, axis=0)),
    'logsumexp': lambda r: tf.reduce_logsumexp(r.loss),
    'maximum': lambda r: tf.maximum(tf.reduce_mean(r.loss), .1),
    'clipped': lambda r: tf.clip_by_value(tf.reduce_sum(r.loss), 0., 4.),
    'free bits': lambda r: tf.reduce_sum(tf.maximum(
        tf.reduce_mean(tf.square(r.hidden), 0), .2)),
    'hardest': lambda r: tf.reduce_max(r.loss),
    'product': lambda r: tf.reduce_prod(r.loss),
    'euclidean norm': lambda r: tf.math.reduce_euclidean_norm(r.hidden),
    'variance': lambda r: tf.math.reduce_variance(r.hidden),
    'deviation': lambda r: tf.math.reduce_std(r.hidden),
    'moments': lambda r: tf.reduce_sum(tf.nn.moments(r.hidden, [0])[1]),
    'softmax over rows': lambda r: tf.reduce_mean(
        tf.square(tf.nn.softmax(r.loss[:, 0]))),
    'softmax, axis 0': lambda r: tf.reduce_mean(
        tf.square(tf.nn.softmax(r.hidden, axis=0))),
    'l2_normalize, axis 0': lambda r: tf.reduce_mean(
        tf.nn.l2_normalize(r.hidden, 0)),
    'centred': lambda r: tf.reduce_mean(
        tf.abs(r.hidden - tf.reduce_mean(r.hidden, 0))),
    'whitened': lambda r: tf.reduce_mean(tf.square(tf.nn.relu(
        r.hidden / (tf.math.reduce_std(r.hidden, 0) + .1)) @ r.weight[:, :4])),
}
_PAIRS = {
    'contrastive': _contrastive, 'triplet': _triplet, 'mixup': _mixup,
    'covariance': _covariance, 'correlation': _correlation,
    'pairwise': lambda r: tf1.losses.mean_pairwise_squared_error(
        r.labels, r.hidden, loss_collection=None),
    'differences': lambda r: tf.reduce_mean(
        tf.square(r.loss - tf.transpose(r.loss))),
    'top_k': lambda r: tf.reduce_mean(tf.nn.top_k(r.loss[:, 0], 2).values),
    'sorted': lambda r: tf.reduce_mean(
        tf.sort(r.hidden[:, 0]) * tf.sort(r.loss[:, 0])),
    'cumsum': lambda r: tf.reduce_mean(tf.square(tf.cumsum(r.loss))),
    'cumsum in a row': lambda r: tf.reduce_mean(
        tf.square(tf.cumsum(r.hidden, 1))),
    'rolled': lambda r: tf.reduce_mean(r.loss * tf.roll(r.loss, 1, 0)),
    'shifted': lambda r: tf.reduce_mean(r.hidden[1:] * r.hidden[:-1]),
    'first row': lambda r: tf.reduce_sum(r.hidden[0] * r.hidden[-1]),
    'every second': lambda r: tf.reduce_mean(r.hidden[::2]),
    'reversed slice': lambda r: tf.reduce_mean(r.hidden[::-1] * r.loss),
    'concatenated': lambda r: tf.reduce_mean(tf.square(tf.concat(
        [r.hidden, -r.hidden[:, ::-1]], 0)) * tf.concat(
            [r.loss, r.mask], 0)),
    'tiled': lambda r: tf.reduce_mean(
        tf.tile(r.loss, [2, 1]) * tf.concat([r.mask, r.loss], 0)),
    'kernel': lambda r: tf.reduce_mean(tf.exp(-tf.square(
        r.hidden[:, None] - r.hidden[None]))),
    'attention over rows': lambda r: tf.reduce_mean(tf.square(tf.nn.softmax(
        r.hidden @ tf.transpose(r.hidden)) @ r.hidden)),
    'conv over rows': lambda r: tf.reduce_mean(tf.square(tf.nn.conv1d(
        r.hidden[None], tf.ones([3, 4, 2]), 1, 'SAME'))),
    'position': lambda r: tf.reduce_mean(r.loss * tf.cast(
        tf.range(tf.shape(r.loss)[0]), tf.float32)[:, None]),
    'rank': lambda r: tf.reduce_mean(r.loss[:, 0] * tf.cast(
        tf.argsort(tf.argsort(r.loss[:, 0])), tf.float32)),
    'gathered': lambda r: tf.reduce_mean(tf.gather(
        r.hidden, tf.range(tf.shape(r.hidden)[0])[::-1]) * r.loss),
    'matrix': lambda r: tf.linalg.logdet(
        tf.matmul(r.hidden, r.hidden, transpose_a=True) + tf.eye(4)),
}
_MASKS = {
    'masked mean': lambda r: tf.reduce_sum(r.loss * r.mask) / (
        tf.reduce_sum(r.mask)),
    'divide_no_nan': lambda r: tf.math.divide_no_nan(
        tf.reduce_sum(r.hidden * r.mask), tf.reduce_sum(r.mask)),
    'boolean_mask': lambda r: tf.reduce_mean(
        tf.boolean_mask(r.hidden, r.mask[:, 0] > 0)),
    'where': lambda r: tf.reduce_mean(tf.gather(
        r.hidden, tf.where(r.mask[:, 0] > 0)[:, 0])),
    'dice': _dice, 'focal': _focal,
    'partition': lambda r: tf.reduce_mean(tf.dynamic_partition(
        r.hidden, tf.cast(r.mask[:, 0], tf.int32), 2)[1]),
    'where by rows': lambda r: tf.reduce_mean(
        tf.where(r.loss > .5, r.loss, 2 * r.hidden)),
    'segments': _segments, 'unique': _unique, 'gather_nd': _gather_last,
    'bincount': lambda r: tf.reduce_mean(r.loss) * tf.cast(tf.reduce_max(
        tf.math.bincount(tf.cast(r.mask[:, 0], tf.int32))), tf.float32),
    'scatter': lambda r: tf.reduce_mean(tf.square(tf.scatter_nd(
        tf.cast(r.mask, tf.int32), r.hidden, [3, 4]))),
    'to ragged': lambda r: tf.reduce_mean(tf.reduce_sum(
        tf.RaggedTensor.from_tensor(r.hidden), 1)),
}
_CONDITIONS = {
    'where on the batch': lambda r: tf.where(
        tf.reduce_mean(r.hidden) > .1, tf.reduce_sum(r.loss),
        tf.reduce_max(r.hidden)),
    'cond': lambda r: tf.cond(
        tf.reduce_mean(r.loss) > .5, lambda: tf.reduce_sum(r.hidden),
        lambda: tf.reduce_max(r.hidden)),
    'cond on a constant': lambda r: tf.cond(
        tf.constant(1.) > tf1.placeholder_with_default(.5, []),
        lambda: tf.reduce_mean(r.hidden), lambda: tf.reduce_sum(r.loss)),
    'case': lambda r: tf.case([
        (tf.reduce_max(r.loss) > 9., lambda: tf.reduce_mean(r.loss)),
        (tf.reduce_max(r.loss) > .1, lambda: tf.reduce_sum(r.loss))],
                              default=lambda: tf.reduce_max(r.loss)),
    'switch_case': lambda r: tf.switch_case(
        tf.cast(tf.reduce_sum(r.mask), tf.int32) % 2,
        [lambda: tf.reduce_mean(r.loss), lambda: tf.reduce_sum(r.hidden)]),
    'cond of rows': lambda r: tf.reduce_mean(tf.square(tf.cond(
        tf.reduce_sum(r.mask) > 2., lambda: r.hidden, lambda: -r.hidden))),
    'huber of the batch': lambda r: tf1.losses.huber_loss(
        tf.reduce_mean(r.labels), tf.reduce_mean(r.hidden),
        loss_collection=None),
}
_LOOPS = {
    'map_fn': lambda r: tf.reduce_mean(
        tf.map_fn(lambda e: tf.reduce_sum(e * e), r.hidden)),
    'map_fn, sum of means': lambda r: tf.reduce_sum(
        tf.map_fn(tf.reduce_mean, r.hidden)),
    'vectorized_map': lambda r: tf.reduce_mean(
        tf.vectorized_map(lambda e: tf.reduce_sum(e * e), r.hidden)),
    'scan': lambda r: tf.reduce_mean(tf.scan(
        lambda a, e: .5 * a + e, r.hidden, tf.zeros([4]))),
    'foldl': lambda r: tf.reduce_sum(tf.foldl(
        lambda a, e: a + tf.square(e), r.hidden, tf.zeros([4]))),
    'while': lambda r: _loop(
        r, lambda i, t: t + tf.reduce_sum(r.hidden[i]), 0.),
    'array': _array, 'rnn': _rnn, 'time major': _time_major,
    'flattened': _flattened, 'tf.function': _in_function,
    'custom gradient': _with_custom_gradient,
    'swish': lambda r: tf.reduce_mean(tf.nn.swish(r.hidden) @ r.weight[:, :4]),
    'py_function of rows': lambda r: tf.reduce_mean(r.loss) * tf1.py_func(
        lambda m: m.sum() + np.float32(m.size), [r.mask], tf.float32),
    'penalty': _penalty, 'adversarial': _adversarial,
    'hessian': lambda r: tf.reduce_sum(tf.square(tf.gradients(
        tf.reduce_sum(tf.square(r.hidden)), r.weight)[0])),
}

GROUPS = {'means': _MEANS, 'norms': _NORMS, 'pairs': _PAIRS, 'masks': _MASKS,
          'conditions': _CONDITIONS, 'loops': _LOOPS}
LOSSES = functools.reduce(lambda a, b: {**a, **b}, GROUPS.values())
