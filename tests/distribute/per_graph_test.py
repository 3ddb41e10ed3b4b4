# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is kept for a graph is found from functions and branches, too."""

from __future__ import annotations

import copy
import gc

import tensorflow as tf

from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


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


def test_a_graph_takes_it_along_and_a_copy_is_empty():
  kept = per_graph.PerGraph()
  with tf.Graph().as_default():
    kept.here(State)
    assert copy.deepcopy(kept).here() is None
  kept.here(State)
  assert copy.deepcopy(kept).here() is None
  gc.collect()
  assert not kept
