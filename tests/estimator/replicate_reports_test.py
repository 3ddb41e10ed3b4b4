# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a model_fn reports in training is of all towers: metrics, summaries."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

_LOGITS = np.array([[1., 0.], [0., 1.], [0., 1.], [3., 1.], [0., 2.]],
                   np.float32)
_LABELS = np.array([0, 0, 1, 1, 1])


def _model_fn(features, labels, mode):
  scale = tf1.get_variable('scale', initializer=1.0)
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, scale * features)
  accuracy = tf1.metrics.accuracy(labels, tf.argmax(features, 1))
  tf.identity(accuracy[1], name='train_accuracy')
  tf.identity(loss, name='cross_entropy')
  tf1.summary.scalar('right', accuracy[1])
  tf1.summary.scalar('loss', loss)
  train_op = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      eval_metric_ops={'accuracy': accuracy})


def _on_strategy(features, labels, mode):
  strategy = tfplugin.distribute.TowerStrategy(['/cpu:0'] * 2)
  parts = iter([(features[:3], labels[:3]), (features[3:], labels[3:])])
  with strategy.scope():
    values = strategy.experimental_distribute_values_from_function(
        lambda context: next(parts))
    return strategy.run(lambda batch: _model_fn(*batch, mode), args=(values,))


def _reports(model_fn, tensors=()):
  """Returns `tensors` and the summaries after two batches, and names."""
  with tf.Graph().as_default(), tf1.Session() as session:
    features = tf1.placeholder_with_default(_LOGITS, [None, 2])
    labels = tf1.placeholder_with_default(_LABELS, [None])
    model_fn(features, labels, 'train')
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    summaries = [
        tensor for tensor in tf1.get_collection(tf1.GraphKeys.SUMMARIES)
        if not tensor.name.startswith('tower_')]
    found = []
    for factor in (1, -2):
      *values, written = session.run(
          [*tensors, tf1.summary.merge(summaries)],
          {features: factor * _LOGITS})
      found.append({value.tag: value.simple_value for value in
                    tf1.Summary.FromString(written).value})
      found[-1].update(zip(tensors, values))
    return found


@pytest.mark.parametrize('devices', (2, 3))
def test_reports_are_those_of_one_device(behavior, devices):
  tensors = 'train_accuracy:0', 'cross_entropy:0'
  expected = _reports(_model_fn, tensors)
  found = _reports(tfplugin.replicate_model_fn(
      _model_fn, devices=['/cpu:0'] * devices), tensors)
  # Three of five rows are right; with the opposite signs the two others.
  assert [step['right'] for step in expected] == [
      pytest.approx(.6), pytest.approx(.5)]
  for one, towers in zip(expected, found):
    assert towers == pytest.approx(one, rel=1e-6)


def test_reports_of_a_strategy_are_those_of_one_device(behavior):
  expected, found = _reports(_model_fn), _reports(_on_strategy)
  for one, towers in zip(expected, found):
    assert towers == pytest.approx(one, rel=1e-6)


def test_fetching_one_metric_updates_no_other(behavior):
  def model_fn(features, mode):
    metrics = {'a': tf1.metrics.mean(features), 'b': tf1.metrics.mean(features)}
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_mean(features), train_op=tf.no_op(),
        eval_metric_ops=metrics)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = tfplugin.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        tf.constant([1., 2., 6.]), mode='train')
    session.run(tf1.local_variables_initializer())
    assert session.run(spec.eval_metric_ops['a'][1]) == 3.0
    assert session.run(spec.eval_metric_ops['a'][0]) == 3.0
    assert session.run(spec.eval_metric_ops['b'][0]) == 0.0
