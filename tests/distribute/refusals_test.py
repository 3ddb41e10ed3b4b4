# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of nested strategies, and of Keras models in graphs under them."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import refusals
from tfplugin.testing import behaviors

TWO = ['/cpu:0', '/cpu:1']
X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


class Strategy(refusals.OneStrategy, tf.distribute.OneDeviceStrategy):
  """One that is refused inside another."""


def test_own_scope_is_entered_again():
  strategy = Strategy('/cpu:0')
  with strategy.scope():
    with strategy.scope():
      assert tf.distribute.get_strategy() is strategy
  assert not tf.distribute.has_strategy()


@pytest.mark.parametrize('cls', [
    distribute.TowerStrategy, distribute.CrossShardStrategy,
    distribute.ElasticAverageStrategy, distribute.DropStaleGradientStrategy,
    distribute.VariableClippingStrategy])
def test_the_class_in_the_place_of_an_instance_is_refused(tmp_path, cls):
  estimator = tf.estimator.Estimator(
      lambda features, labels, mode: None,
      config=tf.estimator.RunConfig(str(tmp_path), train_distribute=cls))
  with pytest.raises(TypeError, match=(
      '`train_distribute` must be an instance.*Received: its class. Call it')):
    estimator.train(lambda: tf.data.Dataset.from_tensors((X, X)))


def test_another_scope_is_refused_and_both_are_named():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with outer.scope():
    with pytest.raises(RuntimeError, match='Strategy inside OneDeviceStrategy'):
      inner.scope()
    assert tf.distribute.get_strategy() is outer


def test_on_a_device_of_another_it_is_refused():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with pytest.raises(RuntimeError, match='inside OneDeviceStrategy'):
    outer.run(lambda: inner.run(lambda: tf.constant(1)))



def fit(strategy):
  """Two steps of 0.1 in a graph; returns the weight, from 0."""
  with behaviors.behavior('v1'), tf.Graph().as_default():
    with strategy.scope():
      model = tf.keras.Sequential([tf.keras.layers.Dense(
          1, use_bias=False, kernel_initializer='zeros', input_shape=(1,))])
      model.compile(tf.keras.optimizers.legacy.SGD(0.1), 'mse')
    model.fit(X, 2 * X, batch_size=4, epochs=2, verbose=0)
    return model.get_weights()[0][0, 0]


@pytest.mark.parametrize('name, make', [
    ('ElasticAverageStrategy', distribute.ElasticAverageStrategy),
    ('ElasticAverageStrategy',
     lambda: distribute.ElasticAverageStrategy(devices=TWO)),
    ('DropStaleGradientStrategy',
     lambda: distribute.DropStaleGradientStrategy(staleness=1)),
    ('TowerStrategy', lambda: distribute.TowerStrategy(TWO)),
    ('VariableClippingStrategy over TowerStrategy',
     lambda: distribute.VariableClippingStrategy(
         distribute.TowerStrategy(TWO), {'kernel': 0}, 1.0)),
])
def test_fit_in_a_graph_is_refused_with_a_remedy(name, make):
  with pytest.raises(RuntimeError, match=f'{name} .*`Model.fit` in a graph.*'
                     'Received: .*model_to_estimator'):
    fit(make())


@pytest.mark.filterwarnings('ignore:.*deprecated')
@pytest.mark.filterwarnings('ignore:To make it possible:UserWarning')
def test_shards_train_in_a_graph():
  # The gradient is 15 (w - 2): 3 after one step, 1.5 after two.
  assert fit(distribute.CrossShardStrategy(TWO)) == pytest.approx(1.5)
