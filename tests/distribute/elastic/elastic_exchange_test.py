# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of an exchange: what it refuses, and a step without gradients."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy

tf1 = tf.compat.v1


def test_the_copy_that_is_not_finite_is_named_and_not_its_centre(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter)
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(0.5), on_nonfinite='raise')
    # The gradient is finite, and the copy is not.
    train_op = optimizer.minimize(tf.minimum(w.value(), 2.0))
    with elastic_graphs.session(optimizer) as session:
      session.run(w.assign(math.inf))
      with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        session.run(train_op)
  assert f'in the update of] [{w.name}]' in raised.value.message


def _sync(optimizer):
  return tf1.train.SyncReplicasOptimizer(optimizer, 1, total_num_replicas=1)


def _build_optimizer(wrap):
  getter = elastic_graphs.Getter('')
  w = elastic_graphs.variable(getter)
  wrap(lambda optimizer: elastic_graphs.make_optimizer(
      getter, optimizer)).minimize(w.value(), tf1.train.create_global_step())


def _train(decorate=lambda model_fn: model_fn, strategy=None):
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    loss = w * tf.reduce_mean(features)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=_sync(elastic_graphs.sgd(0.5)).minimize(
            loss, tf1.train.get_global_step()))

  tf.estimator.Estimator(
      decorate(model_fn), config=tf.estimator.RunConfig(
          train_distribute=strategy)).train(
              lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])), steps=1)


@pytest.mark.parametrize('build', [
    lambda: _build_optimizer(lambda make: make(_sync(elastic_graphs.sgd(0.5)))),
    lambda: _build_optimizer(lambda make: _sync(make(elastic_graphs.sgd(0.5)))),
    lambda: _train(estimator.elastic_average()),
    lambda: _train(strategy=elastic_average_strategy.ElasticAverageStrategy()),
    lambda: _train(strategy=elastic_average_strategy.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1']))
], ids=['inside', 'outside', 'decorator', 'strategy', 'devices'])
def test_a_synchronous_optimizer_is_refused_by_name(build, behavior):
  del behavior
  with tf.Graph().as_default(), pytest.raises(
      RuntimeError, match='SyncReplicasOptimizer` must not be used under ela'):
    build()


def test_a_step_without_gradients_communicates(behavior):
  del behavior

  def step():
    w = tf1.get_variable('w', initializer=0.0)
    return tf1.estimator.EstimatorSpec(
        'train', loss=w.value(), train_op=w.assign_add(4.0))

  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=1, moving_rate=0.25)
  with tf.Graph().as_default(), strategy.scope():
    spec = strategy.run(tf.autograph.experimental.do_not_convert(step))
    w, = tf1.global_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      session.run(strategy.experimental_local_results(spec.train_op))
      assert session.run(w) == 1.0  # A quarter of 4.


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_a_train_op_exchanges_if_hooks_apply_in_a_branch(behavior, form):
  """As with tensorflow_gan, whose train op only counts."""
  settings = {'communication_period': 2, 'moving_rate': 0.25}

  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('w', initializer=1.0)
    tf1.add_to_collection('updates', tf.group(tf.cond(
        tf.math.is_finite(w.value()), lambda: tf.group(
            elastic_graphs.sgd(0.5).apply_gradients([(tf.constant(1.0), w)])),
        tf.no_op)))
    return tf1.estimator.EstimatorSpec(
        mode, loss=w + 0.0, train_op=tf.group(
            tf1.train.get_global_step().assign_add(1)))

  worker = strategy_worker.StrategyWorker(*(
      (elastic_average_strategy.ElasticAverageStrategy(**settings), model_fn)
      if form == 'strategy' else (
          tf.distribute.get_strategy(),
          estimator.elastic_average(model_fn, **settings))))
  centers = []
  for updates in (2, 0, 1):
    for _ in range(updates):
      worker.session.run(worker.graph.get_collection('updates'))
    worker.step()
    centers.append(worker.center('w'))
  # The copy 1 -> .5 -> 0 in one step; none; -.5 and a quarter of -1.5.
  assert centers == [1.0, 1.0, 0.625]
  assert worker.value('local_step') == 2
  # The strategy lets the exchange advance the step.
  assert worker.value('global_step') == (1 if form == 'strategy' else 3)
