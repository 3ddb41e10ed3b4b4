# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls that replicas make in branches, with two by hand."""

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import branch_calls
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def _run(values, spread=lambda call: call, conditions=lambda go: [go, go],
         pack=lambda op: op):
  """Adds `values` of two replicas to a variable, in a branch of each.

  Returns:
    What is fetched when the first replica's branch is taken: the variable.
  """
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = tf.distribute.get_strategy()
    v = tf1.get_variable('v', initializer=1.0, use_resource=True)
    branches = branch_calls.Branches()
    go = tf1.placeholder_with_default(True, [])
    own = conditions(go)
    results, calls = [], []

    def branch(index):
      assert branches.is_here()
      value = values[index](v)
      calls.append(branch_calls.Call(
          'add', _tf_internals.Place(), (value,), {}))
      if index:
        with branches.outside.entered():
          assert not branches.is_here()
          results.extend(tf.nest.flatten(branches.run(
              lambda _, x: pack(v.assign_add(x).op), strategy, calls, spread)))
          # Another call may be given what this one returned.
          assert same_values.are_same(results[0].values)
        return results[0].values[1]
      return tf.no_op()

    # The branch of the first replica is still open when the second one calls.
    def first():
      branch(0)
      with branches.outside.entered():
        tf.cond(own[1], lambda: branch(1), tf.no_op)
      return results[0].values[0]

    done = tf.cond(own[0], first, tf.no_op)
    branches.check_conditions()
    session.run(v.initializer)
    session.run(done, {go: False})
    assert session.run(v) == 1.0
    session.run(done)
    return session.run(v)


def test_one_call_stands_for_all(behavior):
  assert _run([lambda v: v * 2.0] * 2) == 3.0


def test_it_may_return_several_ops(behavior):
  assert _run([lambda v: v * 2.0] * 2, pack=lambda op: [op]) == 3.0


def test_arguments_are_made_for_all(behavior):
  assert _run([lambda v: v * 2.0] * 2, lambda call: (
      (call[0][0] * 10.0,), call[1])) == 21.0


def test_values_that_differ_are_refused(behavior):
  with pytest.raises(RuntimeError, match=(
      'must be the same.*Received: add in a branch, with values that may')):
    _run([lambda v: v * 2.0, lambda v: v * 3.0])


def test_labels_name_the_optimizer_or_the_function():
  optimizer = tf1.train.GradientDescentOptimizer(0.1)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    assert branch_calls.label_of(
        optimizer.apply_gradients, ([(1.0, v)],)) == (
            'GradientDescent.apply_gradients of [v:0]')
  assert branch_calls.label_of(_run, ()) == '`_run`'


def test_conditions_that_differ_are_refused(behavior):
  values = [lambda v: 2.0] * 2
  assert _run(values, conditions=lambda go: [
      tf.logical_and(go, True), tf.logical_and(go, True)]) == 3.0
  with pytest.raises(RuntimeError, match=(
      'Received: add in a branch, on conditions that may differ')):
    _run(values, conditions=lambda go: [go, tf.logical_not(go)])
