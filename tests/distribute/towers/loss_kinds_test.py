# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a tensor of a part is to the batch; values: batch_loss_test."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import loss_kinds

tf1 = tf.compat.v1


def _kinds(x, rows=None):
  return loss_kinds.Kinds({x.ref(): loss_kinds.ROWS}, lambda op: True, rows)


def _mixed(x):
  return tf.reduce_sum(x) + tf.reduce_mean(x)


@pytest.mark.parametrize('make, trait', [
    (lambda x: tf.constant(1.0), 'is_same'),
    (lambda x: tf.constant(1.0), 'is_mean'),
    (lambda x: tf.nn.relu(x @ tf.ones([2, 3])), 'is_rows'),
    (lambda x: tf.gather(tf.ones([5, 2]), tf.cast(x, tf.int32)), 'is_rows'),
    (tf.reduce_sum, 'is_sum'),
    (tf.reduce_mean, 'is_mean'),
    (lambda x: tf.reduce_sum(x, 0), 'is_sum'),
    (lambda x: tf.reduce_sum(x, 1), 'is_rows'),
    (lambda x: tf.reduce_sum(x, [-2]), 'is_sum'),
    (lambda x: tf.matmul(x, x, transpose_a=True), 'is_sum'),
    (lambda x: tf.shape(x)[0], 'is_sum'),
    (lambda x: tf.shape(x)[1], 'is_same'),
    (lambda x: tf.shape(tf.transpose(x))[1], 'is_sum'),
    (lambda x: tf.size(x) - 1, 'is_sum'),
    (lambda x: tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32), 'is_mean'),
    (lambda x: tf.reduce_sum(x / tf.cast(tf.size(x), tf.float32)), 'is_mean'),
    (lambda x: tf.reduce_sum(x) / (tf.reduce_sum(x * x) + 1e-5), 'is_mean'),
    (lambda x: tf.reduce_sum(x) / 3, 'is_sum'),
    (lambda x: tf.reduce_mean(tf.fill(tf.shape(x), 3.0)), 'is_mean'),
    (lambda x: tf.reduce_sum(tf.fill(tf.shape(x), 3.0)), 'is_sum'),
    (_mixed, 'is_mixed'),
    (lambda x: 2 * -_mixed(x) / 3, 'is_mixed'),
    (lambda x: tf.cond(x[0, 0] > 0, lambda: tf.reduce_sum(x), lambda: 0.0),
     'is_sum'),
    (lambda x: tf.while_loop(lambda n: n < 3., lambda n: n + tf.reduce_mean(x),
                             [0.])[0], 'is_mean'),
])
def test_kinds(make, trait):
  tf1.disable_control_flow_v2()
  try:
    with tf.Graph().as_default():
      x = tf1.placeholder(tf.float32, [None, 2])
      assert getattr(_kinds(x).of(make(x)), trait)
  finally:
    tf1.enable_control_flow_v2()


@pytest.mark.parametrize('make', [
    lambda x: tf.sqrt(tf.reduce_sum(x)),
    lambda x: tf.reduce_mean(x) * tf.reduce_mean(x),
    lambda x: 1 / tf.reduce_mean(x),
    lambda x: tf.reduce_max(x),
    lambda x: _mixed(x) * tf.reduce_mean(x),
    lambda x: tf.cond(x[0, 0] > 0, lambda: tf.reduce_sum(x),
                      lambda: tf.reduce_mean(x)),
])
def test_neither_sum_nor_mean(behavior, make):
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    kind = _kinds(x).of(make(x))
    assert not (kind.is_sum or kind.is_mean or kind.is_mixed or kind.is_rows)


def test_sum_over_all_elements():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    kinds = _kinds(x)
    assert kinds.summed(x * 2).is_sum
    assert kinds.summed(tf.reduce_mean(x, 0)).is_mean


def test_ops_of_others_are_the_same_for_all():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 2])
    total = tf.reduce_sum(x)
    kinds = loss_kinds.Kinds({x.ref(): loss_kinds.ROWS},
                             lambda op: op is not total.op)
    assert kinds.of(total * 2).is_same


def test_static_sizes_are_counts_by_their_name():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [4, 2])
    kinds = _kinds(x, rows=4)
    assert kinds.of(tf.shape(x)[0]).is_sum
    assert kinds.of(tf.shape(x)[1]).is_same
    assert kinds.of(tf.size(x)).is_sum
    assert kinds.of(tf.reduce_sum(tf.ones_like(x))).is_sum
    assert kinds.of(tf.size(tf.ones([3]))).is_same
    # 4 rows, 8 elements, or numbers of the program?
    for number in (4.0, 8.0):
      quotient = kinds.of(tf.reduce_sum(x) / number)
      assert not quotient.is_sum and not quotient.is_mean
    assert kinds.of(tf.reduce_sum(x) / 16.0).is_sum


@pytest.mark.parametrize('rows', [1, 3])
def test_a_sum_over_1_is_one_unless_1_may_be_the_number_of_rows(rows):
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [rows, 2])
    kinds = loss_kinds.Kinds(
        {x.ref(): loss_kinds.ROWS}, lambda op: True, num_rows=rows)
    quotient = kinds.of(tf.reduce_sum(x) / 1.0)
    assert quotient.is_sum == (rows > 1) and not quotient.is_mean
    assert kinds.of(tf.reduce_sum(x) / 5.0).is_sum
