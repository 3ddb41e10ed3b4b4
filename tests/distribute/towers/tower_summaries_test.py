# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that a model_fn reports by name, in a summary or to a hook."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.estimator import replicate

tf1 = tf.compat.v1

# Towers get three rows and two: means 2 and 20, 46 / 5 of all; sums 6 and 40.
_X = np.float32([1, 2, 3, 10, 30])
_DEVICES = ['/cpu:0', '/cpu:1']


def _model_fn(report):

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    loss = report(w, features)
    train_op = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def _of_decorator(report):
  return replicate.replicate_model_fn(_model_fn(report), devices=_DEVICES)(
      tf.constant(_X), None, 'train')


def _found(report):
  """Returns the tensors that were summarised, by name, and `loss`."""
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    _of_decorator(report)
    session.run(tf1.global_variables_initializer())
    summaries = [op for op in graph.get_operations()
                 if op.type == 'ScalarSummary']
    names = [op.name for op in summaries if not op.name.startswith('tower_')]
    serialized = session.run([
        graph.get_tensor_by_name(f'{name}:0') for name in names])
    found = {v.tag: v.simple_value for each in serialized
             for v in tf1.Summary.FromString(each).value}
    return found, session.run('loss:0')


def _report(w, x):
  loss = tf.reduce_mean(w * x)
  tf1.summary.scalar('the_mean', tf.reduce_mean(x))
  tf1.summary.scalar('the_sum', tf.reduce_sum(x))
  tf1.summary.scalar('largest', tf.reduce_max(x))
  tf1.summary.scalar('rate', w + 0.5)
  tf1.summary.scalar('rows', tf.shape(x)[0])
  tf1.summary.scalar('twice', 2 * loss)
  return tf.identity(loss, name='loss')


def test_numbers_are_those_of_the_batch(behavior):
  found, loss = _found(_report)
  assert found == {
      'the_mean': pytest.approx(9.2), 'the_sum': 46.0, 'rate': 1.5, 'rows': 5.0,
      'twice': pytest.approx(18.4), 'largest': 30.0}
  assert loss == pytest.approx(9.2)


@pytest.mark.parametrize('make', [
    lambda loss: tf.cond(loss > 0, lambda: loss, lambda: -loss),
    lambda loss: _after(loss)])
def test_what_others_wait_for_is_no_name(behavior, make):
  with tf.Graph().as_default(), tf1.Session() as session:
    spec = _of_decorator(lambda w, x: make(tf.reduce_mean(w * x)))
    session.run(tf1.global_variables_initializer())
    assert session.run(spec.loss) == pytest.approx(9.2)
    session.run(spec.train_op)
    np.testing.assert_allclose(
        session.run(tf1.trainable_variables()), [1 - 0.5 * 9.2], rtol=1e-6)


def _after(loss):
  with tf.control_dependencies([tf.no_op()]):
    return tf.identity(loss)


def test_towers_of_a_strategy_report_the_batch():
  def report(w, x):
    loss = tf.reduce_mean(w * x)
    tf1.summary.scalar('the_sum', tf.reduce_sum(x))
    return tf.identity(loss, name='loss')

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = tower_strategy.TowerStrategy(_DEVICES)
    with strategy.scope():
      x = [tf1.placeholder_with_default(part, [None])
           for part in (_X[:3], _X[3:])]
      features = strategy.experimental_distribute_values_from_function(
          lambda context: x[context.replica_id_in_sync_group])
      strategy.run(
          lambda part: _model_fn(report)(part, None, 'train'), args=(features,))
    session.run(tf1.global_variables_initializer())
    total, loss = session.run(['the_sum:0', 'loss:0'])
    assert tf1.Summary.FromString(total).value[0].simple_value == 46
    assert loss == pytest.approx(9.2)
