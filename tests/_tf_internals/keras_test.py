# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Keras runs, updates and reduces is what the functions expect."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests._tf_internals import recording
from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin._tf_internals import keras
from tfplugin._tf_internals import strategies
from tfplugin.testing import devices

tf1 = tf.compat.v1

_X = np.arange(8, dtype=np.float32).reshape(4, 2)
_Y = _X[:, :1]


def _model(optimizer='sgd'):
  model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2])])
  model.compile(optimizer, 'mse')
  return model


def _inferences(strategy):
  return [keras.is_keras_inference(fn) for fn in strategy.extended.calls]


@pytest.mark.parametrize('verb, expected', [
    (lambda model: model.evaluate(_X, _Y, verbose=0), True),
    (lambda model: model.predict(_X, verbose=0), True),
    (lambda model: model.fit(_X, _Y, verbose=0), False),
], ids=['evaluate', 'predict', 'fit'])
def test_inference_is_told_from_training(verb, expected):
  strategy = recording.recording_strategy()
  with strategy.scope():
    model = _model()
  verb(model)
  assert expected in _inferences(strategy)
  assert (not expected) not in _inferences(strategy)


def test_a_function_of_the_users_is_no_inference():
  assert not keras.is_keras_inference(lambda: None)
  assert not keras.is_keras_inference(recording.Recorder())


def _updates(make_optimizer):
  """The functions by which an optimizer has a strategy update a variable."""
  strategy = recording.recording_strategy()
  with strategy.scope():
    variable = tf.Variable([1.0])
    optimizer = make_optimizer(0.5)

  @tf.function
  def apply():
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])

  strategy.run(apply)
  assert strategy.extended.updates
  return strategy.extended.updates


@pytest.mark.parametrize('optimizer', [
    tf.keras.optimizers.SGD, tf.keras.optimizers.legacy.SGD])
def test_the_update_of_a_keras_optimizer_is_from_keras(optimizer):
  # The optimizer also counts its steps, by an assignment.
  updates = [fn for fn in _updates(optimizer)
             if not strategies.is_variable_assignment(fn)]
  assert updates
  for fn in updates:
    assert keras.keras_module_of(fn).startswith(('keras.', 'tf_keras.'))
    assert keras.keras_3_module_of(fn) is None


def test_the_update_of_a_v1_optimizer_is_not_from_keras():
  for fn in _updates(tf1.train.GradientDescentOptimizer):
    assert keras.keras_module_of(fn) is None


def test_losses_are_means_where_it_applies():
  strategy = tf.distribute.MirroredStrategy(['/cpu:0'])
  y, loss = tf.constant([[0.0], [0.0]]), tf.keras.losses.MeanSquaredError()
  with strategy.scope():
    with keras.keras_means_of_losses(lambda: True):
      mean = strategy.run(lambda: loss(y, y + [[1.0], [3.0]]))
    assert mean.numpy() == 5.0  # (1 + 9) / 2
    with keras.keras_means_of_losses(lambda: False):
      with pytest.raises(ValueError, match='Reduction'):
        strategy.run(lambda: loss(y, y))


def test_batch_norm_tells_the_ops_of_its_moments():
  layer = tf.keras.layers.BatchNormalization()
  seen = []
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [2, 1])
    with keras.batch_norm_noted(seen.append):
      layer(x, training=True)
    layer(x, training=True)
  ops, = seen
  assert 'Mean' in {op.type for op in ops}


def _layers_after_updates(features, labels, mode):
  """Makes a layer after an update that depends on rows, and after a step."""
  mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
  step = tf1.train.get_global_step()
  hidden = tf.keras.layers.Dense(3)(features)
  with tf.control_dependencies([mean.assign(tf.reduce_mean(hidden))]):
    hidden = tf.keras.layers.Dense(2)(hidden)
  first = tf.reduce_mean((hidden - labels) ** 2)
  train_op = tf1.train.AdagradOptimizer(0.1).minimize(first)
  with tf.control_dependencies([train_op]):
    output = tf.keras.layers.Dense(1)(tf.stop_gradient(hidden))
  loss = tf.reduce_mean((output - labels) ** 2)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.AdagradOptimizer(
          0.1, name='second').minimize(loss, step))


@pytest.mark.parametrize('decorator, strategy', [
    (estimator_lib.replicate_model_fn, None),
    (estimator_lib.cross_shard, None),
    (None, distribute.CrossShardStrategy),
    (None, distribute.TowerStrategy),
    (None, distribute.ElasticAverageStrategy)])
def test_layers_have_the_names_of_one_device(
    behavior, decorator, strategy, tmp_path):
  cpus = devices.make_logical_cpus(2)
  estimator = tf.estimator.Estimator(
      _layers_after_updates if decorator is None else decorator(
          _layers_after_updates, devices=cpus), str(tmp_path),
      tf.estimator.RunConfig(
          train_distribute=strategy and strategy(devices=cpus)))

  def input_fn():
    return tf.data.Dataset.from_tensors((_X, _Y)).repeat()

  estimator.train(input_fn, steps=1)
  # One device finds the values by its names.
  assert estimator.evaluate(input_fn, steps=1)['global_step'] == 1
  names = [name for name in estimator.get_variable_names()
           if name.endswith('kernel')]
  assert names == ['dense/kernel', 'dense_1/kernel', 'dense_2/kernel']
