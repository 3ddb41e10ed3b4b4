# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model's own writes of the global step are dropped with the step."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin import estimator

tf1 = tf.compat.v1

GOOD = (np.ones([2, 1], np.float32), np.full([2, 1], 3.0, np.float32))
# The loss is infinite, and so is the gradient.
BAD = (np.full([2, 1], 1e30, np.float32), np.full([2, 1], -1e30, np.float32))


def _program(count):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[0.5]])
    loss = tf.reduce_mean(tf.square(features['x'] @ w - labels))
    update = tf1.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
    with tf.control_dependencies([update]):
      train_op = count(tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(train_op))
  return model_fn


def _in_branch(step):
  return tf.cond(step >= 0, lambda: tf.group(step.assign_add(1)), tf.no_op)


PROGRAMS = {
    'assign_add': _program(lambda step: tf1.assign_add(step, 1)),
    'assign': _program(lambda step: step.assign(step + 1)),
    'assign_sub': _program(lambda step: step.assign_sub(-1)),
}


def _canned():
  column = [tf.feature_column.numeric_column('x')]
  return tf1.estimator.DNNLinearCombinedRegressor(
      linear_feature_columns=column, dnn_feature_columns=column,
      dnn_hidden_units=[2], config=tf.estimator.RunConfig(tf_random_seed=3))


def _train(model_fn, batches, strategy=None):
  """Returns the variables after an epoch of `batches`."""
  def input_fn():
    features, labels = map(np.stack, zip(*batches))
    return tf.data.Dataset.from_tensor_slices(({'x': features}, labels))

  trained = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      tf_random_seed=3, train_distribute=strategy))
  trained.train(input_fn)
  return {name: trained.get_variable_value(name)
          for name in trained.get_variable_names()}


def _check(model_fn, form):
  expected = _train(model_fn, [GOOD] * 3)
  assert expected['global_step'] == 3
  batches = [GOOD, BAD, GOOD, BAD, GOOD]
  found = (
      _train(model_fn, batches, distribute.DropStaleGradientStrategy(
          staleness=2, on_nonfinite='drop')) if form == 'strategy' else
      _train(estimator.drop_stale_gradients(
          model_fn, staleness=2, on_nonfinite='drop'), batches))
  for name, value in expected.items():
    np.testing.assert_array_equal(found[name], value, name)


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
@pytest.mark.parametrize('name', PROGRAMS)
def test_a_dropped_step_does_not_count(behavior, name, form):
  _check(PROGRAMS[name], form)


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_a_canned_estimator_with_two_optimizers_counts_no_dropped_step(
    behavior, form):
  _check(_canned().model_fn, form)


def test_a_write_in_a_branch_is_told(behavior, caplog):
  model_fn = estimator.drop_stale_gradients(
      _program(_in_branch), staleness=2, on_nonfinite='drop')
  assert _train(model_fn, [GOOD, BAD])['global_step'] == 2
  assert 'from writing `global_step:0` in a dropped step' in caplog.text


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_a_count_that_runs_without_the_optimizers_draws_no_batch(
    behavior, form):
  """As of tensorflow_gan, whose hooks run the train ops of both players."""
  drawn = []

  def draw():
    drawn.append(1)
    return np.float32(1.0)

  def model_fn(features, labels, mode):
    del features, labels
    x = tf1.py_func(draw, [], tf.float32)
    x.set_shape([])
    tf1.add_to_collection('updates', tf.group(*[
        tf1.train.GradientDescentOptimizer(0.25).minimize(
            x * tf1.get_variable(name, initializer=1.0)) for name in 'vw']))
    return tf.estimator.EstimatorSpec(
        mode, loss=x, train_op=tf1.train.get_global_step().assign_add(1).op)

  worker = strategy_worker.StrategyWorker(*(
      (distribute.DropStaleGradientStrategy(staleness=0), model_fn)
      if form == 'strategy' else
      (tf.distribute.get_strategy(), estimator.drop_stale_gradients(
          model_fn, staleness=0))))
  drawn.clear()
  worker.session.run(worker.graph.get_collection('updates'))
  assert len(drawn) == 1
  worker.session.run(worker.spec.train_op)
  assert len(drawn) == 1
  assert [worker.value(name) for name in ('v', 'w', 'global_step')] == [
      0.75, 0.75, 1]
