# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rewriting rows in place."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.clipping import clip

tf1 = tf.compat.v1


def _halve(rows):
  return rows / 2


def _rewritten(start, positions, rewrite=_halve):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=start)
    done = clip.rewrite_rows(
        v, tf.constant(positions, tf.int64), rewrite)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(done)
      return session.run(v)


@pytest.mark.parametrize('row_shape', [[], [3], [2, 3]])
def test_rewrites_the_given_rows_alone(behavior, row_shape):
  start = np.random.rand(5, *row_shape).astype(np.float32)
  want = start.copy()
  want[[4, 1]] /= 2
  np.testing.assert_array_equal(_rewritten(start, [4, 1]), want)


def test_no_rows(behavior):
  start = np.float32([[1.0, 2.0]])
  np.testing.assert_array_equal(_rewritten(start, []), start)


@pytest.mark.parametrize('positions', [
    [], [0, 2, 3, 4, 6], [0, 1, 2, 3, 4, 5, 6]])
def test_more_rows_than_a_block_holds(behavior, monkeypatch, positions):
  monkeypatch.setattr(clip, '_BLOCK_BYTES', 32)  # Two rows of four.
  start = np.random.rand(7, 4).astype(np.float32)
  want = start.copy()
  want[positions] = np.sqrt(want[positions])
  np.testing.assert_allclose(
      _rewritten(start, positions, tf.sqrt), want, rtol=1e-6)


def test_a_value_read_before_stays_as_it_was():
  v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
  before = v.read_value()
  clip.rewrite_rows(v, tf.constant([1]), _halve)
  between = v.read_value()
  clip.rewrite_rows(v, tf.constant([0]), _halve)
  np.testing.assert_array_equal(before, [[1.0, 2.0], [3.0, 4.0]])
  np.testing.assert_array_equal(between, [[1.0, 2.0], [1.5, 2.0]])
  np.testing.assert_array_equal(v, [[0.5, 1.0], [1.5, 2.0]])


def test_rows_of_one_block_need_no_loop(monkeypatch):
  """A graph with many small variables is built faster."""

  def num_operations():
    with tf.Graph().as_default() as graph:
      v = tf1.get_variable('v', [2, 4])
      before = len(graph.get_operations())
      clip.rewrite_rows(v, tf.constant([1]), _halve)
      return len(graph.get_operations()) - before

  monkeypatch.setattr(clip, '_BLOCK_BYTES', 32)
  without = num_operations()
  monkeypatch.setattr(clip, '_BLOCK_BYTES', 31)
  assert without < num_operations()


@pytest.mark.parametrize('shape', [[2, None], [None, 2]])
def test_a_shape_may_be_known_in_part(shape):
  with tf.Graph().as_default(), tf1.Session() as session:
    variable = tf.Variable([[6.0, 8.0], [0.3, 0.4]], use_resource=True,
                           shape=tf.TensorShape(shape))
    rewritten = clip.rewrite_rows(
        variable, tf.constant([0]), lambda rows: rows / 2)
    session.run(tf1.global_variables_initializer())
    session.run(rewritten)
    np.testing.assert_allclose(session.run(variable), [[3, 4], [0.3, 0.4]])
