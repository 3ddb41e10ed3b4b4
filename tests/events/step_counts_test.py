# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of finding the counters of a graph."""

import gc

from tfplugin.events import step_counts


class _Graph:
  """Stands for a graph, which is found by its identity."""


def test_counts_belong_to_a_graph_and_end_with_it():
  graph = _Graph()
  step_counts.note(graph, 'local_step', step_counts.EXCHANGES, every=10)
  step_counts.note(graph, 'a/num_dropped', step_counts.DROPPED)
  assert step_counts.of(graph) == {'local_step': ('num_exchanges', 10),
                                   'a/num_dropped': ('num_dropped', 1)}
  assert not step_counts.of(_Graph())
  num_graphs = len(step_counts._counts)
  del graph
  gc.collect()
  assert len(step_counts._counts) < num_graphs
