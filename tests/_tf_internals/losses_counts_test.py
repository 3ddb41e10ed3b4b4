# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the counts by which mean losses divide."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin._tf_internals import losses

tf1 = tf.compat.v1

_LOSSES = {
    'absolute_difference': tf1.losses.absolute_difference,
    'cosine_distance': lambda *args, **kwargs: tf1.losses.cosine_distance(
        *args, axis=1, **kwargs),
    'hinge': tf1.losses.hinge_loss,
    'huber': tf1.losses.huber_loss,
    'log': tf1.losses.log_loss,
    'mean_squared_error': tf1.losses.mean_squared_error,
    'sigmoid': tf1.losses.sigmoid_cross_entropy,
    'softmax': tf1.losses.softmax_cross_entropy,
}
_REDUCTIONS = tf1.losses.Reduction


@pytest.fixture(autouse=True)
def _marked():
  with losses.counts_marked(lambda: True):
    yield


def _denominators():
  return [op.inputs[0] for op in tf1.get_default_graph().get_operations()
          if losses.is_count_of_mean(op)]


@pytest.mark.parametrize('name', sorted(_LOSSES))
def test_a_mean_loss_has_one_denominator(name):
  weights = np.array([[1.0], [1.0], [0.0], [2.0]], np.float32)
  for reduction, count in (
      (_REDUCTIONS.SUM_BY_NONZERO_WEIGHTS, 1),
      (_REDUCTIONS.SUM_OVER_BATCH_SIZE, 1),
      (_REDUCTIONS.MEAN, 1), (_REDUCTIONS.SUM, 0), (_REDUCTIONS.NONE, 0)):
    with tf.Graph().as_default():
      ones = tf.ones([4, 2])
      arguments = {} if name in ('sigmoid', 'softmax') else {'weights': weights}
      _LOSSES[name](ones, ones, reduction=reduction, **arguments)
      assert len(_denominators()) == count, reduction


def test_the_denominator_is_the_count():
  with tf.Graph().as_default(), tf1.Session() as session:
    ones = tf.ones([3, 2])
    tf1.losses.mean_squared_error(
        ones, ones, weights=[[1.0], [0.0], [2.0]],
        reduction=_REDUCTIONS.SUM_BY_NONZERO_WEIGHTS)
    tf1.losses.mean_squared_error(ones, ones)
    # Two rows of two columns have a weight; then all three have.
    assert session.run(_denominators()) == [4.0, 6.0]


def test_divisions_that_are_no_mean_losses_have_no_denominator():
  with tf.Graph().as_default():
    tf1.metrics.mean(tf.ones([2]))
    tf1.losses.mean_pairwise_squared_error(tf.ones([2, 3]), tf.ones([2, 3]))
    tf.math.divide_no_nan(tf.ones([2]), 2.0)
    # A program may give its own division any name.
    tf.math.divide_no_nan(tf.reduce_sum(tf1.placeholder(tf.float32, [None])),
                          tf1.placeholder(tf.float32, []), name='value')
    assert not _denominators()


def _keras(keras):
  return keras.losses.MeanSquaredError('sum_over_batch_size')(
      tf.ones([4, 2]), tf.zeros([4, 2]))


@pytest.mark.parametrize('make', [
    lambda: _keras(tf.keras),
    lambda: _keras(pytest.importorskip('keras')),
    # As the heads of Estimator do.
    lambda: tf.keras.__internal__.losses.compute_weighted_loss(
        tf.ones([4]), tf.ones([4]))])
def test_a_mean_of_keras_has_one_count(behavior, make):
  with tf.Graph().as_default(), tf1.Session() as session:
    make()
    assert session.run(_denominators()) == [4.0]


def test_only_the_mean_divides_by_the_marked_copy(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default([1.0, 3.0], [None])
    mean = tf1.losses.compute_weighted_loss(x)
    copy, = (op for op in tf1.get_default_graph().get_operations()
             if losses.is_count_of_mean(op))
    gradient, = tf1.gradients(mean, x)
    copy._update_input(0, tf.constant(8.0))
    assert session.run(mean) == 0.5
    assert list(session.run(gradient)) == [0.125, 0.125]


def test_eager_losses_are_left_alone():
  if tf.executing_eagerly():
    assert tf1.losses.mean_squared_error([0.0], [2.0]).numpy() == 4
