# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of finding what a graph has for figures."""

import gc

from tfplugin.events import step_figures


class _Thing:
  """Stands for a graph, or for what is in it."""

  def __eq__(self, other):
    raise AssertionError('A tensor is not compared.')

  __hash__ = object.__hash__


class _Graph:
  """Is found by its identity."""


def test_parts_belong_to_a_graph_and_keep_nothing():
  graph, copy, center, other = _Graph(), _Thing(), _Thing(), _Thing()
  step_figures.note(graph, step_figures.DISTANCE, copy, center)
  step_figures.note(graph, step_figures.DISTANCE, copy, center)
  step_figures.note(graph, step_figures.DISTANCE, other, center)
  step_figures.note(graph, step_figures.STALENESS, other)
  found = step_figures.of(graph, step_figures.DISTANCE)
  assert [tuple(map(id, parts)) for parts in found] == [
      (id(copy), id(center)), (id(other), id(center))]
  assert len(step_figures.of(graph, step_figures.STALENESS)) == 1
  assert step_figures.of(_Graph(), step_figures.DISTANCE) == []
  del found, other
  gc.collect()
  assert len(step_figures.of(graph, step_figures.DISTANCE)) == 1
  assert step_figures.of(graph, step_figures.STALENESS) == []
  num_graphs = len(step_figures._noted)
  del graph
  gc.collect()
  assert len(step_figures._noted) < num_graphs
