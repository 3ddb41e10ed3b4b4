# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables and counters of a worker are where they should be."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.variables import worker_variables

tf1 = tf.compat.v1


@pytest.mark.parametrize('is_reference', [False, True])
def test_it_is_local_and_has_its_full_name(behavior, is_reference):
  with tf.Graph().as_default(), tf1.device('/job:ps'), tf1.name_scope('scope'):
    variable = worker_variables.create(
        lambda: tf.constant(2.0), 'mine', '/job:worker', is_reference)
    assert (variable.op.name, variable.device) == ('mine', '/job:worker')
    assert tf1.local_variables() == [variable]
    assert not tf1.global_variables() and not tf1.trainable_variables()
    assert (variable.dtype != variable.dtype.base_dtype) is is_reference


def test_a_branch_makes_it_outside_and_no_creator_sees_it(behavior):
  made = []

  def create(next_creator, **kwargs):
    made.append(kwargs['name'])
    return next_creator(**kwargs)

  def branch():
    made.append(worker_variables.create(lambda: tf.constant(2.0), 'v', ''))
    return tf.constant(True)

  with tf.Graph().as_default() as graph, tf.variable_creator_scope(create):
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert [v.graph for v in made[:1]] == [graph]
    assert len(made) == len(tf1.local_variables()) == 1
    with tf1.Session() as session:
      session.run(tf1.local_variables_initializer())
      assert session.run(made[0]) == 2.0


def test_counts_without_an_initialiser(behavior):
  with tf.Graph().as_default():
    counter = worker_variables.WorkerCounter('count')
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


def test_no_session_waits_for_a_counter(behavior):
  """A program's `local_init_op` may be older than the counter."""
  with tf.Graph().as_default():
    scaffold = tf1.train.Scaffold(local_init_op=tf.no_op())
    increment = worker_variables.WorkerCounter('count').increment()
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(scaffold)) as session:
      assert [session.run(increment) for _ in range(2)] == [1, 2]


def test_sits_on_the_worker_whatever_a_setter_says(behavior):
  with tf.Graph().as_default():
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)):
      counter = worker_variables.WorkerCounter('count', '/job:worker/task:3')
    assert counter.variable.device == '/job:worker/task:3'


def test_counts_beyond_the_floats():
  counter = worker_variables.WorkerCounter('count')
  counter.variable.assign(2**24)
  counter.increment()
  assert int(counter.value()) == 2**24 + 1
