# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The values of a graph are found from functions and branches, and end with it.

A program that trains and evaluates in turn builds many graphs.
"""

from __future__ import annotations

import copy
import gc
import threading
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
    found.append(kept.here(State))
    return tf.constant(True)

  with tf.Graph().as_default():
    assert kept.here() is None
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert kept.here() is kept.here(State) is found[0]
  with tf.Graph().as_default():
    assert kept.here() is None


def test_eager_execution_and_functions_have_one():
  kept = per_graph.PerGraph()
  found = []
  tf.function(lambda: found.append(kept.here(State)))()
  assert found[0] is kept.here(State)
  with tf.Graph().as_default():
    assert kept.here() is None


def test_a_missing_value_is_set():
  kept = per_graph.PerGraph()
  tf.function(lambda: kept.set_here(1))()
  with tf.Graph().as_default():
    kept.set_here(2)
    assert kept.here() == 2
  assert kept.here() == 1


def test_a_graph_takes_it_along_and_a_copy_is_empty():
  kept = per_graph.PerGraph()
  with tf.Graph().as_default():
    state = weakref.ref(kept.here(State))
    assert kept.here() is state()
    assert copy.deepcopy(kept).here() is None
  kept.here(State)
  assert copy.deepcopy(kept).here() is None
  gc.collect()
  assert state() is None


def test_a_value_that_refers_to_its_graph_does_not_keep_it():
  kept, graph = per_graph.PerGraph(), tf.Graph()
  with graph.as_default():
    kept[graph] = tf1.get_variable('w', initializer=0.0)
    assert graph in kept
    assert kept.get(graph) is kept.setdefault(graph, None) is kept.here()
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


def test_counts_belong_to_a_graph_and_end_with_it():
  with tf.Graph().as_default() as graph:
    notes = per_graph.of(graph)
    notes.add_count(tf1.get_variable('local_step', initializer=0),
                    per_graph.EXCHANGES, every=10)
    notes.add_count(tf1.get_variable('a/num_dropped', initializer=0),
                    per_graph.DROPPED)
  assert per_graph.of(graph).counts == {'local_step': ('num_exchanges', 10),
                                        'a/num_dropped': ('num_dropped', 1)}
  assert not per_graph.of(tf.Graph()).counts
  kept = weakref.ref(graph)
  del graph, notes
  gc.collect()
  assert kept() is None


class _Thing:
  """Stands for a graph, or for what is in it."""

  def __eq__(self, other):
    raise AssertionError('A tensor is not compared.')

  __hash__ = object.__hash__


def test_parts_of_figures_belong_to_a_graph_and_are_kept_once():
  graph, copy_, center, other = State(), _Thing(), _Thing(), _Thing()
  notes = per_graph.of(graph)
  notes.add_figure(per_graph.DISTANCE, copy_, center)
  notes.add_figure(per_graph.DISTANCE, copy_, center)
  notes.add_figure(per_graph.DISTANCE, other, center)
  notes.add_figure(per_graph.STALENESS, other)
  found = notes.figure(per_graph.DISTANCE)
  assert [tuple(map(id, parts)) for parts in found] == [
      (id(copy_), id(center)), (id(other), id(center))]
  assert len(per_graph.of(graph).figure(per_graph.STALENESS)) == 1
  assert per_graph.of(State()).figure(per_graph.DISTANCE) == []
  kept = weakref.ref(graph)
  del graph, notes
  gc.collect()
  assert kept() is None


def test_the_notes_of_a_branch_are_those_of_its_graph():
  def branch():
    per_graph.current().counted_workers = 3
    return tf.constant(True)

  with tf.Graph().as_default() as graph:
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert per_graph.current() is per_graph.of(graph)
    assert per_graph.current().counted_workers == 3
  with tf.Graph().as_default():
    assert per_graph.current().counted_workers is None


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


def test_the_value_is_that_of_the_innermost_with():
  value = per_graph.ContextValue('outside')
  with pytest.raises(KeyError), value.being('outer'):
    with value.being('inner'):
      assert value.get() == 'inner'
    assert value.get() == 'outer'
    raise KeyError
  assert value.get() == 'outside'


def test_another_value_and_another_thread_are_left_alone():
  value, other = (per_graph.ContextValue(0) for _ in range(2))
  seen = []
  with value.being(1):
    thread = threading.Thread(target=lambda: seen.append(value.get()))
    thread.start()
    thread.join(10)
    assert other.get() == 0
  assert seen == [0]


def test_a_function_may_be_called_within():
  value = per_graph.ContextValue(0)
  get = value.being(1)(value.get)
  assert [get(), get(), value.get()] == [1, 1, 0]
