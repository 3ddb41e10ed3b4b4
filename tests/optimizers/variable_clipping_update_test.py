# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of updates that follow an update."""

import numpy as np
import tensorflow as tf

from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1


def test_update_comes_after_and_learns_the_touched_rows(behavior):
  seen = []

  def double(variables, ids):
    seen.append(None if ids is None else ids)
    return variables[0].assign(2.0 * variables[0].read_value())

  with tf.Graph().as_default():
    a = tf1.get_variable('a', initializer=[1.0])
    b = tf1.get_variable('b', initializer=[1.0])
    first = tf.group(tf1.assign_add(a, [1.0]), tf1.assign_add(b, [2.0]))
    sparse = tf.IndexedSlices(tf.ones([1]), tf.constant([0]))
    operations = variable_clipping.update_after(first, [
        variable_clipping.VariableUpdate([a], [tf.ones([1])], double),
        variable_clipping.VariableUpdate([b], [sparse], double)])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(operations)
      np.testing.assert_array_equal(session.run([a, b]), [[4.0], [6.0]])
  assert seen[0] is None
  assert seen[1] is sparse.indices


def test_every_copy_is_updated_with_the_rows_of_all_replicas():
  seen = []

  def mark(variables, ids):
    seen.append(ids)
    return tf1.scatter_update(variables[0], ids, tf.zeros_like(ids, tf.float32))

  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'],
      cross_device_ops=tf.distribute.ReductionToOneDevice())
  with strategy.scope():
    v = tf.Variable(tf.ones([3]))

  @tf.function
  def step():
    def replica_step():
      replica = tf.distribute.get_replica_context().replica_id_in_sync_group
      gradient = tf.IndexedSlices(
          tf.ones([1]), tf.reshape(tf.cast(replica, tf.int32), [1]))
      variable_clipping.update_after(None, [
          variable_clipping.VariableUpdate([v], [gradient], mark)])

    strategy.run(replica_step)

  step()
  for copy in strategy.experimental_local_results(v):
    np.testing.assert_array_equal(copy, [0.0, 0.0, 1.0])


def test_rows_of_several_gradients_are_touched_and_a_dense_one_touches_all():
  sparse = tf.IndexedSlices(tf.ones([1]), tf.constant([0]))
  seen = []

  def look(variables, ids):
    del variables
    seen.append(None if ids is None else ids.numpy().tolist())

  variable_clipping.update_after(None, [
      variable_clipping.VariableUpdate([tf.Variable([1.0])], gradients, look)
      for gradients in ([sparse, sparse], [sparse, tf.ones([1])])])
  assert seen == [[0, 0], None]
