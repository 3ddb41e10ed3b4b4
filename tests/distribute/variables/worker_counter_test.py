# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a counter that one worker has for itself."""

import tensorflow as tf

from tfplugin.distribute.variables import worker_counter

tf1 = tf.compat.v1


def test_counts_without_an_initialiser(behavior):
  with tf.Graph().as_default():
    counter = worker_counter.WorkerCounter('count')
    increment, value = counter.increment(), counter.value()
    with tf1.Session() as session:
      assert session.run(value) == 0
      session.run(increment)
      session.run(increment)
      assert session.run(value) == 2
      session.run(tf1.local_variables_initializer())
      assert session.run(value) == 0
    assert tf1.local_variables() == [counter.variable]
    assert not tf1.global_variables()


def test_sits_on_the_worker_whatever_a_setter_says(behavior):
  with tf.Graph().as_default():
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)):
      counter = worker_counter.WorkerCounter('count', '/job:worker/task:3')
    assert counter.variable.device == '/job:worker/task:3'


def test_counts_beyond_the_floats():
  counter = worker_counter.WorkerCounter('count')
  counter.variable.assign(2**24)
  counter.increment()
  assert int(counter.value()) == 2**24 + 1
