# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Towers without rows, with ops that TensorFlow cannot compute on none."""

import functools
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
_DEVICES = ['/cpu:0'] * 2

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
  # Some fail in the second derivative alone.
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


def _compare(layer, modes=('train',)):
  """Compares a batch of one row: the second tower is empty."""
  one_device.assert_equals_one_device(
      _model_fn, _input_fn(1), _DEVICES, steps=1, params={'layer': layer},
      modes=modes)


@pytest.mark.filterwarnings('ignore:`tf.layers')
@pytest.mark.parametrize('behavior, layer', (
    *(('v2', layer) for layer in _LAYERS), ('v1', 'max_pool3d')),
                         indirect=['behavior'])
def test_fewer_rows_than_towers(behavior, layer):
  _compare(layer)


@pytest.mark.filterwarnings('ignore:`tf.layers')
def test_fewer_rows_than_towers_in_other_modes(behavior):
  _compare('max_pool3d', ('eval', 'predict'))


def test_fewer_rows_than_towers_with_onednn():
  root = pathlib.Path(__file__).parents[3]
  program = (f'from {__name__} import _compare\n'
             'for layer in ("max_pool", "dilated"): _compare(layer)')
  result = subprocess.run(
      [sys.executable, '-c', program], cwd=root, capture_output=True, text=True,
      check=False, env={**os.environ, 'TF_ENABLE_ONEDNN_OPTS': '1',
                        'PYTHONPATH': str(root)})
  assert not result.returncode, result.stderr[-2000:]


@pytest.mark.filterwarnings('ignore:`tf.layers')
@pytest.mark.parametrize('behavior, sizes', (
    *(('v2', sizes) for sizes in ((3,), (0, 3), (2, 1))), ('v1', (3,))),
                         indirect=['behavior'])
def test_a_strategy_with_a_batch_without_rows(
    behavior, sizes, tmp_path, one_device_numbers):
  found = _trained(
      str(tmp_path), tower_strategy.TowerStrategy(_DEVICES), sizes)
  for name, value in one_device_numbers(behavior).items():
    np.testing.assert_allclose(found[name], value, rtol=1e-4, err_msg=name)


@pytest.fixture(scope='module', name='one_device_numbers')
def fixture_one_device_numbers(tmp_path_factory):
  """Trains on one device, once for each behaviour."""
  return functools.cache(lambda behavior: _trained(
      str(tmp_path_factory.mktemp(behavior)), None, (3,)))


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
