# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of metrics over towers: numpy of all rows, whatever the split."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_RANDOM = np.random.RandomState(1)
_A = _RANDOM.randn(11).astype(np.float32)
_B = (_A + _RANDOM.randn(11)).astype(np.float32)
# 5, 1 and 5 rows: towers get 2 + 2 + 1, 1 + 0 + 0 and 2 + 2 + 1 of them.
_BATCHES = (slice(0, 5), slice(5, 6), slice(6, 11))


def _evaluate(make_metrics, num_towers, batches=_BATCHES):
  """Returns the metrics after all batches; 0 towers: not replicated."""
  def model_fn(features, labels, mode):
    loss = tf.reduce_mean(features)
    metrics = make_metrics(*(features, labels, loss)[
        :len(inspect.signature(make_metrics).parameters)])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops=metrics)

  if num_towers:
    model_fn = replicate.replicate_model_fn(
        model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)])
  with tf.Graph().as_default(), tf1.Session() as session:
    a = tf1.placeholder(tf.float32, [None])
    b = tf1.placeholder(tf.float32, [None])
    spec = model_fn(a, b, 'eval')
    values, updates = {}, []
    for key, metric in spec.eval_metric_ops.items():
      if isinstance(metric, tf.keras.metrics.Metric):
        metric = metric.result(), metric.updates[0]
      values[key] = metric[0]
      updates.append(metric[1])
    session.run([tf1.local_variables_initializer(),
                 tf1.global_variables_initializer()])
    for rows in batches:
      session.run(updates, {a: _A[rows], b: _B[rows]})
    # Nothing is fed: a value never depends on a batch.
    return session.run(values)


def _running_maximum(a):
  maximum = tf1.get_local_variable(
      'maximum', [], initializer=tf1.initializers.constant(-np.inf))
  update = tf1.assign(maximum, tf.maximum(maximum, tf.reduce_max(a)))
  return tf.identity(maximum), update


def _streaming_covariance(a, b):
  """The usual recurrence over batches, whose terms cannot be added up."""
  def local(name):
    return tf1.get_local_variable(name, [], initializer=tf1.zeros_initializer())

  count, mean_a, mean_b, comoment = map(
      local, ('count', 'mean_a', 'mean_b', 'comoment'))
  rows = tf.cast(tf.size(a), tf.float32)
  new_count = count + rows
  delta_a = tf.reduce_mean(a) - mean_a
  delta_b = tf.reduce_mean(b) - mean_b
  inner = tf.reduce_sum((a - tf.reduce_mean(a)) * (b - tf.reduce_mean(b)))
  news = (comoment + inner + delta_a * delta_b * count * rows / new_count,
          mean_a + delta_a * rows / new_count,
          mean_b + delta_b * rows / new_count, new_count)
  with tf.control_dependencies(news):
    update = tf.group(*(tf1.assign(variable, new) for variable, new in zip(
        (comoment, mean_a, mean_b, count), news)))
  return tf.identity(comoment) / (tf.identity(count) - 1), update


def _numpy_metrics(a, b):
  metrics = tf1.metrics
  return {
      'mean': metrics.mean(a),
      'error': metrics.mean_squared_error(a, b),
      'covariance': _streaming_covariance(a, b),
      'maximum': _running_maximum(a),
      'percentage': metrics.percentage_below(a, 0.0),
  }


@pytest.mark.parametrize('num_towers', (1, 2, 3))
def test_metrics_equal_numpy(behavior, num_towers):
  found = _evaluate(_numpy_metrics, num_towers)
  assert found['mean'] == pytest.approx(_A.mean(), rel=1e-5)
  assert found['error'] == pytest.approx(np.square(_A - _B).mean(), rel=1e-5)
  # contrib merges the towers' comoments by adding: they are not additive.
  assert found['covariance'] == pytest.approx(
      np.cov(_A, _B)[0, 1], rel=1e-5)
  # contrib adds the towers' maxima up.
  assert found['maximum'] == pytest.approx(_A.max())
  assert found['percentage'] == pytest.approx((_A < 0).mean())


@pytest.mark.parametrize('num_towers', (2, 3))
def test_metric_of_the_loss_is_that_of_the_batches(behavior, num_towers):
  # Batches of 5, 1 and 5 rows count the same, whatever towers make of them.
  found = _evaluate(
      lambda a, b, loss: {'loss': tf1.metrics.mean(loss)}, num_towers)
  assert found['loss'] == pytest.approx(
      np.mean([_A[rows].mean() for rows in _BATCHES]), rel=1e-5)


def _v1_metrics(a, b):
  """Every kind of metric of tf.compat.v1.metrics."""
  metrics = tf1.metrics
  labels, predictions = a > 0, b > 0
  scores = tf.sigmoid(b)
  ids = tf.cast(a > 0, tf.int64)
  logits = tf.stack([-b, b], axis=1)
  return {
      'accuracy': metrics.accuracy(labels, predictions),
      'auc': metrics.auc(labels, scores),
      'average_precision_at_k': metrics.average_precision_at_k(ids, logits, 2),
      'false_negatives': metrics.false_negatives(labels, predictions),
      'false_positives_at_thresholds':
          metrics.false_positives_at_thresholds(labels, scores, [.3, .6])[0:2],
      'mean_absolute_error': metrics.mean_absolute_error(a, b),
      'mean_cosine_distance': metrics.mean_cosine_distance(
          tf.stack([a, b], 1), tf.stack([b, b], 1), dim=1),
      'mean_iou': metrics.mean_iou(ids, tf.cast(b > 0, tf.int64), 2),
      'mean_per_class_accuracy': metrics.mean_per_class_accuracy(
          ids, tf.cast(b > 0, tf.int64), 2),
      'mean_relative_error': metrics.mean_relative_error(a, b, a),
      'precision': metrics.precision(labels, predictions),
      'precision_at_k': metrics.precision_at_k(ids, logits, 1),
      'recall': metrics.recall(labels, predictions),
      'recall_at_k': metrics.recall_at_k(ids, logits, 1),
      'rmse': metrics.root_mean_squared_error(a, b),
      'sensitivity': metrics.sensitivity_at_specificity(labels, scores, .5),
      'true_negatives': metrics.true_negatives(labels, predictions),
  }


def _keras_metrics(a, b):
  auc = tf.keras.metrics.AUC()
  auc.update_state(a > 0, tf.sigmoid(b))
  mean = tf.keras.metrics.Mean()
  mean.update_state(a)
  error = tf.keras.metrics.RootMeanSquaredError()
  error.update_state(a, b)
  return {'auc': auc, 'mean': mean, 'error': error}


@pytest.mark.parametrize('make_metrics', (_v1_metrics, _keras_metrics),
                         ids=('v1', 'keras'))
def test_metrics_equal_one_device(behavior, make_metrics):
  expected = _evaluate(make_metrics, 0)
  found = _evaluate(make_metrics, 3)
  assert sorted(found) == sorted(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
