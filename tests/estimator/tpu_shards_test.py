# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn over shards, in a plain Estimator, with numbers by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1
_X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


def _model_fn(features, labels, mode, params):
  assert params['batch_size'] == 2
  w = tf1.get_variable('w', initializer=[[0.0]])
  y = tf.matmul(features, w)
  loss = tf.reduce_mean(tf.square(labels - y))
  if mode == tf.estimator.ModeKeys.EVAL:
    largest = tf1.metrics.mean(tf.reduce_max(labels))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops={'largest': largest})
  train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.usefixtures('behavior')
def test_estimator_specs_are_joined_too(tmp_path):
  estimator = tf.estimator.Estimator(
      tpu_shards.shard_model_fn(_model_fn, 2, ['/cpu:0']), str(tmp_path),
      params={'batch_size': 4})

  def input_fn():
    return tf1.data.Dataset.from_tensors((_X, 2.0 * _X))

  estimator.train(input_fn)
  # 0.1 * 2 * mean(x * 2 x) = 0.1 * 60 * 2 / 4.
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[3.0]], rtol=1e-6)
  metrics = estimator.evaluate(input_fn)
  # Errors are x: mean(1, 4, 9, 16); the largest label is one of the batch.
  assert metrics['loss'] == pytest.approx(7.5)
  assert metrics['largest'] == pytest.approx(8.0)


def _evaluate(rows, num_shards, make_loss, tensors=None):
  """Returns the loss of a TPUEstimatorSpec, and the tensors of its metrics.

  The weight is 0 and labels are 2 x: errors are 2, 4, 6.
  """

  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[0.0]])
    y = tf.matmul(features, w)
    spec = tf1.estimator.tpu.TPUEstimatorSpec(
        mode, loss=make_loss(labels, y),
        eval_metrics=(lambda **_: {}, (tensors or (lambda *_: {}))(labels, y)))
    return spec

  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X[:rows], [None, 1])
    spec = tpu_shards.shard_model_fn(model_fn, num_shards, ['/cpu:0'])(
        features=x, labels=2.0 * x, mode=tf.estimator.ModeKeys.EVAL)
    session.run(tf1.global_variables_initializer())
    return session.run([spec.loss, spec.eval_metrics[1]])


@pytest.mark.parametrize('make_loss, expected', [
    (tf1.losses.mean_squared_error, {1: 4.0, 2: 10.0, 3: 56 / 3}),
    (lambda labels, y: tf.reduce_mean(tf.square(labels - y)),
     {1: 4.0, 2: 10.0, 3: 56 / 3}),
    # Weights 1, 2, 3: (4 + 32 + 108) / 6.
    (lambda labels, y: tf1.losses.mean_squared_error(
        labels, y, labels / 2.0, reduction='weighted_mean'),
     {1: 4.0, 2: 36 / 3, 3: 144 / 6}),
])
@pytest.mark.parametrize('num_shards', [2, 4])
def test_loss_of_a_smaller_batch_is_the_mean_of_its_rows(
    behavior, num_shards, make_loss, expected):
  for rows, mean in expected.items():
    loss, _ = _evaluate(rows, num_shards, make_loss)
    assert loss == pytest.approx(mean), rows


def test_tensors_of_rows_are_concatenated_and_scalars_are_the_same(behavior):
  _, tensors = _evaluate(
      3, 2, tf1.losses.mean_squared_error, lambda labels, y: {
          'labels': labels, 'rate': tf.constant(0.5) * 2.0,
          'count': tf.reshape(tf.reduce_sum(labels), [1])})
  assert tensors['labels'].tolist() == [[2.0], [4.0], [6.0]]
  assert tensors['rate'] == 1.0
  assert tensors['count'].tolist() == [6.0, 6.0]


def test_scalars_of_the_shards_own_are_refused(behavior):
  with pytest.raises(ValueError, match=(
      '`eval_metrics` must have the dimension of the batch.*Received: the '
      r'scalar .*Return one value for each row, or `tf.reshape\(x, \[1\]\)`')):
    _evaluate(3, 2, tf1.losses.mean_squared_error,
              lambda labels, y: {'largest': tf.reduce_max(labels)})


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('first, expected', [
    # d/dw of the sum and the mean of w * x, plus w: 10 + 1, 2.5 + 1.
    ('SUM', 11.0), ('MEAN', 3.5)])
def test_the_reduction_of_the_loss_that_is_minimised_decides(first, expected):
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    of_rows = w * features
    loss = w + tf1.losses.compute_weighted_loss(
        of_rows, reduction=getattr(tf1.losses.Reduction, first))
    other = 'MEAN' if first == 'SUM' else 'SUM'
    tf1.losses.compute_weighted_loss(  # For a metric, say.
        of_rows, reduction=getattr(tf1.losses.Reduction, other))
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(loss)
    return tf1.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = tpu_shards.shard_model_fn(model_fn, 2, ['/cpu:0'])(
        tf.constant(_X), None, tf.estimator.ModeKeys.TRAIN)
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    np.testing.assert_allclose(
        session.run(tf1.trainable_variables()[0]), -expected, rtol=1e-6)


def _model_fn_of_step(features, labels, mode):
  loss = tf.reduce_mean(features - labels)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf.no_op('of_the_shard'))


def test_a_step_without_a_spec_is_refused(behavior):
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None])
    with pytest.raises(TypeError, match=(
        'must return a `tf.estimator.EstimatorSpec`. Received from shard 0: '
        'None')):
      tpu_shards.shard_model_fn(
          lambda features, labels, mode: None, 2, ['/cpu:0'])(
              features=x, labels=x, mode='train')


def test_the_first_shard_trains_if_the_batch_is_even(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder(tf.float32, [None])
    spec = tpu_shards.shard_model_fn(_model_fn_of_step, 2, ['/cpu:0'])(
        features=x, labels=x, mode='train')
    # A group over several devices has a group for each.
    grouped = {op.name for each in spec.train_op.control_inputs
               for op in (each, *each.control_inputs)}
    assert 'of_the_shard' in grouped
    session.run(spec.train_op, {x: [1.0, 2.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match='2 shards'):
      session.run(spec.train_op, {x: [1.0, 2.0, 3.0]})


@pytest.mark.parametrize('make_spec', (
    tf.estimator.EstimatorSpec, tf1.estimator.tpu.TPUEstimatorSpec))
def test_a_metric_of_training_is_of_all_rows(behavior, make_spec):
  def model_fn(features, labels, mode):
    del labels
    _, update = tf1.metrics.mean(features)
    return make_spec(mode, loss=tf.reduce_mean(features), train_op=update.op)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = tpu_shards.shard_model_fn(model_fn, 2, ['/cpu:0'])(
        tf.constant(_X), None, tf.estimator.ModeKeys.TRAIN)
    session.run(tf1.local_variables_initializer())
    session.run(spec.train_op)
    total, count = tf1.get_collection(tf1.GraphKeys.METRIC_VARIABLES)
    assert session.run([total, count]) == [1 + 2 + 3 + 4, 4]


def test_shards_are_counted_by_the_context_of_a_tpu(behavior):
  seen = []

  def model_fn(features, labels, mode):
    del labels
    seen.append(_tf_internals.number_of_tpu_shards())
    return tf.estimator.EstimatorSpec(
        mode, predictions=features, loss=tf.reduce_mean(features))

  with tf.Graph().as_default():
    tpu_shards.shard_model_fn(model_fn, 2, ['/cpu:0'])(
        features=tf.constant(_X), labels=None, mode=tf.estimator.ModeKeys.EVAL)
  assert seen == [2, 2]
  assert _tf_internals.number_of_tpu_shards() is None


@pytest.mark.parametrize('make_spec', (
    tf.estimator.EstimatorSpec, tf1.estimator.tpu.TPUEstimatorSpec))
def test_a_tensor_named_loss_is_that_of_all_shards(behavior, make_spec):
  def model_fn(features, labels, mode):
    del labels
    loss = tf.identity(tf.reduce_mean(features), name='loss')
    return make_spec(mode, loss=loss, train_op=tf.no_op())

  with tf.Graph().as_default(), tf1.Session() as session:
    tpu_shards.shard_model_fn(model_fn, 2, ['/cpu:0'])(
        features=tf.constant(_X), labels=None,
        mode=tf.estimator.ModeKeys.TRAIN)
    assert session.run('loss:0') == 2.5


def test_strategy_around_it_is_refused():
  with tf.Graph().as_default(), tf.distribute.OneDeviceStrategy(
      '/cpu:0').scope(), pytest.raises(
          RuntimeError, match='`ShardedTPUEstimator` must not be used inside'):
    tpu_shards.shard_model_fn(_model_fn, 2, ['/cpu:0'])(
        features=tf.constant(_X), labels=tf.constant(_X),
        mode=tf.estimator.ModeKeys.TRAIN, params={'batch_size': 4})
