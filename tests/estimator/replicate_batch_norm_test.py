# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch norm in towers: `batch_norm='sync'` trains as one device does."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_TRAIN = tf.estimator.ModeKeys.TRAIN
_ROWS = np.random.RandomState(0).randn(7, 2, 3, 2).astype(np.float32) * 2 + 1


def _tf_layers(x, training, **kwargs):
  return tf1.layers.batch_normalization(
      x, training=training, momentum=.9, **kwargs)


def _keras(x, training, **kwargs):
  layer = tf.keras.layers.BatchNormalization(momentum=.9, **kwargs)
  y = layer(x, training=training)
  for update in layer.updates:
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
  return y


def _keras_v1(x, training):
  layer = tf1.keras.layers.BatchNormalization(momentum=.9)
  y = layer(x, training=training)
  for update in layer.updates:
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
  return y


def _keras_model(x, training):
  inputs = tf.keras.Input(x.shape[1:])
  layer = tf.keras.layers.BatchNormalization(momentum=.9)
  model = tf.keras.Model(inputs, layer(inputs))
  y = model(x, training=training)
  updates = model.get_updates_for(x)
  assert len(updates) == 2
  for update in updates:
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
  return y


_LAYERS = {
    'tf.layers, fused': _tf_layers,
    'tf.layers, not fused': lambda x, training: _tf_layers(
        x, training, fused=False),
    'tf.layers, no scale': lambda x, training: _tf_layers(
        x, training, scale=False, center=False),
    'tf.layers, channels first': lambda x, training: _tf_layers(
        x, training, axis=1, fused=False),
    'tf.layers, renorm': lambda x, training: _tf_layers(
        x, training, renorm=True, renorm_momentum=.5),
    'tf.layers, training fed': lambda x, training: _tf_layers(
        x, tf1.placeholder_with_default(True, [])),
    'tf.layers, rank 2, training fed': lambda x, training: _tf_layers(
        x[:, 0, 0], tf1.placeholder_with_default(True, []))[:, None, None],
    'tf.layers, rank 2': lambda x, training: _tf_layers(
        x[:, 0, 0], training)[:, None, None],
    'keras': _keras,
    'keras, rank 2': lambda x, training: _keras(
        x[:, 0, 0], training)[:, None, None],
    'keras, v1': _keras_v1,
    'keras, in a model': _keras_model,
    'keras, synchronized': lambda x, training: _keras(
        x, training, synchronized=True),
}


def _model_fn(features, labels, mode, params):
  """Two normalised layers on top of each other, and a loss with an order."""
  training = mode == _TRAIN
  h = features
  for seed in (1, 2):
    kernel = tf1.get_variable(
        f'kernel{seed}', [1, 1, 2, 2],
        initializer=tf1.initializers.random_normal(seed=seed))
    h = params['layer'](tf.nn.conv2d(h, kernel, 1, 'SAME'), training)
  loss = tf1.losses.mean_squared_error(
      labels, tf.reduce_sum(h * tf.nn.sigmoid(h), [1, 2, 3]))
  with tf.control_dependencies(
      tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
    train_op = tf1.train.GradientDescentOptimizer(.01).minimize(loss)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, predictions={'h': h},
      eval_metric_ops={'mean': tf1.metrics.mean(h)})


def _after_training(model_fn, layer, rows, steps=3, known=True):
  """Returns the losses of `steps` steps, and every variable after them."""
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder(tf.float32, [rows if known else None, 2, 3, 2])
    y = tf1.placeholder(tf.float32, [rows if known else None])
    spec = model_fn(x, y, mode=_TRAIN, params={'layer': _LAYERS[layer]})
    session.run(tf1.global_variables_initializer())
    feed = {x: _ROWS[:rows], y: np.arange(rows) * .5}
    losses = [session.run([spec.loss, spec.train_op], feed)[0]
              for _ in range(steps)]
    return losses, {v.name: session.run(v) for v in tf1.global_variables()}


def _assert_as_one_device(layer, rows, num_towers, known=True,
                          batch_norm='sync'):
  model_fn = replicate.replicate_model_fn(
      _model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)],
      batch_norm=batch_norm)
  losses, variables = _after_training(
      model_fn, layer, rows, known=known)
  expected_losses, expected = _after_training(_model_fn, layer, rows)
  np.testing.assert_allclose(losses, expected_losses, rtol=2e-4)
  assert sorted(variables) == sorted(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        variables[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('layer', _LAYERS)
def test_sync_trains_every_layer_as_one_device(layer):
  _assert_as_one_device(layer, rows=7, num_towers=2)


@pytest.mark.parametrize('batch_norm', ('mean', 'first'))
@pytest.mark.parametrize('layer', (
    'tf.layers, training fed', 'tf.layers, rank 2, training fed'))
def test_what_a_tensor_chooses_is_of_all_rows(behavior, layer, batch_norm):
  _assert_as_one_device(layer, rows=7, num_towers=2, batch_norm=batch_norm)


@pytest.mark.parametrize('layer', (
    'tf.layers, fused', 'tf.layers, not fused', 'keras'))
def test_sync_trains_a_batch_smaller_than_the_towers_as_one_device(
    behavior, layer):
  _assert_as_one_device(layer, rows=2, num_towers=3, known=False)


def test_sync_evaluates_with_the_moving_statistics(behavior):
  values = []
  for model_fn in (_model_fn, replicate.replicate_model_fn(
      _model_fn, devices=['/cpu:0', '/cpu:1'], batch_norm='sync')):
    with tf.Graph().as_default(), tf1.Session() as session:
      spec = model_fn(
          tf.constant(_ROWS), tf.constant(np.arange(7) * .5), mode='eval',
          params={'layer': _LAYERS['tf.layers, fused']})
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      values.append(session.run(
          [spec.loss, spec.predictions['h'], spec.eval_metric_ops['mean'][1]]))
  for found, expected in zip(*values):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_sync_leaves_keras_as_it_was():
  calculate = tf.keras.layers.BatchNormalization._calculate_mean_and_var
  _after_training(replicate.replicate_model_fn(
      _model_fn, devices=['/cpu:0', '/cpu:1'], batch_norm='sync'),
                  'keras', rows=2, steps=1)
  assert calculate is (
      tf.keras.layers.BatchNormalization._calculate_mean_and_var)


def test_synchronized_training_in_float64_is_exact(behavior):
  # What differs in float32, entries of slots near 0 above all, is rounding.
  rows = np.random.RandomState(1).randn(7, 4)

  def model_fn(features, labels, mode):
    x = features
    for _ in range(2):
      x = tf1.layers.batch_normalization(
          tf1.layers.dense(x, 4), training=True, momentum=.9)
      x = features + tf.nn.relu(x)
    loss = tf.reduce_mean((tf1.layers.dense(x, 1) - labels) ** 2)
    with tf.control_dependencies(
        tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
      train_op = tf1.train.MomentumOptimizer(.1, .9).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  def train(fn):
    with tf.Graph().as_default(), tf1.Session() as session:
      tf1.set_random_seed(1)
      features = tf1.placeholder_with_default(rows, [None, 4])
      labels = tf1.placeholder_with_default(rows[:, :1] ** 2, [None, 1])
      spec = fn(features, labels, _TRAIN)
      start = np.random.RandomState(2)
      for variable in tf1.global_variables():
        variable.load(start.uniform(.5, 1, variable.shape), session)
      for _ in range(3):
        session.run(spec.train_op)
      return {variable.name: session.run(variable)
              for variable in tf1.global_variables()}

  expected = train(model_fn)
  found = train(replicate.replicate_model_fn(
      model_fn, devices=['/cpu:0'] * 3, batch_norm='sync'))
  assert sum('Momentum' in name for name in found) == 10
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-13,
                               err_msg=name)


@pytest.mark.parametrize('batch_norm', ('mean', 'first'))
@pytest.mark.parametrize('layer', (
    'tf.layers, fused', 'tf.layers, not fused', 'keras'))
def test_two_views_of_each_row_are_normalised_together(
    behavior, layer, batch_norm):
  # No tower has both views of its rows, and none may have one view's moments.
  def model_fn(features, labels, mode):
    del labels
    views = tf.concat([features, 9 - 2 * features], 0)
    kernel = tf1.get_variable(
        'kernel', initializer=np.eye(2, dtype=np.float32)[None, None])
    h = _LAYERS[layer](tf.nn.conv2d(views, kernel, 1, 'SAME'), True)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_mean(h), train_op=tf.group(*updates),
        predictions={'h': h})

  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder(tf.float32, [None, 2, 3, 2])
    spec = replicate.replicate_model_fn(
        model_fn, devices=['/cpu:0', '/cpu:1'], batch_norm=batch_norm)(
            x, None, _TRAIN)
    session.run(tf1.global_variables_initializer())
    found, _ = session.run([spec.predictions['h'], spec.train_op], {x: _ROWS})
    moving, = (session.run(v) for v in tf1.global_variables()
               if 'moving_mean' in v.name)
  views = np.concatenate([_ROWS, 9 - 2 * _ROWS])
  mean, variance = views.mean((0, 1, 2)), views.var((0, 1, 2))
  np.testing.assert_allclose(
      found, (views - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(moving, 0.1 * mean, rtol=1e-4)
