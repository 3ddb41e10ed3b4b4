# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the gradients that are noted; sums are in shard_run_test."""

import tensorflow as tf

from tfplugin.distribute.shards.building import noted_gradients
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1


def test_knows_what_was_made_from_a_sum():
  with tf.Graph().as_default():
    summed, other = tf.constant([3.0]), tf.constant([4.0])
    gradients = noted_gradients.NotedGradients()
    assert not gradients.made(tf.identity(other))
    gradients.add(summed)
    clipped, _ = tf.clip_by_global_norm([summed, other], 1.0)
    assert gradients.made(clipped[0])
    assert gradients.made(
        tf.IndexedSlices(summed * 2, tf.constant([0])))
    assert not gradients.made(tf.square(other))


def test_each_op_is_looked_at_once():
  # 2^64 ways lead to the first op.
  with tf.Graph().as_default():
    gradients, x = noted_gradients.NotedGradients(), tf.constant(1.0)
    for _ in range(64):
      x = x + x
    assert not gradients.made(x)
    assert not gradients.are_in_total(x)


def test_what_has_no_gradient_is_not_walked_again(monkeypatch):
  walked = []
  inputs = tf.Operation.inputs
  with tf.Graph().as_default():
    gradients, x = noted_gradients.NotedGradients(), tf.constant(1.0)
    for _ in range(20):
      x = tf.negative(x)
    assert not gradients.made(x)
    monkeypatch.setattr(tf.Operation, 'inputs', property(
        lambda self: [walked.append(self), inputs.fget(self)][1]))
    assert not gradients.made(x + 1.0)
  assert len([op for op in walked if op.type == 'Neg']) <= 1


def test_a_gradient_is_in_a_total_if_only_sums_have_it():
  with tf.Graph().as_default():
    gradients = noted_gradients.NotedGradients()
    gradient = tf.constant([3.0])
    gradients.add(gradient)
    total, other = tf.identity(gradient), tf.square(tf.constant([2.0]))
    same_values.declare([total])
    assert gradients.are_in_total(total)
    assert gradients.are_in_total(2.0 * total + other)
    assert not gradients.are_in_total(total + gradient)
    assert not gradients.are_in_total(other)
