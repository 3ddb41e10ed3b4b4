# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""More model_fns of public kinds, which draw numbers or keep a second copy.

They draw classes, codes and weights, take what the first batch shows, or train
against variables that follow others.
"""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf

from tests.programs.kinds import model_fns

tf1 = tf.compat.v1
layers = tf1.layers

_normal, _ints = model_fns.drawing(5)
_is_training, _is_predicting = model_fns.is_training, model_fns.is_predicting
_spec, _weights = model_fns.spec, model_fns.weights
_cross_entropy = model_fns.cross_entropy


def _state(name, *shape):
  return tf1.get_variable(name, shape, trainable=False,
                          initializer=tf1.zeros_initializer())


def _named(name):
  return tf1.variable_scope(name, reuse=tf1.AUTO_REUSE)


def drawn_words(features, labels, mode):
  """A few classes drawn for the whole batch; in EVAL all of them."""
  hidden = tf.reduce_mean(tf.nn.embedding_lookup(
      _weights('words/kernel', 12, 4), features), 1)
  kernel, bias = _weights('out/kernel', 12, 4), _weights('out/bias', 12)
  logits = tf.matmul(hidden, kernel, transpose_b=True) + bias
  if _is_training(mode):
    drawn = tf.random.log_uniform_candidate_sampler(
        labels, 1, 4, True, 12, seed=2)
    by_row = sum(sampled(kernel, bias, labels, hidden, 4, 12,
                         sampled_values=drawn)
                 for sampled in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss))
  else:
    by_row = _cross_entropy(labels[:, 0], logits)
  best = tf.nn.top_k(logits, 3).indices
  return _spec(mode, tf.reduce_mean(by_row), {'best': best}, lambda: {
      'precision': tf1.metrics.precision_at_k(labels, logits, 3)})


def drawn_codes(features, labels, mode):
  """Codes drawn at a temperature that falls; the gradient goes around."""
  del labels
  logits = tf.reshape(layers.dense(features, 12), [-1, 3, 4])
  step = tf.cast(tf1.train.get_or_create_global_step(), tf.float32)
  noise = -tf.math.log(-tf.math.log(tf.random.uniform(
      tf.shape(logits), 1e-6, 1, seed=4)))
  soft = tf.nn.softmax((logits + noise) / tf.maximum(0.5, tf.exp(-0.1 * step)))
  code = soft + tf.stop_gradient(tf.one_hot(tf.argmax(soft, -1), 4) - soft)
  made = layers.dense(tf.reshape(code, [-1, 12]), 5)
  distance = tf.reduce_sum(
      tf.nn.softmax(logits) * tf.nn.log_softmax(logits), [1, 2])
  loss = tf.reduce_mean(tf.square(made - features)) + tf.reduce_mean(distance)
  return _spec(mode, loss, {'kind': tf.argmax(logits, -1)}, lambda: {
      'distance': tf1.metrics.mean(distance)})


def drawn_weights(features, labels, mode):
  """Weights drawn for the batch, and signs of them for each row."""
  mean, spread = _weights('mean/kernel', 5, 3), _weights('spread/kernel', 5, 3)
  deviation = tf.nn.softplus(spread - 2)

  def signs(size, seed):
    return tf.sign(tf.random.uniform(
        [tf.shape(features)[0], size], -1, 1, seed=seed))

  noise = deviation * tf.random.normal([5, 3], seed=1)
  logits = features @ mean + signs(3, 3) * ((features * signs(5, 2)) @ noise)
  distance = tf.reduce_sum(
      tf.square(deviation) + tf.square(mean) - 2 * tf.math.log(deviation)) / 200
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits) + distance
  return _spec(mode, loss, {'mean': features @ mean}, lambda: {
      'distance': tf1.metrics.mean(distance)})


def mixed_rows(features, labels, mode):
  """Rows mixed with others of the batch, by shares that are drawn."""
  truth = tf.one_hot(labels, 3)
  if _is_training(mode):
    rows = tf.shape(features)[0]
    share = tf.random.gamma([rows, 2], 0.4, seed=1) + 1e-3
    share = share[:, :1] / tf.reduce_sum(share, 1, keepdims=True)
    features = share * features + (1 - share) * tf.reverse(features, [0])
    truth = share * truth + (1 - share) * truth[::-1]
    other = tf.gather(features, tf.random.shuffle(tf.range(rows), seed=3))
    features = tf.concat([features[:, :3], other[:, 3:]], 1)
  logits = layers.dense(layers.dense(features, 5, tf.nn.relu), 3)
  loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(
      labels=truth, logits=logits))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, 1))})


def first_batch(features, labels, mode):
  """Lengths of weights, which the first batch sets in a branch."""
  direction = tf.nn.l2_normalize(_weights('direction/kernel', 5, 4), 0)
  scale, shift = _weights('scale', 4), _weights('shift', 4)
  hidden = features @ direction

  def begin():
    mean, variance = tf.nn.moments(hidden, 0)
    factor = tf.math.rsqrt(variance + 1e-3)
    with tf.control_dependencies([
        scale.assign(factor), shift.assign(-mean * factor)]):
      return tf.constant(True)

  begun = [tf.cond(tf.equal(tf1.train.get_global_step(), 0), begin, lambda: (
      tf.constant(False)))] if _is_training(mode) else []
  with tf.control_dependencies(begun):
    scale, shift = (tf.convert_to_tensor(each.read_value())
                    for each in (scale, shift))
  found = layers.dense(tf.nn.relu(hidden * scale + shift), 1)
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'scale': tf1.metrics.mean(scale)})


def ranges(features, labels, mode):
  """Values of few bits, between bounds that follow the batches' extremes."""
  hidden = layers.dense(features, 4, tf.nn.relu)
  low, high = _state('low'), _state('high')
  if _is_training(mode):
    low = low.assign(0.9 * low + 0.1 * tf.reduce_min(hidden))
    high = high.assign(0.9 * high + 0.1 * tf.reduce_max(hidden) + 0.1)
  hidden = tf.quantization.fake_quant_with_min_max_vars(hidden, low, high)
  kernel = _weights('kernel', 4, 1)
  found = hidden @ tf.quantization.fake_quant_with_min_max_vars_per_channel(
      kernel, tf.reduce_min(kernel, 0), tf.reduce_max(kernel, 0))
  loss = tf.reduce_mean(tf.square(found - labels))
  return _spec(mode, loss, {'found': found}, lambda: {
      'error': tf1.metrics.mean_squared_error(labels, found)})


def variety(features, labels, mode):
  """How groups of rows vary, as a feature of each of their rows."""
  hidden = layers.dense(features, 4, tf.nn.leaky_relu)
  groups = tf.reshape(tf.concat([hidden, hidden[:-tf.shape(
      hidden)[0] % 4]], 0), [4, -1, 4])
  deviation = tf.sqrt(tf.math.reduce_variance(groups, 0) + 1e-3)
  deviation = tf.tile(tf.reduce_mean(deviation, 1, keepdims=True), [4, 1])[
      :tf.shape(hidden)[0]]
  score = layers.dense(tf.concat([hidden, deviation], 1), 1)
  slope, = tf.gradients(score, features)
  loss = tf.reduce_mean(tf.nn.softplus(-labels * score)) + tf.reduce_mean(
      tf.reduce_sum(tf.square(slope), 1))
  return _spec(mode, loss, {'score': score}, lambda: {
      'variety': tf1.metrics.mean(deviation)})


def class_centers(features, labels, mode):
  """Centres of classes move to their rows, several rows for a class."""
  vectors = layers.dense(features, 4)
  logits = layers.dense(vectors, 3)
  centers = _state('centers', 3, 4)
  own = tf.gather(centers, labels)
  _, index, count = tf.unique_with_counts(labels)
  moves = (own - vectors) / tf.cast(
      1 + tf.gather(count, index), tf.float32)[:, None]
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  loss += 0.1 * tf.reduce_mean(tf.square(vectors - own))
  train_op = None
  if _is_training(mode):
    with tf.control_dependencies([tf1.train.AdagradOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step())]):
      train_op = tf.group(tf1.scatter_sub(centers, labels, 0.5 * moves))
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'distance': tf1.metrics.mean(tf.square(vectors - own))}, train_op)


def two_views(features, labels, mode):
  """Two views of a row: one for a network, and one for its moving average."""
  del labels

  def network(x, name):
    with _named(name):
      hidden = layers.batch_normalization(
          layers.dense(x, 6, name='a'), training=_is_training(mode), name='n')
      return layers.dense(tf.nn.relu(hidden), 4, name='b')

  views = tf.concat([features, tf.reverse(features, [1])], 0)
  with _named('learner'):
    told = tf.nn.l2_normalize(layers.dense(network(views, 'net'), 4), -1)
  seen = tf.nn.l2_normalize(tf.stop_gradient(network(views, 'average')), -1)
  by_row = tf.reduce_sum(told * tf.concat(tf.split(seen, 2)[::-1], 0), 1)
  loss, train_op = 2 - 2 * tf.reduce_mean(by_row), None
  if _is_training(mode):
    learner, average = (tf1.trainable_variables(scope) for scope in (
        'learner', 'average'))
    with tf.control_dependencies(
        tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
      train_op = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(
          loss, tf1.train.get_global_step(), learner)
    own = [v for v in learner if v.op.name.startswith('learner/net')]
    with tf.control_dependencies([train_op]):
      train_op = tf.group(*[
          each.assign(0.9 * each + 0.1 * v.read_value())
          for each, v in zip(average, own)])
  return _spec(mode, loss, {'told': told[:tf.shape(features)[0]]}, lambda: {
      'near': tf1.metrics.mean(by_row)}, train_op)


def values(features, labels, mode):
  """Values of actions, by a network that a branch copies now and then."""

  def network(x, name):
    with _named(name):
      hidden = layers.dense(x, 6, tf.nn.relu, name='a')
      gains = layers.dense(hidden, 3, name='gains')
      return layers.dense(hidden, 1, name='value') + gains - (
          tf.reduce_mean(gains, 1, keepdims=True))

  found = network(features['state'], 'net')
  best = tf.argmax(network(features['next'], 'net'), 1, tf.int32)
  later = tf.gather_nd(network(features['next'], 'copy'), tf.stack(
      [tf.range(tf.shape(best)[0]), best], 1))
  target = tf.stop_gradient(labels['reward'] + 0.9 * labels['goes_on'] * later)
  error = target - tf.reduce_sum(found * tf.one_hot(labels['action'], 3), 1)
  loss, train_op = tf1.losses.huber_loss(target, target - error), None
  if _is_training(mode):
    own, copies = (tf1.trainable_variables(name) for name in ('net', 'copy'))
    step = tf1.train.get_global_step()
    with tf.control_dependencies([tf1.train.AdamOptimizer(0.01).minimize(
        loss, step, own)]):
      train_op = tf.cond(
          tf.equal(step.read_value() % 2, 0), lambda: tf.group(*[
              each.assign(v) for each, v in zip(copies, own)]), tf.no_op)
  return _spec(mode, loss, {'values': found}, lambda: {
      'error': tf1.metrics.mean(tf.abs(error))}, train_op)


def actor(features, labels, mode):
  """An actor climbs a critic's slope, which is handed to its gradient."""
  state = features['state']
  with _named('actor'):
    action = layers.dense(layers.dense(state, 5, tf.nn.relu), 2, tf.tanh)

  def value_of(action):
    with _named('critic'):
      hidden = layers.dense(
          tf.concat([state, action], 1), 5, tf.nn.relu, name='a')
      return layers.dense(hidden, 1, name='b')[:, 0]

  loss = tf.reduce_mean(tf.square(value_of(features['action']) - labels))
  train_op = None
  if _is_training(mode):
    actors, critics = (
        tf1.trainable_variables(name) for name in ('actor', 'critic'))
    slope, = tf.gradients(value_of(action), action)
    rows = tf.cast(tf.shape(state)[0], tf.float32)
    climbs = tf.gradients(action, actors, -slope / rows)
    critic = tf1.train.AdamOptimizer(0.01)
    falls = critic.compute_gradients(loss, critics)
    with tf.control_dependencies([*climbs, *(fall for fall, _ in falls)]):
      train_op = tf.group(
          critic.apply_gradients(falls, tf1.train.get_global_step()),
          tf1.train.RMSPropOptimizer(0.01).apply_gradients(
              zip(climbs, actors)))
  return _spec(mode, loss, {'action': action}, lambda: {
      'value': tf1.metrics.mean(value_of(action))}, train_op)


def sharpness(features, labels, mode):
  """The gradient of a second pass, at weights moved along the first."""

  def loss_at(kernel, last):
    return tf.reduce_mean(_cross_entropy(
        labels, tf.tanh(features @ kernel) @ last))

  own = [_weights('first/kernel', 5, 4), _weights('last/kernel', 4, 3)]
  loss, train_op = loss_at(*own), None
  if _is_training(mode):
    slope, _ = tf.clip_by_global_norm(tf.gradients(loss, own), 0.05)
    moved = [tf.stop_gradient(v + each) for v, each in zip(own, slope)]
    train_op = tf1.train.MomentumOptimizer(0.1, 0.9).apply_gradients(
        zip(tf.gradients(loss_at(*moved), moved), own),
        tf1.train.get_global_step())
  logits = tf.tanh(features @ own[0]) @ own[1]
  return _spec(mode, loss, {'logits': logits}, lambda: {
      'right': tf1.metrics.accuracy(labels, tf.argmax(logits, 1))}, train_op)


def _cheapest(costs):
  """Returns for each row of numpy arrays the order of the least cost."""
  orders = np.array(list(itertools.permutations(range(3))), np.int32)
  return orders[np.argmin(
      costs[:, np.arange(3), orders].sum(-1), 1)]


def slots(features, labels, mode):
  """Python finds the cheapest order of each row's outputs."""
  found = tf.reshape(layers.dense(features, 6), [-1, 3, 2])
  costs = tf.reduce_sum(tf.square(found[:, :, None] - labels[:, None]), -1)
  order = tf.numpy_function(_cheapest, [costs], tf.int32)
  order.set_shape([None, 3])
  loss = tf.reduce_mean(tf.gather(costs, order[..., None], batch_dims=2))
  return _spec(mode, loss, {'found': found}, lambda: {
      'first': tf1.metrics.mean(order[:, 0])})


# The model_fns, each with a batch.
ALL = {
    drawn_words: (_ints(0, 12, 3), _ints(0, 12, 1)),
    drawn_codes: (_normal(5), _normal()),
    drawn_weights: (_normal(5), _ints(0, 3)),
    mixed_rows: (_normal(5), _ints(0, 3)),
    first_batch: (_normal(5), _normal(1)),
    ranges: (_normal(5), _normal(1)),
    variety: (_normal(5), _normal(1)),
    class_centers: (_normal(5), _ints(0, 3)),
    two_views: (_normal(5), _normal()),
    values: ({'state': _normal(4), 'next': _normal(4)}, {
        'action': _ints(0, 3), 'reward': _normal(),
        'goes_on': _ints(0, 2, dtype=np.float32)}),
    actor: ({'state': _normal(3), 'action': _normal(2)}, _normal()),
    sharpness: (_normal(5), _ints(0, 3)),
    slots: (_normal(5), _normal(3, 2)),
}
# Their rows do not meet, but in what they write: shards write the batch's.
OF_ROWS = [ranges, class_centers, values, slots]
