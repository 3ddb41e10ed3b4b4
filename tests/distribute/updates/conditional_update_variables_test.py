# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables that a user's optimizer makes in an update under a condition."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.updates import conditional_update

tf1 = tf.compat.v1


class _Lookahead(tf1.train.Optimizer):
  """A user's own wrapper, which makes variables as it applies.

  `initial` makes the initial value of the slow weight.
  """

  def __init__(self, inner, initial, creates):
    super().__init__(False, 'Lookahead')
    self._inner = inner
    self._initial = initial
    self._creates = creates

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    [(_, v)] = grads_and_vars
    update = self._inner.apply_gradients(grads_and_vars, global_step)
    slow = self._creates('slow', self._initial(v))
    with tf.control_dependencies([update]):
      slow = slow.assign_add(0.5 * (v.read_value() - slow), read_value=True)
    with tf.control_dependencies([slow]):
      return tf.group(v.assign(slow), name=name)


def _get_variable(name, initial):
  return tf1.get_variable(name, initializer=initial, trainable=False,
                          use_resource=True)


def _variable(name, initial):
  return tf1.Variable(initial, trainable=False, name=name, use_resource=True)


@pytest.mark.parametrize('creates', [_get_variable, _variable])
@pytest.mark.parametrize('initial, start', [
    (lambda v: tf.constant([3.0, 5.0]), [3.0, 5.0]),
    (tf.zeros_like, [0.0, 0.0]), (lambda v: v.initial_value, [1.0, 2.0])])
def test_a_users_wrapper_starts_a_variable_from_a_tensor(
    behavior, initial, start, creates):
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=[1.0, 2.0], use_resource=True)
    decide = tf1.placeholder(tf.bool, [])
    update = conditional_update.apply_gradients_if(
        decide, _Lookahead(tf1.train.GradientDescentOptimizer(1.0), initial,
                           creates), [(tf.ones([2]), v)])
    _, slow = tf1.global_variables()
    assert slow.op.name == 'slow'
    session.run(tf1.global_variables_initializer())
    session.run(update, {decide: False})
    np.testing.assert_equal(session.run([v, slow]), [[1.0, 2.0], start])
    session.run(update, {decide: True})
    # Half the way to v - 1.
    want = [(start[0] + 0.0) / 2, (start[1] + 1.0) / 2]
    np.testing.assert_equal(session.run([v, slow]), [want, want])


def test_a_users_wrapper_starts_a_variable_in_a_replica(behavior):
  strategy = tf1.distribute.OneDeviceStrategy('/cpu:0')
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=[1.0, 2.0])
    optimizer = _Lookahead(tf1.train.GradientDescentOptimizer(1.0),
                           lambda v: tf.constant([3.0, 5.0]), _get_variable)
    update = strategy.run(lambda: conditional_update.apply_gradients_if(
        tf.constant(True), optimizer, [(tf.ones([2]), v)]))
    session.run(tf1.global_variables_initializer())
    session.run(update)
    np.testing.assert_equal(session.run(v), [1.5, 3.0])


def test_an_initial_value_of_the_branch_is_named(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[1.0, 2.0], use_resource=True)
    with pytest.raises(ValueError, match=(
        "`initial_value` of a variable.*for 'slow.*`with tf.init_scope")):
      conditional_update.apply_gradients_if(
          tf.constant(True), _Lookahead(
              tf1.train.GradientDescentOptimizer(1.0),
              lambda v: 2.0 * v, _get_variable), [(tf.ones([2]), v)])
