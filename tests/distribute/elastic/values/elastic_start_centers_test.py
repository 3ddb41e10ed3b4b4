# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refusal of a loss or train_op that uses a centre."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1

FORMS = ['decorator', 'strategy', 'strategy of 2 devices']


def _build(form, loss_of, train_op_of=lambda update: update, **settings):
  """Builds a model_fn's TRAIN graph; returns its EstimatorSpec."""

  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('net/w', initializer=4.0)
    mean = tf1.get_variable('net/mean', initializer=1.0, trainable=False)
    update = mean.assign(0.5 * mean + 0.5 * w)
    tf1.summary.histogram('centre', tf1.global_variables('net')[0])
    loss = loss_of(w)
    with tf.control_dependencies([update]):
      train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
          loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op_of(train_op))

  settings = dict(settings, communication_period=1, moving_rate=0.25)
  with tf.Graph().as_default():
    if form == 'decorator':
      tf1.train.create_global_step()
      return estimator.elastic_average(model_fn, **settings)(
          None, None, 'train')
    strategy = elastic_average_strategy.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'] if 'devices' in form else None, **settings)
    with strategy.scope():
      tf1.train.create_global_step()
      return strategy.extended.call_for_each_replica(
          tf.autograph.experimental.do_not_convert(model_fn),
          args=(None, None, 'train'))


def _l2_of(collection):
  return lambda w: 0.0 * w + tf.add_n([
      tf.nn.l2_loss(v) for v in tf1.get_collection(collection, 'net')])


@pytest.mark.parametrize('order', ['gradient_first', 'elastic_first'])
@pytest.mark.parametrize('form', FORMS)
def test_a_loss_of_global_variables_is_refused(behavior, form, order):
  del behavior
  with pytest.raises(ValueError, match='(?s)uses the centre of .net/w:0.*'
                     'trainable_variables'):
    _build(form, _l2_of(tf1.GraphKeys.GLOBAL_VARIABLES), update_order=order)


@pytest.mark.parametrize('form', FORMS)
def test_a_train_op_that_writes_a_centre_is_refused(behavior, form):
  del behavior

  def and_reset(update):
    with tf.control_dependencies([update]):
      center, = tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES, 'net/w')
      return tf.group(center.assign(0.0))

  with pytest.raises(ValueError, match='uses the centre of .net/w:0'):
    _build(form, lambda w: w * w, and_reset)


@pytest.mark.parametrize('order', ['gradient_first', 'elastic_first'])
@pytest.mark.parametrize('form', FORMS)
def test_trained_variables_statistics_and_summaries_are_accepted(
    behavior, form, order):
  del behavior
  assert _build(form, _l2_of(tf1.GraphKeys.TRAINABLE_VARIABLES),
                update_order=order) is not None


@pytest.mark.parametrize('form', FORMS)
def test_a_check_of_all_variables_before_the_step_is_accepted(behavior, form):
  del behavior

  def after_checks(update):
    checks = [tf.debugging.check_numerics(v, v.op.name)
              for v in tf1.global_variables('net')]
    with tf.control_dependencies([update, *checks]):
      return tf.no_op()

  assert _build(form, lambda w: w * w, after_checks) is not None


@pytest.mark.parametrize('form', FORMS)
def test_a_variable_that_takes_a_centre_is_refused(behavior, form):
  del behavior
  target = []

  def loss_of(w):
    target.append(tf1.get_variable('target', initializer=0.0, trainable=False))
    return w * w

  def and_copy(update):
    center, = tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES, 'net/w')
    with tf.control_dependencies([update]):
      return tf.group(target[-1].assign(center.read_value()))

  with pytest.raises(ValueError, match='uses the centre of .net/w:0'):
    _build(form, loss_of, and_copy)
