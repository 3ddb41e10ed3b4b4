# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what becomes of values that are not finite."""

import pytest
import tensorflow as tf

from tfplugin.ops import nonfinite

tf1 = tf.compat.v1

_VALUES = ([1.0, 2.0], [[float('nan'), 1.0]], float('-inf'))


def _values():
  dense = [tf.constant(value) for value in _VALUES]
  return [*dense, tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3])),
          tf.IndexedSlices(tf.constant([[float('inf')]]), tf.constant([3])),
          tf.constant([3.0], tf.float16)]


def test_each_value_is_looked_at(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(nonfinite.are_finite(_values())).tolist() == [
        True, False, False, True, False, True]


@pytest.mark.parametrize('policy', ['drop', 'raise'])
def test_finite_updates_are_made(behavior, policy):
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(nonfinite.accepted(
        policy, [tf.constant(1.0)], ['v'], 'chief:0', tf.constant(5)))


def test_an_error_names_worker_step_and_variables(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    values = _values()
    dropped = nonfinite.accepted('drop', values, list('abcdef'), 'worker:3',
                                 tf.constant(17))
    raised = nonfinite.accepted('raise', values, list('abcdef'), 'worker:3',
                                tf.constant(17))
    assert not session.run(dropped)
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        r'(?s)worker:3, at global step.*17.*update of.*b.*c.*e')):
      session.run(raised)


def test_another_word_is_refused():
  with pytest.raises(ValueError, match=(
      "`on_nonfinite` must be one of .*Received: 'skip'")):
    nonfinite.check_policy('skip')
