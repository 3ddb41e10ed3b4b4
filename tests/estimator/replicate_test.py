# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of replicate_model_fn: towers give the numbers of one device."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.estimator import replicate

tf1 = tf.compat.v1

# The models of the users use them.
pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_Reduction = tf1.losses.Reduction
_TRAIN, _EVAL = 'train', 'eval'
# Sums of a few float32 terms in another order: gradients here are up to 10, and
# what is left of a momentum that they cancel has their roundings, not its own.
_TOLERANCE = 4 * float(np.spacing(np.float32(10)))

_X = np.random.RandomState(0).randn(7, 4).astype(np.float32)
_Y = (_X[:, :1] * 2 + 1).astype(np.float32)


def _devices(num_towers):
  return [f'/cpu:{tower}' for tower in range(num_towers)]


def _layers(x):
  h = tf1.layers.dense(x, 3, tf.tanh,
                       kernel_initializer=tf1.initializers.constant(.2),
                       kernel_regularizer=lambda w: .1 * tf.reduce_sum(w * w))
  return tf1.layers.dense(h, 1, kernel_initializer=tf1.initializers.ones())


def _get_variable(x):
  w = tf1.get_variable('w', [4, 1], initializer=tf1.initializers.constant(.3))
  return x @ w


def _variable(x):
  w = tf.Variable(tf.fill([4, 1], .3), name='w')
  b = tf.Variable([.1], name='b')
  return x @ w + b


def _keras(x):
  h = tf.keras.layers.Dense(3, 'tanh', kernel_initializer='ones')(x)
  return tf.keras.layers.Dense(1, kernel_initializer='ones')(h)


def _keras_model(x):
  return tf.keras.Sequential([
      tf.keras.layers.Dense(3, 'tanh', kernel_initializer='ones'),
      tf.keras.layers.Dense(1, kernel_initializer='ones')])(x)


def _partitioned(x):
  w = tf1.get_variable('w', [4, 1], initializer=tf1.initializers.constant(.3),
                       partitioner=tf1.fixed_size_partitioner(2))
  return x @ tf.convert_to_tensor(w)


def _embedding(x):
  table = tf1.get_variable('table', [5, 1],
                           initializer=tf1.initializers.constant(.3))
  ids = tf.cast(tf.abs(x) * 2, tf.int32) % 5
  return tf.reduce_sum(tf.nn.embedding_lookup(table, ids), axis=1)


_MODELS = (_layers, _get_variable, _variable, _keras, _keras_model,
           _partitioned, _embedding)


def _minimize(optimizer, loss):
  return optimizer.minimize(loss, tf1.train.get_global_step())


def _clip_and_apply(optimizer, loss):
  variables = tf1.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), .05)
  return optimizer.apply_gradients(zip(gradients, variables),
                                   tf1.train.get_global_step())


def _train(devices, batches, model, optimizer=None, update=_minimize,
           weights=None, num_features=4, **kwargs):
  """Returns the losses and the variables after training; None: no towers."""
  def model_fn(features, labels, mode):
    output = model(features['x'])
    tf1.losses.mean_squared_error(labels, output, features.get('weight', 1.0))
    loss = tf1.losses.get_total_loss()
    chosen = optimizer() if optimizer else tf1.train.AdamOptimizer(.1)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=update(chosen, loss))

  if devices is not None:
    model_fn = replicate.replicate_model_fn(
        model_fn, devices=devices, **kwargs)
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    x = tf1.placeholder(tf.float32, [None, num_features])
    y = tf1.placeholder(tf.float32, [None, 1])
    features = {'x': x}
    if weights is not None:
      features['weight'] = tf1.placeholder(tf.float32, [None, 1])
    spec = model_fn(features, y, _TRAIN)
    session.run(tf1.global_variables_initializer())
    losses = []
    for rows in batches:
      feed = {x: _X[rows], y: _Y[rows]}
      if weights is not None:
        feed[features['weight']] = weights[rows]
      losses.append(session.run([spec.loss, spec.train_op], feed)[0])
    return losses, {v.name: session.run(v) for v in tf1.global_variables()}


def _assert_same(found, expected):
  np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
  assert sorted(found[1]) == sorted(expected[1])
  for name, value in expected[1].items():
    np.testing.assert_allclose(
        found[1][name], value, rtol=1e-5, atol=_TOLERANCE, err_msg=name)


# Batches of 7, 2, 1 and 4 rows: not divisible, smaller than the towers, equal.
_BATCHES = (slice(0, 7), slice(2, 4), slice(5, 6), slice(1, 5))


@pytest.mark.sampled(3)
@pytest.mark.parametrize('num_towers', (1, 2, 3))
@pytest.mark.parametrize('model', _MODELS, ids=lambda model: model.__name__)
def test_equals_one_device_for_every_batch_size(behavior, model, num_towers):
  _assert_same(_train(_devices(num_towers), _BATCHES, model),
               _train(None, _BATCHES, model))


@pytest.mark.parametrize('optimizer', (
    lambda: tf1.train.GradientDescentOptimizer(.1),
    lambda: tf1.train.MomentumOptimizer(.1, .9, use_nesterov=True),
    lambda: tf1.train.AdagradOptimizer(.1),
    lambda: tf1.train.RMSPropOptimizer(.1),
    lambda: tf1.train.FtrlOptimizer(.1),
    lambda: tfplugin.TowerOptimizer(tf1.train.AdamOptimizer(.1)),
    lambda: tfplugin.TowerOptimizer(lambda: tf1.train.AdamOptimizer(.1)),
), ids=('sgd', 'nesterov', 'adagrad', 'rmsprop', 'ftrl', 'tower', 'tower_fn'))
def test_equals_one_device_with_every_optimizer(behavior, optimizer):
  _assert_same(_train(_devices(2), _BATCHES, _layers, optimizer),
               _train(None, _BATCHES, _layers, optimizer))


def test_clips_the_gradient_of_the_batch(behavior):
  train = functools.partial(_train, batches=_BATCHES, model=_layers,
                            update=_clip_and_apply)
  _assert_same(train(_devices(3)), train(None))


def test_sgd_step_by_hand(behavior):
  # w = 0, x = 1, 2, 3, y = 2 x, rate 0.1: the gradient is
  # -2 mean(x y) = -4 * (1 + 4 + 9) / 3, in one tower of 2 rows and one of 1.
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', [], initializer=tf1.initializers.zeros())
    loss = tf.reduce_mean(tf.square(labels - w * features))
    train_op = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf.constant([1., 2., 3.])
    spec = replicate.replicate_model_fn(model_fn, devices=_devices(2))(
        x, 2 * x, _TRAIN)
    session.run(tf1.global_variables_initializer())
    loss, _ = session.run([spec.loss, spec.train_op])
    assert loss == pytest.approx(4 * 14 / 3)
    w = session.run(tf1.global_variables()[0])
    assert w == pytest.approx(.1 * 4 * 14 / 3)


def _loss_of(losses, weights, reduction, devices, loss_reduction=None):
  """Returns the loss of rows with these losses and weights."""
  def model_fn(features, labels, mode):
    loss = tf1.losses.compute_weighted_loss(
        features, labels, reduction=reduction)
    return tf.estimator.EstimatorSpec(mode, loss=loss)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = replicate.replicate_model_fn(
        model_fn, devices=devices,
        loss_reduction=loss_reduction or reduction)(
            tf.constant(losses), tf.constant(weights), _EVAL)
    return session.run(spec.loss)


@pytest.mark.parametrize('reduction, expected', (
    # S = 8 + 0 + 2 + 2 = 12, three weights are not zero, four elements.
    (_Reduction.SUM, 12.0),
    (_Reduction.SUM_OVER_BATCH_SIZE, 3.0),
    # Towers have 8/1 and 4/2: their mean, 5, is what contrib returned.
    (_Reduction.SUM_BY_NONZERO_WEIGHTS, 4.0),
    # The weights sum to 1 + 0 + 2 + 1.
    (_Reduction.MEAN, 3.0)))
def test_losses_with_uneven_weights(behavior, reduction, expected):
  loss = _loss_of([8., 5., 1., 2.], [1., 0., 2., 1.], reduction, _devices(2))
  assert loss == pytest.approx(expected)


def test_uneven_weights_train_as_one_device(behavior):
  weights = np.array([[1], [0], [3], [0], [0], [2], [1]], np.float32)
  train = functools.partial(_train, batches=(slice(0, 7), slice(3, 5)),
                            model=_layers, weights=weights)
  _assert_same(train(_devices(3)), train(None))


def test_sum_losses_train_as_one_device(behavior):
  def model_fn(features, labels, mode):
    loss = tf1.losses.mean_squared_error(
        labels, _keras(features), reduction=_Reduction.SUM)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=tf1.train.GradientDescentOptimizer(.01).minimize(loss))

  values = []
  for fn in (model_fn, replicate.replicate_model_fn(
      model_fn, loss_reduction=_Reduction.SUM, devices=_devices(3))):
    with tf.Graph().as_default(), tf1.Session() as session:
      spec = fn(tf.constant(_X), tf.constant(_Y), _TRAIN)
      session.run(tf1.global_variables_initializer())
      loss, _ = session.run([spec.loss, spec.train_op])
      values.append([loss] + session.run(tf1.trainable_variables()))
  for found, expected in zip(*values):
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_two_optimizers_of_a_gan(behavior):
  def dense(x, name):
    return tf1.layers.dense(
        x, 4, name=name, kernel_initializer=tf1.initializers.constant(.3))

  def model_fn(features, mode):
    with tf1.variable_scope('generator'):
      fake = dense(features, 'dense')
    generator = tf1.trainable_variables()
    with tf1.variable_scope('discriminator', reuse=tf1.AUTO_REUSE):
      real_score, fake_score = dense(features, 'd'), dense(fake, 'd')
    discriminator = tf1.trainable_variables()[len(generator):]
    d_loss = tf.reduce_mean(tf.square(real_score - 1) + tf.square(fake_score))
    g_loss = tf.reduce_mean(tf.square(fake_score - 1))
    train_ops = [
        tf1.train.AdamOptimizer(.1, name=name).minimize(loss, var_list=var_list)
        for name, loss, var_list in (('g', g_loss, generator),
                                     ('d', d_loss, discriminator))]
    return tf.estimator.EstimatorSpec(
        mode, loss=d_loss + g_loss, train_op=tf.group(*train_ops))

  values = []
  for fn in (model_fn, replicate.replicate_model_fn(
      model_fn, devices=_devices(2))):
    with tf.Graph().as_default(), tf1.Session() as session:
      spec = fn(features=tf.constant(_X), mode=_TRAIN)
      session.run(tf1.global_variables_initializer())
      # One step: two updates in one step read variables in no fixed order.
      loss, _ = session.run([spec.loss, spec.train_op])
      values.append({v.name: session.run(v)
                     for v in tf1.global_variables()})
      values[-1]['loss'] = loss
  assert sorted(values[0]) == sorted(values[1])
  assert len([name for name in values[0] if 'kernel' in name]) == 6
  np.testing.assert_allclose(values[1]['loss'], values[0]['loss'], rtol=1e-5)
