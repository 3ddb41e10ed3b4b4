# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Notes on a graph end with it, and are those of its branches."""

import gc
import weakref

import tensorflow as tf

from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


def test_counts_belong_to_a_graph_and_end_with_it():
  with tf.Graph().as_default() as graph:
    notes = per_graph.of(graph)
    notes.add_count(tf1.get_variable('local_step', initializer=0),
                    per_graph.EXCHANGES, every=10)
    notes.add_count(tf1.get_variable('a/num_dropped', initializer=0),
                    per_graph.DROPPED)
  assert per_graph.of(graph).counts == {
      'local_step': ('num_exchanges', 10), 'a/num_dropped': ('num_dropped', 1)}
  assert not per_graph.of(tf.Graph()).counts
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
  notes = per_graph.of(graph)
  notes.add_figure(per_graph.DISTANCE, copy_, center)
  notes.add_figure(per_graph.DISTANCE, copy_, center)
  notes.add_figure(per_graph.DISTANCE, other, center)
  notes.add_figure(per_graph.STALENESS, other)
  found = notes.figure(per_graph.DISTANCE)
  assert [tuple(map(id, parts)) for parts in found] == [
      (id(copy_), id(center)), (id(other), id(center))]
  assert len(per_graph.of(graph).figure(per_graph.STALENESS)) == 1
  assert per_graph.of(_Graph()).figure(per_graph.DISTANCE) == []
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
