# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A call in a branch is made once for all shards, or refused."""

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def _first(value):
  return getattr(value, 'values', [value])[0]


def _run(values, take=_first, conditions=lambda go: [go, go],
         pack=lambda op: op):
  """Adds `values` of two replicas to a variable, in a branch of each.

  Returns:
    What is fetched when the first replica's branch is taken: the variable.
  """
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = tf.distribute.get_strategy()
    v = tf1.get_variable('v', initializer=1.0, use_resource=True)
    branches = merge_calls.Branches()
    go = tf1.placeholder_with_default(True, [])
    own = conditions(go)
    results, calls = [], []

    def branch(index):
      assert branches.is_current()
      value = values[index](v)
      calls.append(merge_calls.Call(
          'add', _tf_internals.Place(), (value,), {}))
      if index:
        with branches.outside.entered():
          assert not branches.is_current()
          results.extend(tf.nest.flatten(branches.run(
              lambda _, x: pack(v.assign_add(take(x)).op), strategy, calls)))
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
  # Each replica has the value 2 of the first one.
  assert _run([lambda v: v * 2.0] * 2, lambda x: tf.add_n(x.values)) == 5.0


def test_values_that_differ_are_refused(behavior):
  with pytest.raises(RuntimeError, match=(
      'must be the same.*Received: add in a branch, with values that may')):
    _run([lambda v: v * 2.0, lambda v: v * 3.0])


def test_labels_name_the_optimizer_or_the_function():
  optimizer = tf1.train.GradientDescentOptimizer(0.1)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    assert merge_calls.label_of(
        optimizer.apply_gradients, ([(1.0, v)],)) == (
            'GradientDescent.apply_gradients of [v:0]')
  assert merge_calls.label_of(_run, ()) == '`_run`'


def test_conditions_that_differ_are_refused(behavior):
  values = [lambda v: 2.0] * 2
  assert _run(values, conditions=lambda go: [
      tf.logical_and(go, True), tf.logical_and(go, True)]) == 3.0
  with pytest.raises(RuntimeError, match=(
      'Received: add in a branch, on conditions that may differ')):
    _run(values, conditions=lambda go: [go, tf.logical_not(go)])
