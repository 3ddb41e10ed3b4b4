# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of replicate_model_fn in a real Estimator, from input to SavedModel."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings(
    'ignore:`tf.layers', 'ignore:.*load.*deprecated', 'ignore::ResourceWarning')

_X = np.random.RandomState(0).randn(7, 4).astype(np.float32)
_Y = (_X[:, 0] > 0).astype(np.int32)


def _model_fn(features, labels, mode, params):
  h = tf1.layers.dense(features['x'], 3, tf.tanh,
                       kernel_initializer=tf1.initializers.constant(.2))
  logits = tf.keras.layers.Dense(
      2, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=3))(h)
  probabilities = tf.nn.softmax(logits)
  if mode == tf.estimator.ModeKeys.PREDICT:
    classes = tf.tile([['no', 'yes']], [tf.shape(logits)[0], 1])
    return tf.estimator.EstimatorSpec(
        mode, predictions={'p': probabilities},
        export_outputs={'serving_default': tf.estimator.export.PredictOutput(
            {'scores': probabilities, 'classes': classes})})
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
  optimizer = params['wrapper'](tf1.train.AdamOptimizer(.1))
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, predictions={'p': probabilities},
      train_op=optimizer.minimize(loss, tf1.train.get_global_step()),
      eval_metric_ops={
          'accuracy': tf1.metrics.accuracy(labels, tf.argmax(logits, 1)),
          'auc': tf1.metrics.auc(labels, probabilities[:, 1])})


def _input_fn(repeat=1):
  # Batches of 3, 3 and 1 rows.
  return tf.data.Dataset.from_tensor_slices(
      ({'x': _X}, _Y)).batch(3).repeat(repeat)


def _receiver():
  features = {'x': tf1.placeholder(tf.float32, [None, 4])}
  return tf.estimator.export.ServingInputReceiver(features, features)


def _estimator(model_dir, num_towers, wrapper=lambda optimizer: optimizer,
               **kwargs):
  model_fn = _model_fn
  if num_towers:
    model_fn = tfplugin.replicate_model_fn(
        model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)])
  config = tf.estimator.RunConfig(
      tf_random_seed=1, save_summary_steps=None,
      session_config=tf1.ConfigProto(
          device_count={'CPU': 4}, allow_soft_placement=True))
  return tf.estimator.Estimator(
      model_fn, str(model_dir), config, {'wrapper': wrapper}, **kwargs)


def _variables(estimator):
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


def _assert_same(found, expected):
  assert sorted(found) == sorted(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize('wrapper', (lambda o: o, tfplugin.TowerOptimizer),
                         ids=('plain', 'TowerOptimizer'))
def test_train_evaluate_predict_equal_one_device(behavior, tmp_path, wrapper):
  plain = _estimator(tmp_path / 'plain', 0)
  towers = _estimator(tmp_path / 'towers', 2, wrapper)
  for estimator in (plain, towers):
    estimator.train(lambda: _input_fn(repeat=2))
  _assert_same(_variables(towers), _variables(plain))
  _assert_same(towers.evaluate(_input_fn), plain.evaluate(_input_fn))
  found, expected = (
      np.array([row['p'] for row in estimator.predict(_input_fn)])
      for estimator in (towers, plain))
  assert found.shape == (7, 2)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_checkpoint_moves_in_both_directions(behavior, tmp_path):
  expected = _estimator(tmp_path / 'plain', 0)
  expected.train(_input_fn)
  expected.train(_input_fn)
  for first, second in ((0, 3), (3, 0)):
    model_dir = tmp_path / f'{first}_then_{second}'
    _estimator(model_dir, first).train(_input_fn)
    moved = _estimator(model_dir, second)
    moved.train(_input_fn)
    _assert_same(_variables(moved), _variables(expected))


def test_warm_start_reaches_the_first_checkpoint(behavior, tmp_path):
  source = _estimator(tmp_path / 'source', 0)
  source.train(_input_fn)
  towers = _estimator(tmp_path / 'towers', 2,
                      warm_start_from=str(tmp_path / 'source'))
  towers.train(_input_fn)
  trained = [name for name in source.get_variable_names()
             if name.endswith(('kernel', 'bias'))]
  assert len(trained) == 4
  started = tf.train.load_checkpoint(
      str(tmp_path / 'towers' / 'model.ckpt-0'))
  for name in trained:
    np.testing.assert_array_equal(
        started.get_tensor(name), source.get_variable_value(name), name)


@pytest.mark.parametrize('rows', (7, 1))
def test_saved_model_serves_every_batch(behavior, tmp_path, rows):
  estimator = _estimator(tmp_path / 'model', 2)
  estimator.train(_input_fn)
  path = estimator.export_saved_model(str(tmp_path / 'export'), _receiver)
  expected = np.array([row['p'] for row in estimator.predict(_input_fn)])
  with tf.Graph().as_default(), tf1.Session(config=tf1.ConfigProto(
      allow_soft_placement=True)) as session:
    meta_graph = tf1.saved_model.load(session, ['serve'], path.decode())
    signature = meta_graph.signature_def['serving_default']
    scores, classes = session.run(
        [signature.outputs['scores'].name, signature.outputs['classes'].name],
        {signature.inputs['x'].name: _X[:rows]})
  np.testing.assert_allclose(scores, expected[:rows], rtol=1e-5)
  assert classes.tolist() == [[b'no', b'yes']] * rows
