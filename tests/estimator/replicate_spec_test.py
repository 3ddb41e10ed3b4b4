# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of replicate_model_fn's spec, names, devices and refusals."""

import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.estimator import replicate

tf1 = tf.compat.v1

# The models of the users use them.
pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_Reduction = tf1.losses.Reduction
_TRAIN, _EVAL, _PREDICT = 'train', 'eval', 'infer'


def _devices(num_towers):
  return [f'/cpu:{tower}' for tower in range(num_towers)]


def _layers(x):
  h = tf1.layers.dense(x, 3, tf.tanh,
                       kernel_regularizer=lambda w: .1 * tf.reduce_sum(w * w))
  return tf1.layers.dense(h, 1)


def _predict_spec(features, labels, mode):
  del labels
  export = tf.estimator.export
  scores = tf.nn.softmax(features)
  classes = tf.as_string(features)
  value = tf.reduce_sum(features, axis=1)
  return tf.estimator.EstimatorSpec(
      mode, predictions={'scores': scores, 'nested': value},
      export_outputs={
          'classes': export.ClassificationOutput(scores, classes),
          'value': export.RegressionOutput(value),
          'serving_default': export.PredictOutput({'a': scores, 'b': value})})


@pytest.mark.parametrize('rows', (8, 5, 1))
def test_predictions_and_exports_are_concatenated_in_order(behavior, rows):
  x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
  with tf.Graph().as_default(), tf1.Session() as session:
    features = tf1.placeholder(tf.float32, [None, 3])
    spec = replicate.replicate_model_fn(_predict_spec, devices=_devices(2))(
        features, None, _PREDICT)
    outputs = spec.export_outputs
    scores, classes, value, b = session.run(
        [outputs['classes'].scores, outputs['classes'].classes,
         spec.predictions['nested'], outputs['serving_default'].outputs['b']],
        {features: x})
  # contrib: scores (8, 3) beside classes (2, 4, 3).
  assert scores.shape == classes.shape == (rows, 3)
  assert [float(c) for c in classes.ravel()] == list(x.ravel())
  np.testing.assert_allclose(value, x.sum(axis=1))
  np.testing.assert_allclose(b, x.sum(axis=1))


def test_names_of_towers_and_of_the_loss(behavior):
  def model_fn(features, mode):
    w = tf1.get_variable('w', [2])
    seen = tf.identity(features, name='seen')
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(w) + tf.reduce_mean(seen))

  with tf.Graph().as_default() as graph:
    spec = replicate.replicate_model_fn(model_fn, devices=_devices(3))(
        tf.ones([3, 1]), mode=_EVAL)
    assert spec.loss.name == 'loss:0'
    for tower in range(3):
      device = tf.DeviceSpec.from_string(
          graph.get_operation_by_name(f'tower_{tower}/seen').device)
      assert (device.device_type, device.device_index) == ('CPU', tower)
    assert [v.name for v in tf1.global_variables()] == ['w:0']
    assert tf1.trainable_variables()[0].device.endswith('CPU:0')


def test_towers_are_placed_on_gpus_and_variables_on_the_cpu(behavior):
  def model_fn(features, labels, mode):
    loss = tf1.losses.mean_squared_error(labels, _layers(features))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=tf1.train.AdamOptimizer(.1).minimize(loss))

  with tf.Graph().as_default() as graph:
    replicate.replicate_model_fn(model_fn, devices=['/gpu:0', '/gpu:1'])(
        tf.ones([4, 4]), tf.ones([4, 1]), _TRAIN)
    for prefix, index in (('tower_0/', 0), ('tower_1/', 1)):
      matmul = graph.get_operation_by_name(f'{prefix}dense/MatMul')
      assert matmul.device.endswith(f'device:GPU:{index}')
    for variable in tf1.global_variables():
      assert variable.device.endswith('device:CPU:0'), variable


def test_keeps_nothing_in_collections(behavior):
  with tf.Graph().as_default() as graph:
    def model_fn(features, labels, mode):
      loss = tf1.losses.mean_squared_error(labels, _layers(features))
      optimizer = tfplugin.TowerOptimizer(tf1.train.AdamOptimizer(.1))
      return tf.estimator.EstimatorSpec(
          mode, loss=loss, train_op=optimizer.minimize(loss))

    replicate.replicate_model_fn(model_fn, devices=_devices(2))(
        tf.ones([4, 4]), tf.ones([4, 1]), _TRAIN)
    key = tfplugin.TowerOptimizer.COLLECTION_FOR_GRAPH_STATES
    assert not graph.get_collection(key)
    meta_graph = tf1.train.export_meta_graph(clear_extraneous_savers=True)
    # Only what a graph of one device has too; all of it can be serialized.
    assert set(meta_graph.collection_def) == {
        'variables', 'trainable_variables', 'train_op', 'losses',
        'regularization_losses'}
  with tf.Graph().as_default():
    tf1.train.import_meta_graph(meta_graph)


def test_collections_hold_the_variables_of_one_device(behavior):
  def model_fn(features, labels, mode):
    hidden = tf1.layers.batch_normalization(_layers(features), training=True)
    hidden = tf.keras.layers.Dense(1)(hidden)
    bias = tf1.get_variable('bias', [2], collections=['mine', 'variables'])
    loss = tf1.losses.mean_squared_error(labels, hidden + tf.reduce_sum(bias))
    tf1.summary.scalar('summary', loss)
    with tf.control_dependencies(tf1.get_collection('update_ops')):
      train_op = tf1.train.AdamOptimizer(.1).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  found = []
  for fn in (model_fn, replicate.replicate_model_fn(
      model_fn, devices=_devices(3))):
    with tf.Graph().as_default() as graph:
      fn(tf.ones([4, 4]), tf.ones([4, 1]), _TRAIN)
      found.append({
          key: [value.name for value in graph.get_collection(key)]
          for key in ('variables', 'trainable_variables', 'local_variables',
                      'model_variables', 'mine', 'summaries')})
      found[-1]['update_ops'] = len(graph.get_collection('update_ops'))
  assert found[0] == found[1]
  assert found[0]['mine'] == ['bias:0'] and found[0]['summaries']


def test_batch_of_rank_0_is_refused(behavior):
  model_fn = replicate.replicate_model_fn(_predict_spec, devices=_devices(2))
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='first dimension'):
      model_fn(tf.constant(1.0), None, _PREDICT)


def test_labels_may_be_none_for_a_model_fn_that_ignores_them(behavior):
  def model_fn(features, labels, mode):
    assert labels is None
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=tf.no_op())

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = replicate.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        tf.ones([3]), None, 'train')
    assert session.run(spec.loss) == 3.0


def test_labels_for_a_model_fn_without_them_are_refused():
  def model_fn(features, mode):
    raise AssertionError(features, mode)

  with tf.Graph().as_default(), pytest.raises(ValueError, match='`labels`'):
    replicate.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        tf.ones([3]), tf.ones([3]), 'train')


@pytest.mark.parametrize('model_fn', (
    lambda features: features,
    lambda features, labels, mode, params, config: features,
    functools.partial(lambda features, *, params: features, params=1)))
def test_every_argument_of_estimator_is_taken(model_fn):
  replicated = replicate.replicate_model_fn(model_fn)
  assert inspect.getfullargspec(replicated).args == [
      'features', 'labels', 'mode', 'params', 'config']


def test_params_of_a_canned_estimator_may_be_given(tmp_path):
  # Its model_fn takes none; SGD has the rate .2 there.
  columns = [tf.feature_column.numeric_column('x')]
  canned = tf1.estimator.LinearRegressor(columns, optimizer='SGD')
  estimator = tf1.estimator.Estimator(
      replicate.replicate_model_fn(canned.model_fn, devices=['/cpu:0'] * 2),
      str(tmp_path), params=canned.params)
  estimator.train(lambda: tf1.data.Dataset.from_tensors(
      ({'x': [[1.], [2.]]}, [[.5], [.25]])), steps=1)
  # The sum over rows: w = .2 * 2 * (1 * .5 + 2 * .25).
  name = 'linear/linear_model/x/weights'
  assert estimator.get_variable_value(name) == pytest.approx(.4)


@pytest.mark.parametrize('reduction', (_Reduction.NONE, 'mean', ''))
def test_bad_loss_reduction_is_refused(reduction):
  with pytest.raises(ValueError, match='`loss_reduction` must be one of'):
    replicate.replicate_model_fn(_predict_spec, loss_reduction=reduction)


def test_inside_a_strategy_is_refused(behavior):
  model_fn = replicate.replicate_model_fn(_predict_spec, devices=_devices(2))
  strategy = tf1.distribute.OneDeviceStrategy('/cpu:0')
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(RuntimeError, match='inside a tf.distribute strategy'):
      model_fn(tf.ones([2, 1]), None, _PREDICT)


@pytest.mark.parametrize('policy, expected', (
    # Rows 1, 1, 1 | 3, 3: means 1 and 3 with shares .6 and .4; momentum 0.
    ('mean', .6 * 1 + .4 * 3), ('first', 1.0),
    # The mean of all rows, 9 / 5.
    ('sync', 1.8)))
def test_batch_norm_policy(behavior, policy, expected):

  def model_fn(features, mode):
    tf1.layers.batch_normalization(features, training=True, momentum=0.0)
    w = tf1.get_variable('w', [])
    with tf.control_dependencies(tf1.get_collection(
        tf1.GraphKeys.UPDATE_OPS)):
      train_op = tf1.train.GradientDescentOptimizer(.1).minimize(w * w)
    return tf.estimator.EstimatorSpec(mode, loss=w * w, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = replicate.replicate_model_fn(
        model_fn, devices=_devices(2), batch_norm=policy)(
            tf.constant([[1.], [1.], [1.], [3.], [3.]]), mode=_TRAIN)
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    mean, = [v for v in tf1.global_variables() if 'moving_mean' in v.name]
    assert session.run(mean) == pytest.approx([expected])


def test_bad_batch_norm_policy_is_refused():
  with pytest.raises(ValueError, match='`batch_norm` must be one of'):
    replicate.replicate_model_fn(_predict_spec, batch_norm='last')


def test_without_replicate_eval_evaluation_stays_on_one_device(behavior):
  @replicate.replicate_model_fn(devices=_devices(3), replicate_eval=False)
  def model_fn(features, mode):
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_mean(features), predictions=-features)

  for mode, expected in (_EVAL, 0), (_PREDICT, 3):
    with tf.Graph().as_default() as graph:
      model_fn(tf.ones([3]), mode=mode)
      assert sum(op.name.endswith('/Neg')
                 for op in graph.get_operations()) == expected


def test_the_model_fn_may_make_the_step(behavior):
  """Estimator makes one before; who calls the model_fn by hand may not."""

  def model_fn(features, labels, mode):
    loss = tf1.losses.mean_squared_error(
        labels, features * tf1.get_variable('w', initializer=0.0))
    step = tf1.train.get_or_create_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        tf1.train.GradientDescentOptimizer(0.5).minimize(loss, step)))

  x = np.float32([1, 2, 3])
  with tf.Graph().as_default(), tf1.Session() as session:
    spec = replicate.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        tf.constant(x), tf.constant(x), _TRAIN)
    assert [v.op.name for v in tf1.global_variables()] == ['w', 'global_step']
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    assert session.run(tf1.train.get_global_step()) == 1
