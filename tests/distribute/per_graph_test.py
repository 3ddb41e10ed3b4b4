# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The values of a graph are found from functions and branches, and end with it.

A program that trains and evaluates in turn builds many graphs.
"""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin import estimator
from tfplugin.distribute import per_graph

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


class State:
  """Something to keep."""


def test_a_branch_has_what_its_graph_has(behavior):
  kept = per_graph.PerGraph()
  found = []

  def branch():
    found.append(kept.for_current_graph(State))
    return tf.constant(True)

  with tf.Graph().as_default():
    assert kept.for_current_graph() is None
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert kept.for_current_graph() is kept.for_current_graph(State) is found[0]
  with tf.Graph().as_default():
    assert kept.for_current_graph() is None


def test_eager_execution_and_functions_have_one():
  kept = per_graph.PerGraph()
  found = []
  tf.function(lambda: found.append(kept.for_current_graph(State)))()
  assert found[0] is kept.for_current_graph(State)
  with tf.Graph().as_default():
    assert kept.for_current_graph() is None


def test_a_missing_value_is_set():
  kept = per_graph.PerGraph()
  tf.function(lambda: kept.set_for_current_graph(1))()
  with tf.Graph().as_default():
    kept.set_for_current_graph(2)
    assert kept.for_current_graph() == 2
  assert kept.for_current_graph() == 1


def test_a_graph_takes_it_along_and_a_copy_is_empty():
  kept = per_graph.PerGraph()
  with tf.Graph().as_default():
    state = weakref.ref(kept.for_current_graph(State))
    assert kept.for_current_graph() is state()
    assert copy.deepcopy(kept).for_current_graph() is None
  kept.for_current_graph(State)
  assert copy.deepcopy(kept).for_current_graph() is None
  gc.collect()
  assert state() is None


def test_a_value_that_refers_to_its_graph_does_not_keep_it():
  kept, graph = per_graph.PerGraph(), tf.Graph()
  with graph.as_default():
    kept[graph] = tf1.get_variable('w', initializer=0.0)
    assert graph in kept
    assert kept.get(graph) is kept.setdefault(graph, None)
    assert kept.get(graph) is kept.for_current_graph()
  per_graph.of(graph).awaited.append(kept.get(graph))
  per_graph.of(graph).unlisted.append(kept.get(graph))
  end = weakref.ref(graph)
  del graph
  gc.collect()
  assert end() is None


def test_values_end_with_their_mapping():
  kept, graph = per_graph.PerGraph(), tf.Graph()
  state = weakref.ref(kept.setdefault(graph, State()))
  other = per_graph.PerGraph()
  assert other.get(graph) is None
  assert graph not in other
  del kept
  gc.collect()
  assert state() is None


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
