# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the arithmetic of stale gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import staleness


@pytest.mark.parametrize('read, applied, want', [(3, 3, 0), (3, 8, 5)])
def test_staleness_is_the_difference_of_the_steps(read, applied, want):
  got = staleness.staleness_of(
      tf.constant(read, tf.int64), tf.constant(applied, tf.int64))
  assert got.dtype == tf.int64
  assert int(got) == want


@pytest.mark.parametrize('late, bound, want', [
    (0, 0, True), (1, 0, False), (5, 5, True), (6, 5, False)])
def test_a_gradient_is_fresh_up_to_the_bound(late, bound, want):
  assert bool(staleness.is_fresh(tf.constant(late, tf.int64), bound)) is want


@pytest.mark.parametrize('dropped, applied, want', [
    (0, 0, 0.0), (1, 0, 1.0), (5, 0, 1.0), (0, 5, 0.0), (1, 3, 0.25)])
def test_dropped_fraction_lies_in_0_to_1(dropped, applied, want):
  assert float(staleness.dropped_fraction(
      tf.constant(dropped), tf.constant(applied))) == want


def test_dropped_fraction_is_exact_beyond_the_floats():
  # 2**24 + 1 is no float32; the counters are integers until the division.
  half = staleness.dropped_fraction(
      tf.constant(2**24 + 1, tf.int64), tf.constant(2**24 + 1, tf.int64))
  assert float(half) == 0.5


@pytest.mark.parametrize('bound', [3, np.int64(3)])
def test_the_bound_may_be_any_integer(bound):
  assert staleness.check_max_staleness(bound) == 3


def test_the_bound_may_be_0():
  assert staleness.check_max_staleness(0) == 0


@pytest.mark.parametrize('bound, error', [
    (1.0, TypeError), ('1', TypeError), (None, TypeError), (True, TypeError),
    (-1, ValueError)])
def test_a_bound_that_is_no_count_of_steps_is_refused(bound, error):
  with pytest.raises(error, match='`staleness` must .*Received: '):
    staleness.check_max_staleness(bound)


def test_a_bound_may_be_a_tensor():
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    bound = tf.compat.v1.placeholder(tf.int32, [])
    fresh = staleness.is_fresh(
        tf.constant(5, tf.int64), staleness.check_max_staleness(bound))
    assert [session.run(fresh, {bound: n}) for n in (4, 5)] == [False, True]
    assert staleness.check_max_staleness(tf.constant(3)) == 3
    with pytest.raises(ValueError, match='at least 0'):
      staleness.check_max_staleness(tf.constant(-1))
    with pytest.raises(TypeError, match='must be an integer'):
      staleness.check_max_staleness(tf.constant(1.0))
