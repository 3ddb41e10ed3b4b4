# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of a graph are those of its wrapper, in sessions that train."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute import per_graph
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1


def _elastic_graph():
  """Returns the train op of two variables, of which one is far from 0."""
  step = tf1.train.create_global_step()
  getter = tfplugin.ElasticAverageCustomGetter('')
  with getter.scope():
    first = tf.Variable([3.0, 4.0], name='first')
    second = tf.Variable(1.0, name='second')
  optimizer = tfplugin.ElasticAverageOptimizer(
      tf1.train.GradientDescentOptimizer(0.5), 1, getter,
      communication_period=1000, rho=0.0)
  return optimizer.minimize(tf.reduce_sum(first) + second, step), optimizer


def test_the_distance_is_that_of_all_trained_variables(behavior):
  with tf.Graph().as_default():
    train_op, optimizer = _elastic_graph()
    distance = telemetry_hook.Distance()
    with tf1.Session() as session:
      # Nothing has a value yet.
      assert distance.read(session) == {}
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      session.run(optimizer.get_init_op(0))
      session.run(train_op)
      session.run(train_op)
      # Each of the three has moved by 1.
      assert distance.read(session) == {
          'distance': pytest.approx(np.sqrt(3.0))}


def test_the_distance_is_read_for_one_part_in_a_hundred(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(telemetry_hook.time, 'monotonic', lambda: now[0])

  class Session:
    """Takes a second."""

    def run(self, unused_tensor):
      now[0] += 1.0
      return 0.5 if now[0] < 200 else np.nan

  with tf.Graph().as_default():
    _elastic_graph()
    distance = telemetry_hook.Distance()
  told = []
  for now[0] in (0.0, 2.0, 50.0, 102.9, 103.0, 300.0):
    told.append(distance.read(Session()))
  # The first one is no measure, and the last one no number of JSON.
  assert told == [{'distance': 0.5}, {'distance': 0.5}, {}, {},
                  {'distance': 0.5}, {}]


def test_a_graph_without_a_wrapper_has_no_figures():
  with tf.Graph().as_default():
    assert telemetry_hook.Distance().read(tf1.Session()) == {}
    staleness = telemetry_hook.Staleness()
    assert staleness.of_step([tf.constant(1)]) == []


def _two_steps():
  """Returns the train ops of two optimizers, and how often each computes."""
  step = tf1.train.create_global_step()
  train_ops, runs = [], []
  for name in ('first', 'second'):
    weight = tf1.get_variable(name, initializer=1.0)
    count = tf1.get_variable(f'{name}_runs', initializer=0, trainable=False)
    with tf1.control_dependencies([count.assign_add(1)]):
      loss = tf.square(tf.identity(weight))
    optimizer = tfplugin.DropStaleGradientOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), staleness=5)
    train_ops.append(optimizer.minimize(loss, step))
    runs.append(count)
  return step, train_ops, runs


def test_staleness_is_asked_of_the_step_that_computes_it(behavior):
  with tf.Graph().as_default():
    step, (first, second), runs = _two_steps()
    staleness = telemetry_hook.Staleness()
    wanted = staleness.of_step([first, 'global_step:0'])
    assert len(wanted) == 1
    assert wanted[0] is not staleness.of_step([second])[0]
    assert len(staleness.of_step({'both': (first, second)})) == 2
    assert staleness.of_step(step) == []
    # Asked for once more the graph is not gone through.
    assert staleness.of_step([first, 'global_step:0']) is wanted
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      _, values = session.run([first, wanted])
      assert session.run(runs) == [1, 0]
  assert telemetry_hook.most_stale(values) == {'staleness': 0}


def test_the_most_stale_of_a_step_is_told():
  assert telemetry_hook.most_stale([np.int64(1), np.int64(7)]) == {
      'staleness': 7}
  assert telemetry_hook.most_stale(None) == {}


def test_what_a_branch_computes_is_not_asked_for(behavior):
  with tf.Graph().as_default() as graph:
    condition = tf1.placeholder_with_default(True, [])

    def note():
      tensor = tf.constant(1)
      per_graph.of(tf1.get_default_graph()).add_figure(
          per_graph.STALENESS, tensor)
      return tensor

    result = tf.cond(condition, note, lambda: tf.constant(2))
    assert telemetry_hook.Staleness().of_step([result]) == []
    assert graph is tf1.get_default_graph()
