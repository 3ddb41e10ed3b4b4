# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Towers without rows, with ops that TensorFlow cannot compute on none."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.testing import one_device

tf1 = tf.compat.v1

_RANDOM = np.random.RandomState(0)
_IMAGES = _RANDOM.randn(4, 6, 6, 4).astype(np.float32)
_LABELS = _RANDOM.randn(4, 1).astype(np.float32)
_DEVICES = ['/cpu:0'] * 3

_LAYERS = {
    'max_pool': lambda x, k: tf.nn.max_pool2d(
        tf.nn.conv2d(x, k, 1, 'SAME'), 2, 2, 'SAME'),
    'max_pool3d': lambda x, k: tf.nn.max_pool3d(tf.nn.conv2d(
        x, k, 1, 'SAME')[:, None], [1, 2, 2], [1, 2, 2], 'SAME'),
    'explicit padding': lambda x, k: tf.nn.conv2d(
        x, k, 1, [[0, 0], [2, 1], [1, 2], [0, 0]]),
    'dropout': lambda x, k: tf.nn.dropout(
        tf.nn.conv2d(x, k, 1, 'SAME'), rate=.5, seed=3),
}
# CPUs compute it with oneDNN alone.
_WITH_ONEDNN = {
    'dilated': lambda x, k: tf.nn.conv2d(x, k, 1, 'SAME', dilations=2),
}


def _model_fn(features, labels, mode, params):
  kernel = tf1.get_variable('kernel', [3, 3, 4, 4],
                            initializer=tf1.initializers.random_normal(seed=1))
  hidden = {**_LAYERS, **_WITH_ONEDNN}[params['layer']](features, kernel)
  outputs = tf1.layers.dense(
      tf.reduce_mean(hidden, list(range(1, hidden.shape.rank - 1))), 1,
      kernel_initializer=tf1.initializers.ones())
  loss = tf1.losses.mean_squared_error(labels, outputs)
  by_rows, = tf.gradients(loss, [features])
  loss += tf.reduce_sum(tf.square(by_rows))
  train_op = None
  if mode == 'train':
    train_op = tf1.train.GradientDescentOptimizer(.1).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, predictions=outputs,
      eval_metric_ops={'mean': tf1.metrics.mean(outputs)})


def _input_fn(rows):
  return lambda: tf1.data.Dataset.from_tensor_slices(
      (_IMAGES[:rows], _LABELS[:rows])).batch(rows).repeat()


def _compare(layer, rows):
  one_device.assert_equals_one_device(
      _model_fn, _input_fn(rows), _DEVICES, params={'layer': layer})


@pytest.mark.filterwarnings('ignore:`tf.layers')
@pytest.mark.parametrize('layer, rows', (
    *((layer, 1) for layer in _LAYERS), ('max_pool3d', 4)))
def test_fewer_rows_than_towers(behavior, layer, rows):
  _compare(layer, rows)


@pytest.mark.parametrize('layer', ('max_pool', 'dilated'))
def test_fewer_rows_than_towers_with_onednn(layer):
  root = pathlib.Path(__file__).parents[3]
  program = (f'from {__name__} import _compare; _compare({layer!r}, 1)')
  result = subprocess.run(
      [sys.executable, '-c', program], cwd=root, capture_output=True, text=True,
      check=False, env={**os.environ, 'TF_ENABLE_ONEDNN_OPTS': '1',
                        'PYTHONPATH': str(root)})
  assert not result.returncode, result.stderr[-2000:]


@pytest.mark.filterwarnings('ignore:`tf.layers')
@pytest.mark.parametrize('sizes', ((3,), (0, 3), (2, 1)))
def test_a_strategy_with_a_batch_without_rows(behavior, tmp_path, sizes):
  found = [_trained(str(tmp_path / name), strategy, batches)
           for name, strategy, batches in (
               ('towers', tower_strategy.TowerStrategy(_DEVICES[:2]), sizes),
               ('one', None, (3,)))]
  for name, value in found[1].items():
    np.testing.assert_allclose(found[0][name], value, rtol=1e-4, err_msg=name)


def _trained(directory, strategy, sizes):
  """Returns the numbers of a model after a step with batches of `sizes`."""
  def input_fn():
    def generate():
      begin = 0
      for size in sizes:
        yield _IMAGES[begin:begin + size], _LABELS[begin:begin + size]
        begin += size
    return tf.data.Dataset.from_generator(generate, output_signature=(
        tf.TensorSpec([None, 6, 6, 4], tf.float32),
        tf.TensorSpec([None, 1], tf.float32)))

  estimator = tf.estimator.Estimator(
      _model_fn, directory, tf.estimator.RunConfig(
          train_distribute=strategy, eval_distribute=strategy,
          save_summary_steps=None, session_config=tf1.ConfigProto(
              device_count={'CPU': 4}, allow_soft_placement=True)),
      params={'layer': 'max_pool3d'})
  estimator.train(input_fn)
  return {**{name: estimator.get_variable_value(name)
             for name in estimator.get_variable_names()},
          **estimator.evaluate(input_fn)}
