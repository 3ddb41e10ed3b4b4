# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the records of shards: ops by turn, and gradients.

Sums of gradients are in shard_run_test.
"""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.shards.building import op_record
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_X = np.array([[1.], [2.], [6.]], np.float32)


def test_ops_of_turns():
  with tf.Graph().as_default() as graph:
    tf.constant(0.0)
    record = op_record.OpRecord(graph, 2)
    made = {0: [], 1: []}
    for shard in (0, 1, 0, 1):
      record.begin(shard)
      made[shard].append(tf.constant(1.0, name='shard_1/x').op)
      record.end(shard)
    shared = tf.constant(2.0).op
    assert record.built_in(0) == made[0]
    assert record.ops_of(1) == made[1]
    assert record.ops_of(0) == [*made[0], shared]
    assert [record.is_own(1, op) for op in (*made[1], *made[0], shared)] == [
        True, True, False, False, False]


def test_a_turn_that_is_not_over():
  with tf.Graph().as_default() as graph:
    record = op_record.OpRecord(graph, 1)
    record.begin(0)
    assert record.is_own(0, tf.constant(1.0).op)


@pytest.mark.parametrize('scope', ('', 'net/'))
def test_absolute_name_scopes_change_nothing(behavior, scope):
  # Weighted: (1 * 1 + 4 * 0 + 36 * 3) / 2 with two weights that are not 0.
  def model_fn(features, labels, mode):
    with tf.name_scope(scope):
      w = tf1.get_variable('w', initializer=1.0)
      loss = tf1.losses.compute_weighted_loss(
          tf.squeeze(features, 1) ** 2 * w, labels)
      metrics = {'mean': tf1.metrics.mean(features)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = tfplugin.replicate_model_fn(model_fn, devices=['/cpu:0'] * 3)(
        tf.constant(_X), tf.constant([1., 0., 3.]), 'eval')
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    value, update = spec.eval_metric_ops['mean']
    assert session.run([spec.loss, update]) == [54.5, 3.0]
    assert session.run(value) == 3.0


def test_knows_what_was_made_from_a_sum():
  with tf.Graph().as_default():
    summed, other = tf.constant([3.0]), tf.constant([4.0])
    gradients = op_record.NotedGradients()
    assert not gradients.made(tf.identity(other))
    gradients.taken.append((summed, []))
    clipped, _ = tf.clip_by_global_norm([summed, other], 1.0)
    assert gradients.made(clipped[0])
    assert gradients.made(
        tf.IndexedSlices(summed * 2, tf.constant([0])))
    assert not gradients.made(tf.square(other))


def test_each_op_is_looked_at_once():
  # 2^64 ways lead to the first op.
  with tf.Graph().as_default():
    gradients, x = op_record.NotedGradients(), tf.constant(1.0)
    for _ in range(64):
      x = x + x
    assert not gradients.made(x)
    assert not gradients.are_in_total(x)


def test_what_has_no_gradient_is_not_walked_again(monkeypatch):
  walked = []
  inputs = tf.Operation.inputs
  with tf.Graph().as_default():
    gradients, x = op_record.NotedGradients(), tf.constant(1.0)
    for _ in range(20):
      x = tf.negative(x)
    assert not gradients.made(x)
    monkeypatch.setattr(tf.Operation, 'inputs', property(
        lambda self: [walked.append(self), inputs.fget(self)][1]))
    assert not gradients.made(x + 1.0)
  assert len([op for op in walked if op.type == 'Neg']) <= 1


def test_a_gradient_is_in_a_total_if_only_sums_have_it():
  with tf.Graph().as_default():
    gradients = op_record.NotedGradients()
    gradient = tf.constant([3.0])
    gradients.taken.append((gradient, []))
    total, other = tf.identity(gradient), tf.square(tf.constant([2.0]))
    same_values.declare([total])
    assert gradients.are_in_total(total)
    assert gradients.are_in_total(2.0 * total + other)
    assert not gradients.are_in_total(total + gradient)
    assert not gradients.are_in_total(other)
