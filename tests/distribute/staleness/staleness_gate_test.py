# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of deciding what is stale."""

import pytest
import tensorflow as tf

from tfplugin.distribute.staleness import staleness_gate

tf1 = tf.compat.v1


def overtaken_gradient(step, by):
  """A gradient that arrives `by` steps after its variable was read."""
  w = tf1.get_variable(f'w{by}', initializer=1.0)
  value = w + 0.0
  with tf.control_dependencies([value]):
    advance = tf1.assign_add(step, by)
  with tf.control_dependencies([advance]):
    gradient = tf.identity(value)
  return gradient


def run(*fetches):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    return session.run(fetches)


@pytest.mark.parametrize('late, want', [(2, True), (3, False)])
def test_a_gradient_passes_up_to_the_bound(behavior, late, want):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate = staleness_gate.StalenessGate(2)
    gate.decide(step, [overtaken_gradient(step, late)])
    assert run(*gate.decision[:3]) == (0, late, want)


def test_a_given_reading_is_taken(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate = staleness_gate.StalenessGate(2)
    gate.decide(step, [tf.constant(1.0)], tf.constant(-3, tf.int64))
    assert run(*gate.decision[1:3]) == (3, False)


def test_no_gradient_is_refused():
  gate = staleness_gate.StalenessGate(2)
  with pytest.raises(ValueError, match='must hold a gradient'):
    gate.decide(tf.Variable(0), [])


def test_each_decision_is_new_but_one_decision_holds_in_its_graph(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    late = overtaken_gradient(step, 3)
    with tf.control_dependencies([late]):
      gradients = tf.constant(1.0), tf.constant(2.0)
    anew = staleness_gate.StalenessGate(2)
    once = staleness_gate.OneDecision(2)
    assert once.accepted_here is None
    for gate in (anew, once):
      gate.decide(step, gradients[:1])
    first = anew.decision.accepted, once.decision.accepted
    for gate in (anew, once):
      gate.decide(step, gradients[1:])
    assert anew.decision.accepted is not first[0]
    assert once.decision.accepted is once.accepted_here is first[1]
  with tf.Graph().as_default():
    assert once.accepted_here is None


def test_later_gradients_of_one_decision_read_after_its_reading(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate, readings = staleness_gate.OneDecision(2), []
    for name in ('a', 'b'):
      v = tf1.get_variable(name, initializer=1.0, use_resource=True)
      gradient = tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=tf.float32)
      gate.decide(step, [gradient])
      readings += gradient.op.control_inputs
    assert readings == [gate.decision.reading.op] * 2
