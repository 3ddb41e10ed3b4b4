# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A graph ends with its last user, while the wrapper that built it lives on.

A program that trains and evaluates in turn builds many graphs.
"""

import gc
import weakref

import pytest
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin import estimator
from tfplugin.testing import decorated_models
from tfplugin.testing import strategy_worker

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
DECORATORS = {
    'drop_stale_gradients': estimator.drop_stale_gradients(staleness=4),
    'clip_variables': estimator.clip_variables(
        rules={'weight': 0}, max_norm=0.1),
    'elastic_average': estimator.elastic_average(communication_period=2),
    'elastic_average(overlap)': estimator.elastic_average(
        communication_period=2, overlap=True),
    'cross_shard': estimator.cross_shard(devices=DEVICES),
    'replicate_model_fn': lambda model_fn: tfplugin.replicate_model_fn(
        model_fn, devices=DEVICES),
}
STRATEGIES = {
    'ElasticAverageStrategy': lambda: distribute.ElasticAverageStrategy(
        communication_period=2),
    'ElasticAverageStrategy(devices)':
        lambda: distribute.ElasticAverageStrategy(
            communication_period=2, devices=DEVICES),
    'DropStaleGradientStrategy':
        lambda: distribute.DropStaleGradientStrategy(staleness=4),
    'TowerStrategy': lambda: distribute.TowerStrategy(DEVICES),
    'CrossShardStrategy': lambda: distribute.CrossShardStrategy(DEVICES),
    'VariableClippingStrategy': lambda: distribute.VariableClippingStrategy(
        tf1.distribute.experimental.ParameterServerStrategy(),
        {'weight': 0}, 0.1),
}


def regression(graphs, make_optimizer=decorated_models.momentum):
  """A model_fn that adds weak references to `graphs`."""
  build = decorated_models.regression(make_optimizer=make_optimizer)

  def model_fn(features, labels, mode):
    graphs.append(weakref.ref(tf1.get_default_graph()))
    if features is None:
      features, labels = tf.ones([4, 2]), tf.ones([4, 1])
    return build(features, labels, mode)

  return model_fn


def assert_no_graph_lives(graphs):
  gc.collect()
  assert graphs
  assert not any(graph() for graph in graphs)


@pytest.mark.parametrize('decorator', DECORATORS)
def test_a_decorated_model_keeps_no_graph(behavior, decorator):
  del behavior
  graphs = []
  decorated = DECORATORS[decorator](regression(graphs))
  decorated_models.train(decorated)
  assert_no_graph_lives(graphs)


@pytest.mark.parametrize('name', STRATEGIES)
def test_a_strategy_keeps_no_graph(behavior, name):
  del behavior
  graphs = []
  strategy = STRATEGIES[name]()
  worker = strategy_worker.StrategyWorker(strategy, regression(graphs))
  worker.step(2)
  worker.close()
  del worker
  assert_no_graph_lives(graphs)


def test_an_optimizer_keeps_no_graph(behavior):
  del behavior
  graphs = []
  optimizer = tfplugin.DropStaleGradientOptimizer(
      tf1.train.GradientDescentOptimizer(0.125), staleness=4)
  for _ in range(2):
    decorated_models.train(regression(graphs, lambda: optimizer))
  # TensorFlow's optimizer has a tensor of its last graph.
  assert_no_graph_lives(graphs[:1])
