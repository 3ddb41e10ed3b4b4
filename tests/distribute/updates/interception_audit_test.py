# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A rule gets updates; an audit knows which, and names the others."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.updates import optimizer_interception
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


def _variables():
  return [tf1.get_variable(name, initializer=1.0) for name in 'ab']


def test_updates_that_passed_are_not_seen_again(behavior):
  audit = optimizer_interception.UpdateAudit()
  with tf.Graph().as_default():
    a, b = _variables()
    with audit.recording([a]):
      first = a.assign(2.0)
      b.assign(2.0)
    step = tf.group(first, b.assign(3.0))
    audit.check('`d`', step, [a], 'has a rule')
    with pytest.raises(ValueError, match='`d` has a rule.*`b:0`'):
      audit.check('`d`', step, [a, b], 'has a rule')


def test_updates_that_the_step_does_not_make_are_left_alone(behavior):
  audit = optimizer_interception.UpdateAudit()
  with tf.Graph().as_default():
    a, b = _variables()
    aside, step = a.assign(2.0), tf.group(b.assign(3.0))
    assert not list(audit.unaudited(step, a))
    assert list(audit.unaudited(None, a)) == [getattr(aside, 'op', aside)]


def test_updates_inside_of_branches_that_passed(behavior):
  audit = optimizer_interception.UpdateAudit()
  with tf.Graph().as_default():
    a, _ = _variables()

    def branch():
      with audit.recording([a]):
        done = a.assign_add(1.0)
      with tf.control_dependencies([done]):
        return tf.constant(0)

    def other():
      with tf.control_dependencies([a.assign_sub(1.0)]):
        return tf.constant(0)

    passed = tf.cond(tf.constant(True), branch, lambda: tf.constant(0))
    assert not list(audit.unaudited([passed], a))
    mixed = tf.cond(tf.constant(True), branch, other)
    unseen, = audit.unaudited([mixed], a)
    assert 'Sub' in unseen.type


def test_in_eager_execution_nothing_is_noted():
  audit = optimizer_interception.UpdateAudit()
  a = tf.Variable(1.0)
  with audit.recording([a]):
    a.assign(2.0)
  assert a.numpy() == 2.0


class Negating(wrapper.OptimizerWrapper):
  """Negates gradients."""

  def __init__(self, opt):
    super().__init__(opt, False, 'negating')

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    return super().apply_gradients(
        [(-g, v) for g, v in grads_and_vars], *args, **kwargs)


class Adding(wrapper.OptimizerWrapper):
  """Adds one to gradients."""

  def __init__(self, opt):
    super().__init__(opt, False, 'adding')

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    return super().apply_gradients(
        [(g + 1.0, v) for g, v in grads_and_vars], *args, **kwargs)


def _times_7(apply_gradients, grads_and_vars, *args, **kwargs):
  return apply_gradients(
      [(g * 7.0, v) for g, v in grads_and_vars], *args, **kwargs)


@pytest.mark.parametrize('wrap, moved', (
    (lambda opt: opt, 21.0), (Adding, 22.0), (Negating, -3.0)))
def test_a_rule_gets_the_method_of_the_optimizer(behavior, wrap, moved):
  interception = optimizer_interception.Interception(
      Negating, Negating, rule=_times_7, is_whole=True)
  assert not interception.is_applied
  with tf.Graph().as_default(), tf1.Session() as session:
    a, _ = _variables()
    with interception.active():
      step = wrap(tf1.train.GradientDescentOptimizer(1.0)).minimize(
          3.0 * a, var_list=[a])
    session.run(tf1.global_variables_initializer())
    session.run(step)
    assert session.run(a) == 1.0 - moved
    assert not list(interception.audit.unaudited(step, a))
  assert interception.is_applied and not interception.wrappers
  assert len(interception.already_wrapped) == (wrap is Negating)
