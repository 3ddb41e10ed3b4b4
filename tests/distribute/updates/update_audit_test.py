# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""An audit knows which updates a rule has seen, and names the others."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.updates import update_audit

tf1 = tf.compat.v1


def _variables():
  return [tf1.get_variable(name, initializer=1.0) for name in 'ab']


def test_updates_that_passed_are_not_seen_again(behavior):
  audit = update_audit.UpdateAudit()
  with tf.Graph().as_default():
    a, b = _variables()
    with audit.passing([a]):
      first = a.assign(2.0)
      b.assign(2.0)
    step = tf.group(first, b.assign(3.0))
    audit.check('`d`', step, [a], 'has a rule')
    with pytest.raises(ValueError, match='`d` has a rule.*`b:0`'):
      audit.check('`d`', step, [a, b], 'has a rule')


def test_updates_that_the_step_does_not_make_are_left_alone(behavior):
  audit = update_audit.UpdateAudit()
  with tf.Graph().as_default():
    a, b = _variables()
    aside, step = a.assign(2.0), tf.group(b.assign(3.0))
    assert not list(audit.unseen(step, a))
    assert list(audit.unseen(None, a)) == [getattr(aside, 'op', aside)]


def test_updates_inside_of_branches_that_passed(behavior):
  audit = update_audit.UpdateAudit()
  with tf.Graph().as_default():
    a, _ = _variables()

    def branch():
      with audit.passing([a]):
        done = a.assign_add(1.0)
      with tf.control_dependencies([done]):
        return tf.constant(0)

    def other():
      with tf.control_dependencies([a.assign_sub(1.0)]):
        return tf.constant(0)

    passed = tf.cond(tf.constant(True), branch, lambda: tf.constant(0))
    assert not list(audit.unseen([passed], a))
    mixed = tf.cond(tf.constant(True), branch, other)
    unseen, = audit.unseen([mixed], a)
    assert 'Sub' in unseen.type


def test_in_eager_execution_nothing_is_noted():
  audit = update_audit.UpdateAudit()
  a = tf.Variable(1.0)
  with audit.passing([a]):
    a.assign(2.0)
  assert a.numpy() == 2.0
