# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of functions that are built once for all variables of a shape."""

import pytest
import tensorflow as tf

from tfplugin.distribute.clipping import clip
from tfplugin.testing import clusters

tf1 = tf.compat.v1


def _doubled(built):
  """A function that doubles a variable, and notes that it is built."""

  def double(variable, extra):
    built.append(variable.shape.as_list())
    with tf.control_dependencies([variable.assign_add(variable + extra)]):
      return (tf.reduce_sum(variable.read_value()),)

  return double


def test_it_is_built_once_for_each_shape(behavior):
  del behavior
  built = []
  with tf.Graph().as_default() as graph:
    variables = [tf1.get_variable(f'v{i}', initializer=tf.ones([1 + i % 2]),
                                  use_resource=True) for i in range(6)]
    with tf1.device('/cpu:0'):
      sums = [clip.call_by_shape('double', _doubled(built), variable,
                                  tf.constant(1.0)) for variable in variables]
    assert sorted(built) == [[1], [2]]
    assert all(op.type != 'AssignAddVariableOp' for op in
               graph.get_operations())
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(sums) == [(3.0,), (6.0,)] * 3
      assert sum(map(sum, session.run(variables))) == 27.0


def test_who_waits_for_a_result_waits_for_the_write(behavior):
  del behavior
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=1.0, use_resource=True)
    read = variable.read_value()
    with tf.control_dependencies([read]):
      result, = clip.call_by_shape(
          'double', _doubled([]), variable, tf.constant(1.0))
    with tf.control_dependencies([result]):
      later = variable.read_value()
    with tf1.Session() as session:
      session.run(variable.initializer)
      assert session.run([read, later]) == [1.0, 3.0]
      assert session.run([read, later]) == [3.0, 7.0]


@pytest.mark.parametrize('kind', ['reference', 'eager', 'function', 'compiled'])
def test_elsewhere_the_ops_are_built_themselves(kind):
  built = []
  if kind == 'reference':
    with tf.Graph().as_default():
      variables = [tf1.get_variable(f'v{i}', initializer=[1.0],
                                    use_resource=False) for i in range(2)]
      sums = [clip.call_by_shape('double', _doubled(built), variable, 1.0)
              for variable in variables]
      with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(sums) == [(3.0,), (3.0,)]
  else:
    variables = [tf.Variable([1.0]) for _ in range(2)]

    def step():
      return [clip.call_by_shape('double', _doubled(built), variable,
                                  tf.constant(1.0))[0]
              for variable in variables]

    if kind != 'eager':
      step = tf.function(step, jit_compile=kind == 'compiled')
    assert [each.numpy() for each in step()] == [3.0, 3.0]
  assert built == [[1], [1]]


def test_it_runs_beside_the_variable(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=1, num_ps=1)
  with tf.Graph().as_default() as graph:
    with tf1.device('/job:ps/task:0'):
      variable = tf1.get_variable('v', initializer=[1.0], use_resource=True)
    with tf1.device('/job:worker/task:0'):
      result = clip.call_by_shape(
          'double', _doubled([]), variable, tf.constant(1.0))
    metadata = tf1.RunMetadata()
    with cluster.session(0, graph) as session:
      session.run(variable.initializer)
      session.run(tf.group(result), run_metadata=metadata,
                  options=tf1.RunOptions(output_partition_graphs=True))
      assert session.run(variable) == [3.0]
  writes = [node for part in metadata.partition_graphs for node in part.node
            if node.op.startswith(('AssignAdd', 'Stateful'))]
  assert writes and all('/job:ps/' in node.device for node in writes)
