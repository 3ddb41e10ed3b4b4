# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Summaries are made where the functions look for them."""

from __future__ import annotations

import tensorflow as tf

from tfplugin._tf_internals import summaries

tf1 = tf.compat.v1


def _summaries():
  """The values of the scalar summaries of two replicas."""
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default() as graph, strategy.scope():
    value = tf.constant(2.0)
    strategy.run(lambda: tf1.summary.scalar('x', value))
    found = [summaries.summarized_value(op) for op in graph.get_operations()]
  assert all(each is None or each is value for each in found)
  return sum(each is value for each in found)


def test_every_replica_makes_them_for_a_while(behavior):
  with summaries.summaries_of_all(lambda: True):
    assert _summaries() == 2
  with summaries.summaries_of_all(lambda: False):
    assert _summaries() == 1
  assert _summaries() == 1
