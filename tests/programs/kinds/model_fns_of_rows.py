# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, whose rows do not meet in the loss.

They write to variables of their own, train a part of the variables, or read
sparse, ragged and text features.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_is_training, _cross_entropy = model_fns.is_training, model_fns.cross_entropy
_normal, _ints = model_fns.normal, model_fns.ints
_spec, _weights = model_fns.spec, model_fns.weights


def _decayed(averages, variables, decay):
  """Returns the op that moves `averages` towards `variables`."""
  return tf.group(*[
      average.assign(decay * average + (1 - decay) * variable)
      for average, variable in zip(averages, variables)])


def distillation(features, labels, mode):
  """A frozen teacher at a temperature, and smoothed labels."""
  with tf1.variable_scope('teacher'):
    teacher = layers.dense(layers.dense(
        features, 6, tf.nn.relu, trainable=False), 3, trainable=False)
  logits = layers.dense(features, 3)
  tf1.losses.softmax_cross_entropy(
      tf.one_hot(labels, 3), logits, label_smoothing=0.1)
  target = tf.nn.softmax(teacher / 4)
  distance = tf.reduce_sum(target * (
      tf.nn.log_softmax(teacher / 4) - tf.nn.log_softmax(logits / 4)), -1)
  tf1.losses.add_loss(16 * tf.reduce_mean(distance))
  return _spec(mode, tf1.losses.get_total_loss(), {'logits': logits}, lambda: {
      'accuracy': tf1.metrics.accuracy(labels, tf.argmax(logits, -1)),
      'distance': tf1.metrics.mean(distance)})


def queue_of_keys(features, labels, mode):
  """A momentum encoder, and a queue of its keys as negatives."""
  del labels

  def encode(name, x):
    with tf1.variable_scope(name, reuse=tf1.AUTO_REUSE):
      return tf.nn.l2_normalize(layers.dense(
          layers.dense(x, 6, tf.nn.relu, name='a'), 4, name='b'), -1)

  query = encode('query', features['a'])
  key = tf.stop_gradient(encode('key', features['b']))
  queue = tf1.get_variable('queue', [8, 4], trainable=False)
  logits = tf.concat([tf.reduce_sum(query * key, 1, keepdims=True),
                      tf.matmul(query, queue, transpose_b=True)], 1)
  loss = tf.reduce_mean(_cross_entropy(
      tf.zeros([tf.shape(query)[0]], tf.int32), logits / 0.2))
  train_op = None
  if _is_training(mode):
    own = tf1.trainable_variables('query')
    with tf.control_dependencies([tf1.train.MomentumOptimizer(
        0.1, 0.9).minimize(loss, tf1.train.get_global_step(), own)]):
      moved = _decayed(tf1.trainable_variables('key'), own, 0.9)
      with tf.control_dependencies([moved]):
        train_op = queue.assign(tf.concat([key, queue], 0)[:8])
  return _spec(mode, loss, {'query': query}, lambda: {
      'first': tf1.metrics.mean(tf.cast(
          tf.equal(tf.argmax(logits, 1), 0), tf.float32))}, train_op)


def mean_teacher(features, labels, mode):
  """Moving averages of the variables teach, with a weight that rises."""
  average = tf1.train.ExponentialMovingAverage(0.8)

  def of_teacher(getter, *args, **kwargs):
    return average.average(getter(*args, **kwargs))

  def network(x, getter=None):
    with tf1.variable_scope('net', reuse=getter is not None,
                            custom_getter=getter):
      hidden = tf.tanh(x @ _weights('hidden', 5, 4) + _weights('bias', 4))
      return hidden @ _weights('out', 4, 3)

  logits = network(features)
  average.apply(tf1.trainable_variables())  # It makes the averages.
  target = tf.nn.softmax(network(0.9 * features, of_teacher))
  has_label = tf.cast(labels >= 0, tf.float32)
  step = tf.cast(tf1.train.get_global_step(), tf.float32)
  loss = tf1.losses.sparse_softmax_cross_entropy(
      tf.maximum(labels, 0), logits, has_label)
  loss += tf.exp(-5 * tf.square(1 - tf.minimum(step / 4, 1))) * (
      tf1.losses.mean_squared_error(tf.stop_gradient(target),
                                    tf.nn.softmax(logits)))
  train_op = None
  if _is_training(mode):
    with tf.control_dependencies([tf1.train.AdamOptimizer(0.01).minimize(
        loss, tf1.train.get_global_step())]):
      train_op = average.apply(tf1.trainable_variables('net'))
  return _spec(mode, loss, {'target': target}, lambda: {
      'accuracy': tf1.metrics.accuracy(
          labels, tf.argmax(target, -1), has_label)}, train_op)


def layer_rates(features, labels, mode):
  """An optimizer with trust ratios, decay by name and a rate per layer."""

  class LayerRates(tf1.train.Optimizer):
    """Assigns to the variables itself."""

    def __init__(self):
      super().__init__(False, 'LayerRates')

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      written = []
      for gradient, variable in grads_and_vars:
        if gradient is None:
          continue
        m, v = (tf1.get_variable(
            f'{variable.op.name}/{part}', variable.shape, trainable=False,
            initializer=tf1.zeros_initializer()) for part in 'mv')
        next_m = 0.9 * m + 0.1 * gradient
        next_v = 0.99 * v + 0.01 * tf.square(gradient)
        update = next_m / (tf.sqrt(next_v) + 1e-3)
        if 'bias' not in variable.name:
          update += 0.01 * variable
        size, change = tf.norm(variable), tf.norm(update)
        ratio = tf.where(tf.logical_and(size > 0, change > 0),
                         size / change, 1.0)
        rate = 0.02 if 'low' in variable.name else 0.05
        written += [m.assign(next_m), v.assign(next_v),
                    variable.assign_sub(rate * ratio * update)]
      if global_step is not None:
        written.append(global_step.assign_add(1))
      return tf.group(*written, name=name)

  hidden = layers.dense(features, 4, tf.nn.relu, name='low')
  logits = layers.dense(hidden, 3, name='high')
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  train_op = None
  if _is_training(mode):
    train_op = LayerRates().minimize(loss, tf1.train.get_global_step())
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'per_class': tf1.metrics.mean_per_class_accuracy(
          labels, tf.argmax(logits, -1), 3)}, train_op)


def averaged_weights(features, labels, mode):
  """Means of the variables at every second step, which EVAL reads."""
  count = tf1.get_variable('count', [], trainable=False,
                           initializer=tf1.zeros_initializer())
  kernel, bias = _weights('kernel', 5, 1), _weights('bias', 1)
  means = [tf1.get_variable(f'mean/{v.op.name}', v.shape, trainable=False)
           for v in (kernel, bias)]
  if not _is_training(mode):
    kernel, bias = means
  predicted = features @ kernel + bias
  loss = tf1.losses.huber_loss(labels, predicted)
  train_op = None
  if _is_training(mode):
    step = tf1.train.get_global_step()

    def add_one():
      with tf.control_dependencies([count.assign_add(1.0)]):
        return _decayed(means, [kernel, bias], 1 - 1 / count.read_value())

    with tf.control_dependencies([tf1.train.GradientDescentOptimizer(
        tf1.train.piecewise_constant(step, [1], [0.2, 0.1])).minimize(
            loss, step)]):
      train_op = tf.cond(tf.equal(step.read_value() % 2, 0), add_one, tf.no_op)
  return _spec(mode, loss, {'predicted': predicted}, lambda: {
      'covariance': tf1.metrics.mean_absolute_error(labels, predicted)},
               train_op)


def baskets(features, labels, mode):
  """Sparse ids with weights by three combiners, and empty rows."""
  table = _weights('table', 12, 4)
  ids, weights = features['ids'], features['weights']
  parts = [tf1.nn.safe_embedding_lookup_sparse(
      table, ids, weights, combiner=combiner, default_id=3)
           for combiner in ('mean', 'sqrtn', 'sum')]
  size = tf1.sparse_reduce_sum(weights, 1, keepdims=True)
  size.set_shape([None, 1])
  logits = layers.dense(tf.concat([*parts, size], 1), 1)[:, 0]
  loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
  click = tf.sigmoid(logits)
  return _spec(mode, loss, {'click': click}, lambda: {
      'auc': tf1.metrics.auc(labels, click),
      'weight': tf1.metrics.mean(size)})


def reviews(features, labels, mode):
  """Ragged words of ragged sentences, by embedding, maximum and mean."""
  words = tf.nn.embedding_lookup(_weights('words', 12, 4), features)
  length = tf.cast(features.row_lengths(), tf.float32)
  pooled = tf.concat([tf.reduce_max(words, 1), tf.reduce_mean(words, 1),
                      tf.math.log1p(length)[:, None]], 1)
  pooled.set_shape([None, 9])
  logits = layers.dense(pooled, 2)
  loss = tf.reduce_mean(_cross_entropy(labels, logits))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'recall': tf1.metrics.recall(labels, tf.argmax(logits, -1)),
      'length': tf1.metrics.mean(length)})


def columns(features, labels, mode):
  """Feature columns: text, buckets, a cross and a shared embedding."""
  column = tf.feature_column
  city = column.categorical_column_with_vocabulary_list(
      'city', ['a', 'b'], num_oov_buckets=1)
  home = column.categorical_column_with_hash_bucket('home', 5)
  work = column.categorical_column_with_hash_bucket('work', 5)
  age = column.bucketized_column(column.numeric_column('age'), [0.0, 1.0])
  both = column.crossed_column([city, age], 8)
  net = tf1.feature_column.input_layer(features, [
      age, column.indicator_column(city), column.embedding_column(both, 3),
      column.embedding_column(home, 2), column.embedding_column(
          work, 2, combiner='sqrtn')])
  logits = layers.dense(net, 1) + tf1.feature_column.linear_model(
      features, [city, age, both])
  loss = tf1.losses.sigmoid_cross_entropy(labels[:, None], logits)
  return _spec(mode, loss, {'score': tf.sigmoid(logits)}, lambda: {
      'accuracy': tf1.metrics.accuracy(labels[:, None], logits > 0)})


def two_heads(features, labels, mode):
  """A head of classes and a head of numbers, with weights by row."""
  heads = tf.estimator.MultiHead([
      tf.estimator.MultiClassHead(3, weight_column='weight', name='kind'),
      tf.estimator.RegressionHead(2, name='size')], [1.0, 0.5])
  hidden = layers.dense(features['x'], 4, tf.tanh)
  logits = {'kind': layers.dense(hidden, 3), 'size': layers.dense(hidden, 2)}
  return heads.create_estimator_spec(
      features, mode, logits, labels, train_op_fn=lambda loss: (
          tf1.train.AdagradOptimizer(0.1).minimize(
              loss, tf1.train.get_global_step())))


def quantiles(features, labels, mode):
  """Several quantiles of each row, kept in order by softplus."""
  low, *gaps = tf.split(layers.dense(features, 3), 3, -1)
  found = tf.cumsum(tf.concat(
      [low, *(tf.nn.softplus(gap) for gap in gaps)], -1), -1)
  error = labels - found
  levels = tf.constant([0.1, 0.5, 0.9])
  by_row = tf.reduce_sum(tf.maximum(levels * error, (levels - 1) * error), -1)
  loss = tf.reduce_mean(by_row)
  inside = tf.logical_and(labels[:, 0] > found[:, 0],
                          labels[:, 0] < found[:, 2])
  return _spec(mode, loss, {'quantiles': found}, lambda: {
      'inside': tf1.metrics.mean(tf.cast(inside, tf.float32)),
      'below': tf1.metrics.percentage_below(error[:, 1], 0.0)})


def adversaries(features, labels, mode):
  """Two networks with an optimizer each, of which one waits."""
  del labels

  def judge(x):
    with tf1.variable_scope('judge', reuse=tf1.AUTO_REUSE):
      return layers.dense(layers.dense(x, 5, tf.nn.leaky_relu, name='a'), 1,
                          name='b')

  with tf1.variable_scope('maker'):
    made = layers.dense(layers.dense(features['noise'], 5, tf.nn.relu), 3)
  real, false = judge(features['real']), judge(made)
  loss = tf.reduce_mean(tf.nn.softplus(-real) + tf.nn.softplus(false))
  of_maker = tf.reduce_mean(tf.nn.softplus(-false))
  train_op = None
  if _is_training(mode):
    judges = tf1.train.AdamOptimizer(0.01, 0.5)
    makes = tf1.train.RMSPropOptimizer(0.01)
    of_judge = judges.compute_gradients(
        loss, tf1.trainable_variables('judge'))
    pairs = makes.compute_gradients(of_maker, tf1.trainable_variables('maker'))
    with tf.control_dependencies([gradient for gradient, _ in pairs]):
      judged = judges.apply_gradients(of_judge)
    with tf.control_dependencies([judged]):
      train_op = makes.apply_gradients(pairs, tf1.train.get_global_step())
  return _spec(mode, loss, {'made': made}, lambda: {
      'fooled': tf1.metrics.mean(tf.cast(false > 0, tf.float32))}, train_op)


def triples(features, labels, mode):
  """Translations in a graph, with a margin and rows of length one."""
  del labels
  nodes, edges = _weights('nodes', 9, 4), _weights('edges', 3, 4)

  def distance(head, tail):
    head, tail = (tf.nn.embedding_lookup(nodes, features[key])
                  for key in (head, tail))
    return tf.norm(head + tf.nn.embedding_lookup(edges, features['edge']) -
                   tail + 1e-6, ord=1, axis=-1)

  right, wrong = distance('head', 'tail'), distance('head', 'other')
  loss = tf.reduce_mean(tf.nn.relu(1.0 + right - wrong))
  train_op = None
  if _is_training(mode):
    with tf.control_dependencies([tf1.train.GradientDescentOptimizer(
        0.1).minimize(loss, tf1.train.get_global_step())]):
      train_op = nodes.assign(tf.nn.l2_normalize(nodes.read_value(), 1))
  return _spec(mode, loss, {'distance': right}, lambda: {
      'right': tf1.metrics.mean(tf.cast(right < wrong, tf.float32))}, train_op)


_IDS = tf1.SparseTensorValue(
    [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2], [4, 0], [5, 0]],
    np.int64([1, 5, 7, 2, 2, 11, -1, 0]), [6, 3])
_SHARES = tf1.SparseTensorValue(
    _IDS.indices, np.float32([1, 2, 0.5, 1, 3, 0.25, 1, 2]), [6, 3])

# The model_fns, each with a batch.
ALL = {
    distillation: (_normal(4), _ints(0, 3)),
    queue_of_keys: ({'a': _normal(5), 'b': _normal(5)}, _normal()),
    mean_teacher: (_normal(5), np.int64([0, -1, 2, 1, -1, 0])),
    layer_rates: (_normal(5), _ints(0, 3)),
    averaged_weights: (_normal(5), _normal(1)),
    baskets: ({'ids': _IDS, 'weights': _SHARES},
              _ints(0, 2, dtype=np.float32)),
    reviews: (tf1.ragged.constant_value(
        [[1, 2], [3], [4, 5, 6], [7], [8, 9], [10, 11, 0, 1]]), _ints(0, 2)),
    columns: ({'city': np.array([b'a', b'b', b'c', b'a', b'b', b'd']),
               'home': np.array([b'u', b'v', b'w', b'u', b'v', b'x']),
               'work': np.array([b'v', b'v', b'u', b'w', b'x', b'u']),
               'age': _normal()}, _ints(0, 2, dtype=np.float32)),
    two_heads: ({'x': _normal(5), 'weight': 1 + np.square(_normal(1))},
                {'kind': _ints(0, 3, 1), 'size': _normal(2)}),
    quantiles: (_normal(4), _normal(1)),
    adversaries: ({'noise': _normal(4), 'real': _normal(3)}, _normal()),
    triples: ({'head': _ints(0, 9), 'tail': _ints(0, 9), 'other': _ints(0, 9),
               'edge': _ints(0, 3)}, _normal()),
}
