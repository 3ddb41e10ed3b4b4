# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables that Keras casts under mixed precision, in every elastic form."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tests.helpers import strategy_worker
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
RULES = [{'rho': 0.5}, {'update_order': 'elastic_first'}]


def expected(rho=0.0, update_order='gradient_first', copies=1):
  """Copy and centre after 4 steps of gradient 1, rate .25; 2 to each move."""
  copy = center = seen = 1.0
  for step in range(1, 5):
    moved = copy - 0.25 * (1.0 + rho * (copy - seen))
    if step % 2 == 0:
      start = copy if update_order == 'elastic_first' else moved
      difference = 0.25 * (start - center)
      moved, seen = moved - difference, center
      center += copies * difference
    copy = moved
  return copy, center


def dense():
  # float16 needs nothing else, but Keras refuses it in most strategies.
  return tf.keras.layers.Dense(
      1, use_bias=False, kernel_initializer='ones',
      dtype=tf.keras.mixed_precision.Policy('mixed_bfloat16'))


def train(layer, optimizer):
  loss = tf.reduce_sum(tf.cast(layer(tf.ones([1, 1])), tf.float32))
  variables = layer.trainable_weights
  assert type(variables[0]).__name__.startswith('AutoCast')
  return loss, optimizer.minimize(
      loss, tf1.train.get_or_create_global_step(), var_list=variables)


def sgd():
  return tf1.train.GradientDescentOptimizer(0.25)


def model_fn(features, labels, mode):
  del features, labels
  loss, train_op = train(dense(), sgd())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def make(**settings):
  return elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.25, **settings)


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: next(iter(rule)))
def test_the_rule_acts_on_a_cast_variable_under_the_strategy(behavior, rule):
  worker = strategy_worker.StrategyWorker(make(**rule), model_fn)
  worker.step(4)
  np.testing.assert_allclose(
      [worker.value('dense/kernel'), worker.center('dense/kernel')],
      np.reshape(expected(**rule), [2, 1, 1]), rtol=1e-6)


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: next(iter(rule)))
def test_the_rule_acts_on_a_cast_variable_under_the_decorator(behavior, rule):
  values = decorated_models.train(estimator.elastic_average(
      communication_period=2, moving_rate=0.25, **rule)(model_fn), 4)
  np.testing.assert_allclose(
      [values['dense/kernel'], values['global_center_variable/dense/kernel']],
      np.reshape(expected(**rule), [2, 1, 1]), rtol=1e-6)


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: next(iter(rule)))
def test_the_rule_acts_on_a_cast_variable_under_the_optimizer(behavior, rule):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    optimizer = elastic_graphs.make_optimizer(
        getter, sgd(), communication_period=2, moving_rate=0.25, **rule)
    with getter.scope():
      layer = dense()
      layer.build([1, 1])
    _, train_op = train(layer, optimizer)
    cast, = layer.trainable_weights
    center = elastic_graphs.center(getter, getter.pairs[0].local)
    saver = optimizer.swapping_saver([cast])
    with elastic_graphs.session(optimizer) as session:
      for _ in range(4):
        session.run(train_op)
      values = session.run([getter.pairs[0].local, center])
  np.testing.assert_allclose(
      values, np.reshape(expected(**rule), [2, 1, 1]), rtol=1e-6)
  assert list(saver._var_list.values()) == [center]


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: next(iter(rule)))
def test_each_device_may_have_a_cast_of_its_own(behavior, rule):
  worker = strategy_worker.StrategyWorker(
      make(devices=DEVICES, **rule), model_fn)
  worker.step(4)
  np.testing.assert_allclose(
      worker.center('dense/kernel'), [[expected(copies=2, **rule)[1]]],
      rtol=1e-6)


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: next(iter(rule)))
def test_the_rule_acts_on_a_cast_that_the_devices_share(rule):
  strategy = make(devices=DEVICES, **rule)
  with strategy.scope():
    layer = dense()
    layer.build([1, 1])
    optimizer = sgd()
  kernel, = layer.trainable_weights

  @tf.function
  def step():
    def on_device():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(tf.ones([1, 1])), tf.float32))
      optimizer.apply_gradients([(tape.gradient(loss, kernel), kernel)])
    strategy.run(on_device)

  for _ in range(4):
    step()
  np.testing.assert_allclose(
      kernel.numpy(), [[expected(copies=2, **rule)[1]]], rtol=1e-6)


@pytest.mark.parametrize('devices', [None, DEVICES])
def test_a_trained_variable_without_a_centre_is_an_error(behavior, devices):

  def local(features, labels, mode):
    del features, labels
    tf1.get_variable('averaged', initializer=0.0)
    w = tf1.get_local_variable('w', initializer=1.0)
    train_op = sgd().minimize(
        w * 2.0, tf1.train.get_global_step(), var_list=[w])
    return tf1.estimator.EstimatorSpec(mode, loss=w + 0.0, train_op=train_op)

  with pytest.raises(ValueError, match="Received: 'w.*', which has no cent"):
    strategy_worker.StrategyWorker(make(devices=devices), local)
