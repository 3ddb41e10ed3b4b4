# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses in towers: every function and reduction gives one device's value."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate

tf1 = tf.compat.v1

_Reduction = tf1.losses.Reduction
_X = np.random.RandomState(0).randn(7, 3).astype(np.float32)
_LABELS = np.array([0, 1, 1, 0, 1, 0, 0])
# Some rows count nothing, others more than once; towers get 3, 2 and 2 rows.
_WEIGHTS = np.array([[1], [0], [3], [0], [0], [.5], [1]], np.float32)


def _logits(features):
  w = tf1.get_variable('w', initializer=[[.5, 1.], [-1., .3], [.2, -.7]])
  return features @ w


def _with_one_hot(name, **kwargs):
  return lambda logits, labels, **rest: getattr(tf1.losses, name)(
      tf.one_hot(labels, 2), logits, **kwargs, **rest)


def _with_probabilities(logits, labels, **rest):
  return tf1.losses.log_loss(tf.one_hot(labels, 2), tf.sigmoid(logits), **rest)


def _of_rows(make):
  """Weights are per element where a loss has one per row: `[batch]`."""
  def loss(logits, labels, weights=1.0, **rest):
    weights = weights if isinstance(weights, float) else weights[:, 0]
    return make(logits, labels, weights=weights, **rest)
  return loss


_LOSSES = {
    **{name: _with_one_hot(name) for name in (
        'absolute_difference', 'hinge_loss', 'huber_loss', 'mean_squared_error',
        'mean_pairwise_squared_error', 'sigmoid_cross_entropy')},
    'cosine_distance': _with_one_hot('cosine_distance', axis=1),
    'log_loss': _with_probabilities,
    'softmax_cross_entropy': _of_rows(_with_one_hot('softmax_cross_entropy')),
    'sparse_softmax_cross_entropy': _of_rows(
        lambda logits, labels, **rest: tf1.losses.sparse_softmax_cross_entropy(
            labels, logits, **rest)),
    'compute_weighted_loss': _of_rows(
        lambda logits, labels, **rest: tf1.losses.compute_weighted_loss(
            tf.reduce_sum(logits ** 2, axis=1), **rest)),
}


def _evaluate(make_loss, devices=None, reduction=_Reduction.MEAN):
  """Returns the loss and `w` after a step; without devices, on one."""
  def model_fn(features, labels, mode):
    loss = make_loss(_logits(features['x']), labels, features['weights'])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=tf1.train.GradientDescentOptimizer(1.0).minimize(loss))

  if devices:
    model_fn = replicate.replicate_model_fn(
        model_fn, reduction, [f'/cpu:{i}' for i in range(devices)])
  with tf.Graph().as_default(), tf1.Session() as session:
    spec = model_fn({'x': tf.constant(_X), 'weights': tf.constant(_WEIGHTS)},
                    tf.constant(_LABELS), 'train')
    session.run(tf1.global_variables_initializer())
    loss, _ = session.run([spec.loss, spec.train_op])
    return loss, session.run(tf1.trainable_variables())[0]


def _assert_as_one_device(make_loss, reduction=_Reduction.MEAN):
  expected = _evaluate(make_loss)
  found = _evaluate(make_loss, 3, reduction)
  np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
  np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)


# In spite of its name it adds the losses of the rows up.
_SUMS = ('mean_pairwise_squared_error',)


def test_the_table_holds_every_loss():
  assert set(_LOSSES) == {
      name for name, function in vars(tf1.losses).items()
      if inspect.isfunction(function) and 'reduction' in
      inspect.signature(function).parameters} | set(_SUMS)


@pytest.mark.parametrize('name', _LOSSES)
def test_every_loss_with_weights_is_that_of_one_device(behavior, name):
  _assert_as_one_device(
      lambda logits, labels, weights: _LOSSES[name](
          logits, labels, weights=weights),
      _Reduction.SUM if name in _SUMS else _Reduction.MEAN)


@pytest.mark.parametrize('reduction', sorted(
    set(_Reduction.all()) - {_Reduction.NONE}))
@pytest.mark.parametrize('weighted', (False, True))
def test_every_reduction_is_that_of_one_device(behavior, reduction, weighted):
  _assert_as_one_device(
      lambda logits, labels, weights: tf1.losses.mean_squared_error(
          tf.one_hot(labels, 2), logits, weights if weighted else 1.0,
          reduction=reduction), reduction)


@pytest.mark.parametrize('weighted', (False, True))
@pytest.mark.parametrize('reduction', ('auto', 'sum_over_batch_size', 'sum'))
def test_keras_loss_is_that_of_one_device(behavior, reduction, weighted):
  _assert_as_one_device(
      lambda logits, labels, weights: tf.keras.losses.MeanSquaredError(
          reduction)(tf.one_hot(labels, 2), logits,
                     weights if weighted else None),
      _Reduction.SUM if reduction == 'sum' else _Reduction.MEAN)


def test_keras_losses_are_left_as_they_were():
  strategy = tf1.distribute.OneDeviceStrategy('/cpu:0')
  _evaluate(lambda logits, labels, weights: tf.keras.losses.MeanSquaredError()(
      tf.one_hot(labels, 2), logits), 2)
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(ValueError, match='Reduction.SUM'):
      tf.keras.losses.MeanSquaredError()(tf.ones([1, 1]), tf.ones([1, 1]))
