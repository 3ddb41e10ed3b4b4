# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mean losses of all shards divide by one count."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tfplugin
from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import shard_models

tf1 = tf.compat.v1


def _shards(*batches):
  """Returns (ops, loss, gradient) of each shard."""
  scale = tf1.get_variable('scale', initializer=1.0, use_resource=True)
  shards = []
  for losses, weights in batches:
    before = len(tf1.get_default_graph().get_operations())
    with _tf_internals.counts_marked(lambda: True):
      loss = tf1.losses.compute_weighted_loss(
          scale * tf.constant(losses), tf.constant(weights))
    gradient, = tf.gradients(loss, [scale])
    ops = tf1.get_default_graph().get_operations()[before:]
    shards.append((ops, loss, gradient))
  return shards


def test_values_and_gradients_have_one_count(behavior):
  # 8 / 1 and (2 + 2) / 2 in shards; (8 + 4) / 3 in the batch.
  with tf.Graph().as_default(), tf1.Session() as session:
    shards = _shards(([8., 5.], [1., 0.]), ([2., 2.], [1., 1.]))
    ops, losses, gradients = zip(*shards)
    shard_models.share_denominators(ops, [.5, .5])
    session.run(tf1.global_variables_initializer())
    assert session.run(.5 * losses[0] + .5 * losses[1]) == pytest.approx(4.)
    assert session.run(gradients[0] + gradients[1]) == pytest.approx(8.)


def test_a_shard_without_rows_adds_nothing(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    ops, losses, _ = zip(*_shards(([8., 4.], [1., 1.]), ([], [])))
    shard_models.share_denominators(ops, [1.0, 0.0])
    session.run(tf1.global_variables_initializer())
    assert session.run(losses) == (6., 0.)


def test_a_mean_metric_is_left_alone(behavior):
  with tf.Graph().as_default() as graph:
    tf1.metrics.mean(tf.ones([2]))
    shard_models.share_denominators([graph.get_operations(), []], [.5, .5])


def test_different_losses_are_refused():
  with tf.Graph().as_default():
    (ops, _, _), = _shards(([8.], [1.]))
    with pytest.raises(RuntimeError, match=r'\[1, 0\] mean losses'):
      shard_models.share_denominators([ops, []], [.5, .5])


def _branched(make):
  return tf.cond(tf1.placeholder_with_default(True, []), make, lambda: 0.0)


def _called(make):
  return tf.function(make)()


@pytest.mark.parametrize('inside', (_branched, _called))
def test_a_weighted_mean_inside_is_refused(behavior, inside):
  with tf.Graph().as_default() as graph:
    weights = tf1.placeholder(tf.float32, [None])
    with _tf_internals.counts_marked(lambda: True):
      loss = inside(
          lambda: tf1.losses.compute_weighted_loss(weights + 1.0, weights))
    tf1.gradients(loss, weights)
    with pytest.raises(RuntimeError, match='outside of `tf.cond`'):
      shard_models.share_denominators(
          [graph.get_operations()] * 2, [.5, .5])


@pytest.mark.parametrize('inside', (_branched, _called))
def test_a_mean_inside_is_of_its_rows(behavior, inside):
  # The means of [2, 3] and of [1] count 2/3 and 1/3.
  def model_fn(features, mode):
    loss = inside(lambda: tf1.losses.absolute_difference(0.0 * features,
                                                         features))
    return tf.estimator.EstimatorSpec(mode, loss=loss)

  with tf.Graph().as_default(), tf1.Session() as session:
    features = tf1.placeholder_with_default([2., 3., 1.], [None])
    spec = tfplugin.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        features, mode='eval')
    assert session.run(spec.loss) == pytest.approx(2.0)
