# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging applied more than once, or under a condition."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

Getter = elastic_custom_getter.ElasticAverageCustomGetter
Optimizer = elastic_average.ElasticAverageOptimizer


def _sgd(rate=1.0):
  return tf1.train.GradientDescentOptimizer(rate)


def _optimizer(getter, opt=None, **kwargs):
  defaults = {'num_worker': 1, 'communication_period': 1, 'moving_rate': 0.1,
              'rho': 0.0}
  return Optimizer(opt or _sgd(), ea_custom_getter=getter,
                   **{**defaults, **kwargs})


def _variable(getter, name='w', value=1.0, **kwargs):
  with tf1.variable_scope('', custom_getter=getter):
    return tf1.get_variable(name, initializer=tf.constant(value), **kwargs)


def _session(optimizer):
  session = tf1.Session()
  init = optimizer.get_init_op(0)
  session.run(tf1.global_variables_initializer())
  session.run(tf1.local_variables_initializer())
  session.run(init)
  return session


def _center(getter, variable):
  return getter.pair_of(variable).center


@pytest.mark.parametrize('together', [True, False])
def test_one_optimizer_applied_twice_communicates_both(behavior, together):
  """As in a GAN; with one counter for both, a period of 2 is never due."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    a, b = _variable(getter, 'a', 0.0), _variable(getter, 'b', 0.0)
    optimizer = _optimizer(getter, communication_period=2, moving_rate=0.5)
    trains = [optimizer.minimize(-a, step, [a]),
              optimizer.minimize(-b, None, [b])]
    with _session(optimizer) as session:
      session.run([v.initializer for v in optimizer.variables()])
      for _ in range(2):
        for fetch in [trains] if together else trains:
          session.run(fetch)
      # Two steps of 1, and half of the difference moves.
      for v in (a, b):
        assert session.run([v, _center(getter, v)]) == [1.0, 1.0]
      assert session.run(step) == 1
      assert [session.run(v) for v in optimizer.variables()] == [2, 2]


def test_slots_made_in_a_condition_stay_on_the_worker(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('/job:worker/task:1')
    w = _variable(getter)
    optimizer = _optimizer(getter, tf1.train.AdamOptimizer(0.1))
    should = tf1.placeholder(tf.bool, [])
    tf.cond(should, lambda: tf.group(optimizer.minimize(w * w)), tf.no_op)
    assert [v.op.name for v in tf1.global_variables()] == [
        'global_center_variable/w']
    state = [v for v in optimizer.variables() if 'local_step' not in v.name]
    assert len(state) == 4
    assert {v.device for v in state} == {'/job:worker/task:1'}
