# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clipping the norms of slices."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import norm_clipping


def _clipped(x, axes, max_norm):
  bound = norm_clipping.NormBound(axes, max_norm)
  return bound.shrink(x, bound.norms(x))


def _norms(x, axis=1):
  return np.sqrt(np.sum(np.float64(x)**2, axis=axis))


@pytest.mark.parametrize('row, max_norm, want', [
    ([6.0, 8.0], 2.0, [1.2, 1.6]),
    ([-6.0, 8.0], 5.0, [-3.0, 4.0]),
    ([0.0, 0.0], 1.0, [0.0, 0.0]),
    ([0.3, -0.4], 0.5, [0.3, -0.4]),
])
def test_a_row_is_scaled_to_the_bound(row, max_norm, want):
  got = _clipped(tf.constant([row]), [1], max_norm)
  np.testing.assert_allclose(got, [want], rtol=1e-6)


@pytest.mark.parametrize('dtype', [np.float16, np.float32, np.float64])
@pytest.mark.parametrize('max_norm', [0.7, 1.0, 3.3])
def test_no_norm_exceeds_the_bound_beyond_rounding(dtype, max_norm):
  x = (np.random.randn(500, 33) * np.random.rand(500, 1)).astype(dtype)
  got = _clipped(tf.constant(x), [1], max_norm).numpy()
  eps = np.finfo(dtype).eps
  assert _norms(got).max() <= max_norm * (1 + 8 * eps)
  inside = _norms(x) <= max_norm
  assert 0 < inside.sum() < 500
  np.testing.assert_array_equal(got[inside], x[inside])
  # The direction stays, and the norm is the bound.
  np.testing.assert_allclose(
      got[~inside], x[~inside] * (max_norm / _norms(x)[~inside])[:, None],
      rtol=4 * eps)
  again = _clipped(tf.constant(got), [1], max_norm).numpy()
  np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize('dtype, big', [
    (np.float16, 6e4), (np.float32, 3e38), (np.float64, 1.7e308)])
def test_squares_and_norms_that_overflow(dtype, big):
  # Even the norm of the first row, big * sqrt(2), is no finite number.
  x = np.array([[big, big], [0.3, 0.4], [-big, 0.0]], dtype)
  got = _clipped(tf.constant(x), [1], 2.0).numpy()
  np.testing.assert_allclose(
      got[[0, 2]], [[2**0.5, 2**0.5], [-2.0, 0.0]],
      rtol=4 * np.finfo(dtype).eps)
  np.testing.assert_array_equal(got[1], x[1])


def test_bound_so_small_that_squares_vanish():
  # Norm 5e-30; its square is no float32.
  got = _clipped(
      tf.constant([[3e-30, 4e-30], [3e-31, 0.0]]), [1], 1e-30)
  np.testing.assert_allclose(got[0], [6e-31, 8e-31], rtol=1e-6)
  np.testing.assert_array_equal(got[1], np.float32([3e-31, 0.0]))


def test_rows_that_are_not_finite_are_left_alone():
  x = np.array([[np.inf, 1.0], [np.nan, 9.0], [6.0, 8.0]], np.float32)
  got = _clipped(tf.constant(x), [1], 2.0).numpy()
  np.testing.assert_array_equal(got[:2], x[:2])
  np.testing.assert_allclose(got[2], [1.2, 1.6], rtol=1e-6)


def test_rows_beside_one_that_overflows():
  # 1.5 * sqrt(2) is beyond the bound; 1.5 / sqrt(2) would not be.
  got = _clipped(tf.constant([[3e38, 3e38], [1.5, 1.5]]), [1], 2.0)
  np.testing.assert_allclose(got, np.full([2, 2], 2**0.5), rtol=1e-6)


def test_bound_whose_squares_are_below_the_normal_numbers():
  # Norm 5e-20; its square, 2.5e-39, has no more than 21 bits.
  got = _clipped(tf.constant([[3e-20, 4e-20]]), [1], 1e-20)
  np.testing.assert_allclose(got, [[6e-21, 8e-21]], rtol=1e-6)


@pytest.mark.parametrize('dtype, norms', [
    # 1 + 4 eps and 1 + 5 eps, in the type of the norms.
    (tf.float32, np.float32([1 + 4 * 2**-23, 1 + 5 * 2**-23])),
    (tf.float64, np.float64([1 + 4 * 2**-52, 1 + 5 * 2**-52])),
    (tf.float16, np.float32([1 + 4 * 2**-10, 1 + 5 * 2**-10])),
    (tf.bfloat16, np.float32([1 + 4 * 2**-7, 1 + 5 * 2**-7])),
])
def test_a_norm_is_beyond_the_bound_by_more_than_4_eps(dtype, norms):
  bound = norm_clipping.NormBound([1], 1.0)
  assert bound.exceeds(tf.constant(norms), dtype).numpy().tolist() == [
      False, True]


def test_bfloat16_is_clipped():
  x = tf.constant([[6.0, 8.0], [0.5, 0.25]], tf.bfloat16)
  got = _clipped(x, [1], 5.0)
  assert got.dtype == tf.bfloat16
  assert got.numpy().astype(float).tolist() == [[3.0, 4.0], [0.5, 0.25]]


def test_safe_divisor():
  got = norm_clipping.safe_divisor(tf.constant([0.0, 2.0, np.inf, np.nan]))
  assert got.numpy().tolist() == [1.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize('settings, is_fused', [
    ({}, True), ({'fused': True}, True), ({'fused': False}, False)])
def test_norms_by_the_fused_op_unless_it_is_refused(settings, is_fused):
  with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
    norms = norm_clipping.NormBound([1], 1.0, **settings).norms(
        tf.constant([[3.0, 4.0], [0.0, 0.0]]))
    types = {op.type for op in graph.get_operations()}
    assert session.run(norms).tolist() == [[5.0], [0.0]]
  # What squares by itself writes the squares to memory.
  assert ('Square' in types) == (not is_fused)


@pytest.mark.parametrize('axes', [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_slices_may_extend_over_any_dims(axes):
  x = np.random.randn(3, 4, 5)
  norms = np.sqrt(np.sum(x**2, axis=axes, keepdims=True))
  got = _clipped(tf.constant(x), axes, 1.0)
  np.testing.assert_allclose(got, x * np.minimum(1, 1 / norms), rtol=1e-12)


@pytest.mark.parametrize('max_norm, error', [
    (True, TypeError), ('1', TypeError), (None, TypeError), (0, ValueError),
    (-1.0, ValueError), (np.inf, ValueError), (np.nan, ValueError)])
def test_bad_bounds(max_norm, error):
  with pytest.raises(error, match='`max_norm` must be .*Received: '):
    norm_clipping.check_max_norm(max_norm)


@pytest.mark.parametrize('max_norm', [1, 0.5, 1e-30])
def test_good_bounds(max_norm):
  assert norm_clipping.check_max_norm(max_norm) == max_norm


def test_a_bound_may_be_a_tensor(behavior):
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    bound = tf.compat.v1.placeholder(tf.float64, [])
    clip = norm_clipping.NormBound([1], norm_clipping.check_max_norm(bound))
    x = tf.constant([[6., 8.], [.3, .4]])
    shrunk = clip.shrink(x, clip.norms(x))
    for number, expected in (2.0, [1.2, 1.6]), (20.0, [6, 8]):
      np.testing.assert_allclose(
          session.run(shrunk, {bound: number}), [expected, [.3, .4]], rtol=1e-6)
    # A constant is a number.
    assert norm_clipping.check_max_norm(tf.constant(2)) == 2.0
    with pytest.raises(ValueError, match='greater than 0'):
      norm_clipping.check_max_norm(tf.constant(-1.0))
    with pytest.raises(TypeError, match='must be a number'):
      norm_clipping.check_max_norm(tf.constant([1.0]))
