# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerStrategy under an Estimator, beside one device."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1

_X = np.random.RandomState(0).randn(6, 2).astype(np.float32)
_Y = _X[:, :1] * 2 + 1


def _model_fn(features, labels, mode, params):
  w = tf1.get_variable('w', initializer=[[.5], [-1.]])
  rows = tf.square(features @ w - labels)
  loss = params['loss'](rows)
  train_op = None
  if mode == 'train':
    train_op = tf1.train.GradientDescentOptimizer(.1).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, eval_metric_ops={
          'mean': tf1.metrics.mean(rows), 'loss of all': tf1.metrics.mean(loss),
          'largest': tf1.metrics.mean(tf.reduce_max(rows))})


def _input_fn(sizes, static=False):
  """Returns batches of these sizes."""
  def input_fn():
    def generate():
      begin = 0
      for size in sizes:
        yield _X[begin:begin + size], _Y[begin:begin + size]
        begin += size

    rows = sizes[0] if static else None
    return tf.data.Dataset.from_generator(generate, output_signature=(
        tf.TensorSpec([rows, 2], tf.float32),
        tf.TensorSpec([rows, 1], tf.float32)))

  return input_fn


def _estimator(directory, loss, strategy=None, **kwargs):
  return tf.estimator.Estimator(
      _model_fn, str(directory / ('towers' if strategy else 'one')),
      tf.estimator.RunConfig(
          train_distribute=strategy, eval_distribute=strategy,
          save_summary_steps=None, session_config=tf1.ConfigProto(
              device_count={'CPU': 4}, allow_soft_placement=True), **kwargs),
      params={'loss': loss})


def _masked(rows):
  kept = tf.boolean_mask(rows, rows > 1.)
  return tf.reduce_sum(kept) / tf.maximum(tf.cast(
      tf.size(kept), tf.float32), 1.)


_LOSSES = {
    'mean': tf.reduce_mean, 'sum': tf.reduce_sum, 'masked': _masked,
    'root': lambda rows: tf.sqrt(tf.reduce_mean(rows)),
    'worst': tf.reduce_max}


@pytest.mark.sampled(3)
@pytest.mark.parametrize('name', _LOSSES)
def test_training_and_evaluation_equal_one_device(behavior, tmp_path, name):
  """The last step, of training and of evaluation, has one batch."""
  found, expected = [], []
  for strategy, results, sizes in (
      (tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']), found, (3, 1, 2)),
      (None, expected, (4, 2))):
    estimator = _estimator(tmp_path, _LOSSES[name], strategy)
    results.append(estimator.evaluate(_input_fn(sizes))
                   if estimator.latest_checkpoint() else {})
    estimator.train(_input_fn(sizes))
    results.append(estimator.evaluate(_input_fn(sizes)))
    results.append({'w': estimator.get_variable_value('w')})
  for one, other in zip(found, expected):
    assert sorted(one) == sorted(other)
    for key, value in other.items():
      np.testing.assert_allclose(one[key], value, rtol=2e-5, err_msg=key)


def test_a_tensor_named_loss_is_the_loss_of_the_batch(behavior, tmp_path):
  losses = []

  class Hook(tf.estimator.SessionRunHook):

    def before_run(self, run_context):
      return tf.estimator.SessionRunArgs('loss:0')

    def after_run(self, run_context, run_values):
      losses.append(run_values.results)

  for strategy, sizes in (
      (tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']), (3, 1)),
      (None, (4,))):
    _estimator(tmp_path, lambda rows: tf.reduce_max(rows, name='loss'),
               strategy).train(_input_fn(sizes), hooks=[Hook()])
  assert losses[0] == pytest.approx(losses[1], rel=1e-6)
