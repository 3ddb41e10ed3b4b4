# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of clipping variables: whole, by rows, in parts."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.clipping import clip

tf1 = tf.compat.v1


def test_counts_what_it_clips(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[[3.0, 4.0], [0.3, 0.4]])
    result = clip.clip([v], [1], 1.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(result[1:]) == (1, 2)
      session.run(result.operation)
      np.testing.assert_allclose(
          session.run(v), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
      assert session.run(result[1:]) == (0, 2)


@pytest.mark.parametrize('shape, axes', [((5, 3), [1]), ((5, 2, 3), [2]),
                                         ((5, 2, 3), [1, 2])])
def test_ids_touch_the_given_rows_alone(behavior, shape, axes):
  start = 9 * np.random.rand(*shape).astype(np.float32)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = clip.clip([v], axes, 0.1, tf.constant([4, 1, 4]))
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


def test_no_ids_do_nothing(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[[3.0, 4.0]])
    result = clip.clip([v], [1], 1.0, tf.constant([], tf.int64))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      np.testing.assert_array_equal(session.run(v), [[3.0, 4.0]])


@pytest.mark.parametrize('big', [1.0, 8e37])
@pytest.mark.parametrize('use_resource', [None, False])
def test_slice_is_measured_across_parts(behavior, big, use_resource):
  # Columns (3, 4) and (.3, .4), one element in each part.
  with tf.Graph().as_default(), tf1.variable_scope(
      '', use_resource=use_resource):
    parts = [tf1.get_variable('a', initializer=np.float32([[3.0 * big, 0.3]])),
             tf1.get_variable('b', initializer=np.float32([[4.0 * big, 0.4]]))]
    result = clip.clip(parts, [0], 1.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = np.concatenate(session.run(parts))
  np.testing.assert_allclose(got, [[0.6, 0.3], [0.8, 0.4]], rtol=1e-6)


@pytest.mark.parametrize('dtype', [np.float16, np.float32, np.float64])
@pytest.mark.parametrize('axes', [[1], [2], [1, 2], [0]])
def test_scales_what_is_beyond_alone(behavior, dtype, axes):
  start = (np.random.randn(50, 4, 9) *
           np.random.rand(50, 4, 9) ** 3).astype(dtype)
  norms = np.sqrt(np.sum(np.float64(start)**2, axis=tuple(axes),
                         keepdims=True))
  max_norm = float(np.median(norms))
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = clip.clip([v], axes, max_norm)
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
def test_squares_that_overflow(behavior, dtype, big):
  start = np.array([[big, big], [np.nan, 9.0], [0.3, 0.4], [6.0, 8.0]], dtype)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = clip.clip([v], [1], 2.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      got = session.run(v)
  np.testing.assert_array_equal(got[1:3], start[1:3])
  np.testing.assert_allclose(
      got[[0, 3]], [[2**0.5, 2**0.5], [1.2, 1.6]],
      rtol=4 * np.finfo(dtype).eps)


def test_in_a_compiled_function():
  v = tf.Variable([[3.0, 4.0], [0.3, 0.4]])

  @tf.function(jit_compile=True)
  def step():
    clip.clip([v], [1], 1.0)

  step()
  np.testing.assert_allclose(v, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_subnormal_rows_are_left_alone():
  # 1 times a subnormal number is 0 on some processors.
  start = np.array([[1e-40, 1e-42], [3.0, 4.0]], np.float32)
  v = tf.Variable(start)
  clip.clip([v], [1], 10.0)
  np.testing.assert_array_equal(v, start)
  clip.clip([v], [1], 1.0)
  np.testing.assert_array_equal(v[0], start[0])
  np.testing.assert_allclose(v[1], [0.6, 0.8], rtol=1e-6)


def test_ids_do_not_limit_a_slice_over_the_rows():
  v = tf.Variable([[3.0], [4.0]])
  clip.clip([v], [0], 1.0, tf.constant([1]))
  np.testing.assert_allclose(v, [[0.6], [0.8]], rtol=1e-6)


@pytest.mark.parametrize('block_bytes', [4, 4096])
@pytest.mark.parametrize('start, axes, clipped', [
    ([[6.0, 8.0], [0.3, 0.4]], [1], [[1.2, 1.6], [0.3, 0.4]]),
    ([[6.0, 8.0], [8.0, 6.0]], [1], [[1.2, 1.6], [1.6, 1.2]]),
    ([6.0, 8.0], [0], [1.2, 1.6]),
])
def test_a_clip_of_another_worker_meanwhile(
    behavior, monkeypatch, block_bytes, start, axes, clipped):
  """Norms are measured, another worker clips, the clip is written."""
  monkeypatch.setattr(clip, '_BLOCK_BYTES', block_bytes)

  def cond(should, write, leave):
    monkeypatch.setattr(tf, 'cond', real)
    with tf.control_dependencies([should]):
      other = tf1.assign(v, clipped).op
    with tf.control_dependencies([other]):
      return real(tf.identity(should), write, leave)

  real = tf.cond
  monkeypatch.setattr(tf, 'cond', cond)
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    result = clip.clip([v], axes, 2.0)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(result.operation)
      # Shrunk twice the first row would be [.24, .32].
      np.testing.assert_allclose(session.run(v), clipped, rtol=1e-6)


def test_a_dense_gradient_touches_all_rows():
  sparse = tf.IndexedSlices(tf.ones([1]), tf.constant([3]))
  assert clip.touched_ids([sparse]) is sparse.indices
  assert clip.touched_ids([sparse, sparse]).numpy().tolist() == [3, 3]
  assert clip.touched_ids([sparse, tf.ones([1])]) is None
  assert clip.touched_ids([]) is None
