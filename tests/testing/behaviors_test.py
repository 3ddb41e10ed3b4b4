# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of switching TensorFlow's behaviour within a process."""

import pytest
import tensorflow as tf

from tfplugin.testing import behaviors

tf1 = tf.compat.v1


def _is_v2():
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=1.0)
    branch = tf.cond(variable > 0, lambda: variable * 2, lambda: variable)
  return hasattr(variable, 'handle'), branch.op.type != 'Merge'


def test_v1_has_ref_variables_and_control_flow_v1_and_ends_with_the_block():
  with behaviors.behavior('v1'):
    assert _is_v2() == (False, False)
    assert not tf.executing_eagerly()
  assert _is_v2() == (True, True)
  assert tf.executing_eagerly()


def test_v1_block_may_use_the_implicit_graph():
  with behaviors.behavior('v1'):
    tf.constant(1.0)
  assert tf.executing_eagerly()


def test_v2_is_left_after_an_error():
  with pytest.raises(RuntimeError, match='inside'):
    with behaviors.behavior('v1'):
      raise RuntimeError('inside')
  assert tf.executing_eagerly()


def test_unknown_behavior_is_refused():
  with pytest.raises(ValueError, match="`name` must be .* Received: 'v3'"):
    with behaviors.behavior('v3'):
      pass
