# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of a decorated model_fn with one device."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.testing import one_device

tf1 = tf.compat.v1

_X = np.float32([[1, 2], [3, 5], [7, 1]])


def _model_fn(features, mode, params=None):
  factor = (params or {}).get('factor', 1.)
  w = tf1.get_variable('w', initializer=[[1.], [2.]])
  y = features @ w * factor
  loss = tf.reduce_mean(tf.square(y))
  train_op = tf1.train.GradientDescentOptimizer(.01).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, predictions={'y': y},
      eval_metric_ops={'mean': tf1.metrics.mean(y)})


def _input_fn():
  return tf1.data.Dataset.from_tensors(_X).repeat()


def test_towers_are_one_device(behavior):
  one_device.assert_equals_one_device(_model_fn, _input_fn)


def test_modes_and_devices_may_be_read_once():
  one_device.assert_equals_one_device(
      _model_fn, _input_fn, iter(['/cpu:0', '/cpu:1']),
      modes=iter(['train', 'eval']))
  with pytest.raises(AssertionError, match='train, step 1'):
    one_device.assert_equals_one_device(
        _model_fn, _input_fn, modes=iter(['train']), decorator=_changed(
            lambda spec: spec._replace(loss=spec.loss + 1.)))


def _changed(change):
  """Returns a decorator that changes a spec."""
  def decorate(model_fn):
    def changed(features, mode):
      return change(model_fn(features, mode))
    return changed
  return decorate


@pytest.mark.sampled(3)
@pytest.mark.parametrize('change, message', (
    (lambda spec: spec._replace(loss=spec.loss + 1.),
     '`train, step 1: loss` differs in 1 of 1 elements'),
    (lambda spec: spec._replace(train_op=tf.no_op()),
     'train, step 2: loss` differs'),
    (lambda spec: spec._replace(predictions={
        'y': spec.predictions['y'] * [[1.], [1.], [2.]]}),
     r'`eval, step 1: prediction .*` differs in 1 of 3 .* at \[2, 0\]'),
    (lambda spec: spec._replace(predictions={'y': spec.predictions['y'][:2]}),
     r'its shape is \(3, 1\) on one device and \(2, 1\)'),
    (lambda spec: spec._replace(eval_metric_ops={}), 'different tensors')))
def test_the_first_tensor_that_differs_is_named(change, message):
  with pytest.raises(AssertionError, match=message):
    one_device.assert_equals_one_device(
        _model_fn, _input_fn, decorator=_changed(change))


def test_a_gradient_that_differs_is_named():
  def halved(model_fn):
    return lambda features, mode: model_fn(features, mode, {'factor': .5})

  with pytest.raises(AssertionError, match='differs in 1'):
    one_device.assert_equals_one_device(
        _model_fn, _input_fn, decorator=halved, modes=['train'])


def test_a_loss_is_read_before_the_update():
  """Nothing in this graph says whether the loss reads `w` before the update."""
  def model_fn(features, mode):
    del features
    w = tf1.get_variable('w', initializer=[1.] * 100, use_resource=True)
    loss = tf.reduce_sum(w)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
            .5).minimize(loss, tf1.train.get_global_step()))

  one_device.assert_equals_one_device(
      model_fn, _input_fn, steps=20, modes=['train'])


def test_gradients_that_wait_for_an_update_do_not_train():
  """Reading the second gradient must not be one more step of the first."""
  def make(waits):
    def model_fn(features, mode):
      del features
      v, w = (tf1.get_variable(name, initializer=1., use_resource=True)
              for name in 'vw')
      sgd = tf1.train.GradientDescentOptimizer(.25)
      loss = tf.square(v) + tf.square(w)
      first = sgd.minimize(loss, var_list=[v])
      with tf.control_dependencies([first] if waits else []):
        second = sgd.minimize(loss, tf1.train.get_global_step(), [w])
      return tf.estimator.EstimatorSpec(
          mode, loss=loss, train_op=tf.group(first, second))
    return model_fn

  one_device.assert_equals_one_device(
      make(True), _input_fn, decorator=lambda _: make(False), modes=['train'])


def test_sparse_batches_are_fed_where_they_can_be():
  def input_fn():
    return tf.data.Dataset.from_tensors(tf1.SparseTensorValue(
        [[0, 0], [1, 1]], [1., 2.], [2, 2])).repeat()

  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=[[1.], [2.]], use_resource=True)
    loss = tf.reduce_mean(tf.sparse.sparse_dense_matmul(features, w))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
            .5).minimize(loss, tf1.train.get_global_step()))

  one_device.assert_equals_one_device(model_fn, input_fn, modes=['train'])


def _batches():
  images = np.random.RandomState(0).randn(6, 4, 4, 1).astype(np.float32)
  return tf1.data.Dataset.from_tensor_slices(images).batch(
      2, drop_remainder=True).repeat()


def _convolution(features, mode, before=contextlib.nullcontext):
  kernel = tf1.get_variable(
      'kernel', [2, 2, 1, 1], initializer=tf1.initializers.ones())
  with before(features):
    loss = tf.reduce_mean(tf.square(
        tf.nn.conv2d(features, kernel, 1, 'VALID')))
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
          .1).minimize(loss, tf1.train.get_global_step()))


def test_a_shape_that_waits_for_its_batch_draws_no_other_one():
  """TensorFlow's optimizer lets the shapes of a convolution wait for it."""
  one_device.assert_equals_one_device(
      _convolution, _batches, ['/cpu:0', '/cpu:1'], modes=['train'])


def test_an_op_that_waits_for_the_batch_draws_no_other_one():
  def waiting(features, mode):
    return _convolution(
        features, mode, lambda batch: tf.control_dependencies([batch]))

  one_device.assert_equals_one_device(
      _convolution, _batches, decorator=lambda _: waiting, modes=['train'])
