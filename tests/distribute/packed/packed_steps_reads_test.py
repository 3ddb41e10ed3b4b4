# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which reads of a step are packed."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute import graph_order
from tfplugin.distribute.packed import packed_steps
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


@pytest.mark.parametrize('runs_before', [False, True])
def test_what_runs_before_training_is_left_alone(
    behavior, cluster, runs_before):
  """It runs while other variables have no value."""
  del behavior
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    variables = [tf1.get_variable(f'v{index}', [3]) for index in range(4)]
    squares = [tf.square(variable) for variable in variables]
    if runs_before:
      tf1.add_to_collection(
          tf1.GraphKeys.INIT_OP, variables[1].assign(squares[0]).op)
    before = [square.op.inputs[0] for square in squares]
    loss = tf.reduce_sum(tf.add_n(squares))
    packed_steps.pack_reads(tf.estimator.EstimatorSpec(
        'train', loss=loss, train_op=loss.op))
    changed = [square.op.inputs[0] is not tensor
               for square, tensor in zip(squares, before)]
  # Of the two on the first server only one is left, which shares no message.
  assert changed == [not runs_before, True, not runs_before, True]


def test_a_write_after_a_read_waits_for_the_one_that_is_sent(
    behavior, cluster):
  """Reads of a variable share a message: the second has the first's value."""
  del behavior
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    variables = [tf1.get_variable(f'v{index}', [3], use_resource=True)
                 for index in range(4)]
    first, second = (variables[0].value() for _ in range(2))
    used = tf.square(second)
    with tf.control_dependencies([second]):
      write = variables[0].assign_add(tf.ones([3]))
    loss = tf.reduce_sum(
        tf.square(first) * used * tf.square(variables[2]))
    packed_steps.pack_reads(tf.estimator.EstimatorSpec(
        'train', loss=loss, train_op=tf.group(loss.op, write.op)))
    assert first.op in graph_order.upstream([used.op])
    assert {first.op, second.op} <= graph_order.upstream([write.op])
