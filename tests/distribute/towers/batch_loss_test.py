# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses of towers add up to the loss of one device, sums and means alike."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.towers import batch_loss
from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1

_X = np.array([[1., 2.], [3., -1.], [0., 1.], [2., 2.], [-1., 1.]], np.float32)
_LABELS = np.array([[1.], [2.], [0.], [3.], [5.]], np.float32)
_SUM = tf1.losses.Reduction.SUM


def _squares(w, x, labels):
  return (x @ w - labels) ** 2


def _rows(x):
  return tf.cast(tf.shape(x)[0], tf.float32)


def _sum_and_metric(w, x, labels):
  loss = tf1.losses.mean_squared_error(labels, x @ w, reduction=_SUM)
  # For a metric. It says nothing about the loss that is minimised.
  tf1.losses.mean_squared_error(labels, x @ w)
  return loss


def _in_function(w, x, labels):
  return tf.function(lambda *args: tf.reduce_sum(_squares(w, *args)))(x, labels)


_LOSSES = {
    'sum': lambda *a: tf.reduce_sum(_squares(*a)),
    'mean': lambda *a: tf.reduce_mean(_squares(*a)),
    'sum of rows': lambda *a: tf.squeeze(_squares(*a), 1),
    'sum before a mean for a metric': _sum_and_metric,
    'Keras sum': lambda w, x, y: tf.keras.losses.MeanSquaredError('sum')(
        y, x @ w),
    'Keras mean': lambda w, x, y: tf.keras.losses.MeanSquaredError()(y, x @ w),
    'l2_loss': lambda w, x, y: tf.nn.l2_loss(x @ w - y),
    'sum with regularization': lambda w, *a: (
        tf.reduce_sum(_squares(w, *a)) + tf.nn.l2_loss(w)),
    'mean with regularization': lambda w, *a: (
        tf.reduce_mean(_squares(w, *a)) + tf.nn.l2_loss(w)),
    'sum, mean and constant': lambda w, *a: (
        tf.reduce_mean(_squares(w, *a)) - (
            3 * tf.reduce_sum(_squares(w, *a)) - tf.reduce_sum(w ** 2)) / 2),
    'stacked terms': lambda w, *a: tf.reduce_sum(tf.stack(
        [tf.reduce_sum(_squares(w, *a)), tf.nn.l2_loss(w)])),
    'sum over the rows': lambda w, x, y: (
        tf.reduce_sum(_squares(w, x, y)) / _rows(x)),
    'mean times the rows': lambda w, x, y: (
        tf.reduce_mean(_squares(w, x, y)) * _rows(x)),
    'sum over ones': lambda w, x, y: (
        tf.reduce_sum(_squares(w, x, y)) / tf.reduce_sum(tf.ones_like(y))),
    'sum over a number': lambda *a: tf.reduce_sum(_squares(*a)) / 128,
    'sum over features, then mean': lambda w, x, y: tf.reduce_mean(
        tf.reduce_sum((x * tf.transpose(w)) ** 2, 1)
        / tf.cast(tf.shape(x)[1], tf.float32)),
    'mean over rows, then sum': lambda w, x, y: tf.reduce_sum(
        tf.reduce_mean((x * tf.transpose(w)) ** 2, 0)),
    'transposed': lambda *a: tf.reduce_mean(
        tf.reduce_sum(tf.transpose(_squares(*a)), 0)),
    'average loss': lambda *a: tf.nn.compute_average_loss(
        tf.reduce_sum(_squares(*a), 1)),
    'function': _in_function,
    'branch': lambda w, *a: tf.cond(
        w[0, 0] > 0, lambda: tf.reduce_sum(_squares(w, *a)), lambda: 0.0),
    'of the parameters': lambda w, *a: tf.nn.l2_loss(w),
}


def _towers(make_losses, static, tape=False):
  """Returns the towers' losses and gradients, weighted, of all losses."""
  x, labels = tf.constant(_X), tf.constant(_LABELS)
  if not static:
    x = tf1.placeholder_with_default(x, [None, 2])
    labels = tf1.placeholder_with_default(labels, [None, 1])

  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[.5], [1.]], use_resource=True)
    losses, gradients = [], []
    for make in make_losses:
      if tape:
        with tf.GradientTape() as recorder:
          loss = make(w, features, labels)
        gradients.append(recorder.gradient(loss, w))
      else:
        loss = make(w, features, labels)
        gradients.append(tf.gradients(loss, w)[0])
      losses.append(tf.reduce_sum(loss))
    # In one loss their sum can be told from each other's.
    return tf.estimator.EstimatorSpec(
        mode, loss=losses[0], train_op=tf.no_op(),
        predictions={'gradients': tf.stack(gradients)[None]})

  return model_fn, x, labels


def _one_step(make_losses, devices, static, tape=False, mode='train'):
  with tf.Graph().as_default(), tf1.Session() as session:
    model_fn, x, labels = _towers(make_losses, static, tape)
    if devices:
      model_fn = tfplugin.replicate_model_fn(
          model_fn, devices=['/cpu:0'] * devices)
    spec = model_fn(x, labels, mode)
    session.run(tf1.global_variables_initializer())
    loss, predictions = session.run([spec.loss, spec.predictions])
    return loss, predictions['gradients'][0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize('static', (False, True))
def test_gradients_are_those_of_one_device(behavior, static):
  names, losses = zip(*_LOSSES.items())
  _, expected = _one_step(losses, 0, static)
  _, found = _one_step(losses, 3, static)
  for name, gradient, one_device in zip(names, found, expected):
    np.testing.assert_allclose(
        gradient, one_device, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize('name', ('sum', 'sum, mean and constant'))
def test_loss_is_that_of_one_device(behavior, name):
  found, expected = (
      _one_step([_LOSSES[name]], devices, False)[0] for devices in (2, 0))
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gradients_in_eval_are_those_of_one_device(behavior):
  losses = [_LOSSES['sum'], _LOSSES['mean']]
  found, expected = (_one_step(losses, devices, False, mode='eval')[1]
                     for devices in (2, 0))
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_tape_takes_sums_and_means(behavior):
  losses = [_LOSSES[name] for name in ('sum', 'mean', 'Keras mean')]
  np.testing.assert_allclose(
      _one_step(losses, 2, True, tape=True)[1],
      _one_step(losses, 0, True, tape=True)[1], rtol=1e-5)


def test_a_strategy_finds_the_reduction(behavior):
  # w - .1 * (2 * 1 + 2 * 4), of towers with one row each.
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 2)
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    def step(x):
      w = tf1.get_variable('w', initializer=1.0)
      loss = tf.reduce_sum((w * x) ** 2)
      return tf1.train.GradientDescentOptimizer(.1).minimize(loss)

    rows = iter([[1.], [2.]])
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(next(rows)))
    update = strategy.run(step, args=(values,))
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(update)[0])
    w, = tf1.trainable_variables()
    assert session.run(w) == pytest.approx(0.0, abs=1e-6)


def test_what_reads_the_loss_of_a_tower_reads_that_of_the_batch(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    losses = [tf1.placeholder_with_default(x, []) for x in (
        tf.constant(2.0), tf.constant(3.0, tf.float64))]
    before = tf.negative(losses[0])  # What the total waits for is its own.
    with tf.control_dependencies([before]):
      total = losses[0] * 4 + tf.cast(losses[1], tf.float32)
    readers = [loss + loss for loss in losses]
    batch_loss.show(losses, total)
    assert session.run([total, before, *readers]) == [11.0, -2.0, 22.0, 22.0]
    assert readers[1].dtype == tf.float64
    # The losses themselves stay.
    assert session.run(losses) == [2.0, 3.0]
