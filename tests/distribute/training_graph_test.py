# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Notes on a graph end with it, and are those of its branches."""

import gc
import weakref

import tensorflow as tf

from tfplugin.distribute import training_graph

tf1 = tf.compat.v1


def test_counts_belong_to_a_graph_and_end_with_it():
  with tf.Graph().as_default() as graph:
    notes = training_graph.of(graph)
    notes.add_count(tf1.get_variable('local_step', initializer=0),
                    training_graph.EXCHANGES, every=10)
    notes.add_count(tf1.get_variable('a/num_dropped', initializer=0),
                    training_graph.DROPPED)
  assert training_graph.of(graph).counts == {
      'local_step': ('num_exchanges', 10), 'a/num_dropped': ('num_dropped', 1)}
  assert not training_graph.of(tf.Graph()).counts
  kept = weakref.ref(graph)
  del graph, notes
  gc.collect()
  assert kept() is None


class _Graph:
  """Stands for a graph."""


class _Thing:
  """Stands for a tensor."""

  def __eq__(self, other):
    raise AssertionError('A tensor is not compared.')

  __hash__ = object.__hash__


def test_parts_of_figures_belong_to_a_graph_and_are_kept_once():
  graph, copy_, center, other = _Graph(), _Thing(), _Thing(), _Thing()
  notes = training_graph.of(graph)
  notes.add_figure(training_graph.DISTANCE, copy_, center)
  notes.add_figure(training_graph.DISTANCE, copy_, center)
  notes.add_figure(training_graph.DISTANCE, other, center)
  notes.add_figure(training_graph.STALENESS, other)
  found = notes.figure(training_graph.DISTANCE)
  assert [tuple(map(id, parts)) for parts in found] == [
      (id(copy_), id(center)), (id(other), id(center))]
  assert len(training_graph.of(graph).figure(training_graph.STALENESS)) == 1
  assert training_graph.of(_Graph()).figure(training_graph.DISTANCE) == []
  kept = weakref.ref(graph)
  del graph, notes
  gc.collect()
  assert kept() is None


def test_the_notes_of_a_branch_are_those_of_its_graph():
  def branch():
    training_graph.current().counted_workers = 3
    return tf.constant(True)

  with tf.Graph().as_default() as graph:
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert training_graph.current() is training_graph.of(graph)
    assert training_graph.current().counted_workers == 3
  with tf.Graph().as_default():
    assert training_graph.current().counted_workers is None
