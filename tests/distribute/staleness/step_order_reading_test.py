# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the global step at an exact point."""

import tensorflow as tf

from tfplugin.distribute.staleness import step_order

tf1 = tf.compat.v1


def test_reading_does_not_follow_the_variable(behavior):
  # An alias of a ref's buffer would show 5.
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    reading = step_order.read_step(step)
    with tf.control_dependencies([reading]):
      advance = tf1.assign_add(step, 5)
    with tf.control_dependencies([advance]):
      later = reading + 0
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(later) == 0
      assert session.run(step) == 5


def test_reading_sits_beside_the_step(behavior):
  with tf.Graph().as_default():
    with tf1.device('/job:ps/task:0'):
      step = tf1.train.get_or_create_global_step()
    with tf1.device('/job:worker/task:0'):
      reading = step_order.read_step(step)
    assert reading.device == '/job:ps/task:0'


def test_reading_after_waits_for_the_gradients(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gradient = tf.cast(tf1.assign_add(step, 3), tf.float32)
    reading = step_order.read_step_after(step, [gradient, None])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(reading) == 3


def test_reading_before_leaves_control_dependencies(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    gradient = tf.gradients(w * w, w)[0]
    with tf.control_dependencies([tf1.assign_add(step, 1)]):
      reading = step_order.read_step_before_forward(step, [gradient])
    assert not reading.op.control_inputs


def test_tensors_of_gradients_of_every_kind():
  sparse = tf.IndexedSlices(tf.constant([[2.]]), tf.constant([1]))
  dense = tf.constant(1.)
  tensors = step_order.tensors_of([sparse, None, dense])
  assert [id(t) for t in tensors] == [
      id(sparse.values), id(sparse.indices), id(dense)]
  assert step_order.tensors_of([None]) == []
