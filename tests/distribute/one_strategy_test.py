# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the refusal to nest strategies."""

import pytest
import tensorflow as tf

from tfplugin.distribute import one_strategy


class Strategy(one_strategy.OneStrategy, tf.distribute.OneDeviceStrategy):
  """One that is refused inside another."""


def test_own_scope_is_entered_again():
  strategy = Strategy('/cpu:0')
  with strategy.scope():
    with strategy.scope():
      assert tf.distribute.get_strategy() is strategy
  assert not tf.distribute.has_strategy()


def test_another_scope_is_refused_and_both_are_named():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with outer.scope():
    with pytest.raises(RuntimeError, match='Strategy inside OneDeviceStrategy'):
      inner.scope()
    assert tf.distribute.get_strategy() is outer


def test_on_a_device_of_another_it_is_refused():
  outer, inner = tf.distribute.OneDeviceStrategy('/cpu:0'), Strategy('/cpu:0')
  with pytest.raises(RuntimeError, match='inside OneDeviceStrategy'):
    outer.run(lambda: inner.run(lambda: tf.constant(1)))
