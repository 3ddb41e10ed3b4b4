# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clipping the norms of slices."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import norm_clipping

tf1 = tf.compat.v1


def _norms(x, axis=1):
  return np.sqrt(np.sum(np.float64(x)**2, axis=axis))


@pytest.mark.parametrize('row, max_norm, want', [
    ([6.0, 8.0], 2.0, [1.2, 1.6]),
    ([-6.0, 8.0], 5.0, [-3.0, 4.0]),
    ([0.0, 0.0], 1.0, [0.0, 0.0]),
    ([0.3, -0.4], 0.5, [0.3, -0.4]),
])
def test_a_row_is_scaled_to_the_bound(row, max_norm, want):
  got = norm_clipping.clip_by_norm(tf.constant([row]), [1], max_norm)
  np.testing.assert_allclose(got, [want], rtol=1e-6)


@pytest.mark.parametrize('dtype', [np.float16, np.float32, np.float64])
@pytest.mark.parametrize('max_norm', [0.7, 1.0, 3.3])
def test_no_norm_exceeds_the_bound_beyond_rounding(dtype, max_norm):
  x = (np.random.randn(500, 33) * np.random.rand(500, 1)).astype(dtype)
  got = norm_clipping.clip_by_norm(tf.constant(x), [1], max_norm).numpy()
  eps = np.finfo(dtype).eps
  assert _norms(got).max() <= max_norm * (1 + 8 * eps)
  inside = _norms(x) <= max_norm
  assert 0 < inside.sum() < 500
  np.testing.assert_array_equal(got[inside], x[inside])
  # The direction stays, and the norm is the bound.
  np.testing.assert_allclose(
      got[~inside], x[~inside] * (max_norm / _norms(x)[~inside])[:, None],
      rtol=4 * eps)
  again = norm_clipping.clip_by_norm(tf.constant(got), [1], max_norm).numpy()
  np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize('dtype, big', [
    (np.float16, 6e4), (np.float32, 3e38), (np.float64, 1.7e308)])
def test_squares_and_norms_that_overflow(dtype, big):
  # Even the norm of the first row, big * sqrt(2), is no finite number.
  x = np.array([[big, big], [0.3, 0.4], [-big, 0.0]], dtype)
  got = norm_clipping.clip_by_norm(tf.constant(x), [1], 2.0).numpy()
  np.testing.assert_allclose(
      got[[0, 2]], [[2**0.5, 2**0.5], [-2.0, 0.0]],
      rtol=4 * np.finfo(dtype).eps)
  np.testing.assert_array_equal(got[1], x[1])


def test_bound_so_small_that_squares_vanish():
  # Norm 5e-30; its square is no float32.
  got = norm_clipping.clip_by_norm(
      tf.constant([[3e-30, 4e-30], [3e-31, 0.0]]), [1], 1e-30)
  np.testing.assert_allclose(got[0], [6e-31, 8e-31], rtol=1e-6)
  np.testing.assert_array_equal(got[1], np.float32([3e-31, 0.0]))


def test_subnormal_rows_are_left_alone():
  x = np.array([[1e-40, 1e-42], [3.0, 4.0]], np.float32)
  got = norm_clipping.clip_by_norm(tf.constant(x), [1], 10.0).numpy()
  np.testing.assert_array_equal(got, x)


def test_rows_that_are_not_finite_are_left_alone():
  x = np.array([[np.inf, 1.0], [np.nan, 9.0], [6.0, 8.0]], np.float32)
  got = norm_clipping.clip_by_norm(tf.constant(x), [1], 2.0).numpy()
  np.testing.assert_array_equal(got[:2], x[:2])
  np.testing.assert_allclose(got[2], [1.2, 1.6], rtol=1e-6)


@pytest.mark.parametrize('axes', [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_slices_may_extend_over_any_dims(axes):
  x = np.random.randn(3, 4, 5)
  norms = np.sqrt(np.sum(x**2, axis=axes, keepdims=True))
  got = norm_clipping.clip_by_norm(tf.constant(x), axes, 1.0)
  np.testing.assert_allclose(got, x * np.minimum(1, 1 / norms), rtol=1e-12)


def test_clip_variable_counts_what_it_clips(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[[3.0, 4.0], [0.3, 0.4]])
    result = norm_clipping.clip_variable(v, [1], 1.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(result[1:]) == (1, 2)
      session.run(result.operation)
      np.testing.assert_allclose(
          session.run(v), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
      assert session.run(result[1:]) == (0, 2)


@pytest.mark.parametrize('shape, axes', [((5, 3), [1]), ((5, 2, 3), [2]),
                                         ((5, 2, 3), [1, 2])])
def test_clip_rows_touches_the_given_rows_alone(behavior, shape, axes):
  start = 9 * np.random.rand(*shape).astype(np.float32)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = norm_clipping.clip_rows(v, tf.constant([4, 1, 4]), axes, 0.1)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = session.run(v)
  norms = np.sqrt(np.sum(np.float64(start)**2, axis=tuple(axes),
                         keepdims=True))
  want = start.copy()
  want[[1, 4]] = (start * 0.1 / norms)[[1, 4]]
  np.testing.assert_allclose(got, want, rtol=1e-6)
  np.testing.assert_array_equal(got[[0, 2, 3]], start[[0, 2, 3]])


def test_clip_rows_with_no_ids_does_nothing(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[[3.0, 4.0]])
    result = norm_clipping.clip_rows(
        v, tf.constant([], tf.int64), [1], 1.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      np.testing.assert_array_equal(session.run(v), [[3.0, 4.0]])


@pytest.mark.parametrize('big', [1.0, 8e37])
@pytest.mark.parametrize('use_resource', [None, False])
def test_clip_jointly_measures_across_parts(behavior, big, use_resource):
  # Columns (3, 4) and (.3, .4), one element in each part.
  with tf.Graph().as_default(), tf1.variable_scope(
      '', use_resource=use_resource):
    parts = [tf1.get_variable('a', initializer=np.float32([[3.0 * big, 0.3]])),
             tf1.get_variable('b', initializer=np.float32([[4.0 * big, 0.4]]))]
    result = norm_clipping.clip_jointly(parts, [0], 1.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = np.concatenate(session.run(parts))
  np.testing.assert_allclose(got, [[0.6, 0.3], [0.8, 0.4]], rtol=1e-6)


@pytest.mark.parametrize('dtype', [np.float16, np.float32, np.float64])
@pytest.mark.parametrize('axes', [[1], [2], [1, 2], [0]])
def test_clip_variable_scales_what_is_beyond_alone(behavior, dtype, axes):
  start = (np.random.randn(50, 4, 9) *
           np.random.rand(50, 4, 9) ** 3).astype(dtype)
  norms = np.sqrt(np.sum(np.float64(start)**2, axis=tuple(axes),
                         keepdims=True))
  max_norm = float(np.median(norms))
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = norm_clipping.clip_variable(v, axes, max_norm)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = session.run(v)
      assert session.run(result.num_clipped) == 0
  inside = np.broadcast_to(norms < max_norm, start.shape)
  assert 0 < inside.sum() < start.size
  np.testing.assert_array_equal(got[inside], start[inside])
  np.testing.assert_allclose(
      got, start * np.minimum(1, max_norm / norms),
      rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).smallest_subnormal)


@pytest.mark.parametrize('dtype, big', [(np.float32, 3e38),
                                        (np.float64, 1.7e308)])
def test_clip_variable_with_squares_that_overflow(behavior, dtype, big):
  start = np.array([[big, big], [np.nan, 9.0], [0.3, 0.4], [6.0, 8.0]], dtype)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = norm_clipping.clip_variable(v, [1], 2.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = session.run(v)
  np.testing.assert_array_equal(got[1:3], start[1:3])
  np.testing.assert_allclose(
      got[[0, 3]], [[2**0.5, 2**0.5], [1.2, 1.6]],
      rtol=4 * np.finfo(dtype).eps)


def test_clip_variable_in_a_compiled_function():
  v = tf.Variable([[3.0, 4.0], [0.3, 0.4]])

  @tf.function(jit_compile=True)
  def clip():
    norm_clipping.clip_variable(v, [1], 1.0)

  clip()
  np.testing.assert_allclose(v, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
