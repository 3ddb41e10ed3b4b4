# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of towers and of shards: numpy of all rows, whatever the split."""

import inspect
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate
from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers')

_RANDOM = np.random.RandomState(1)
_A = _RANDOM.randn(11).astype(np.float32)
_B = (_A + _RANDOM.randn(11)).astype(np.float32)
# 5, 1 and 5 rows: towers get 2 + 2 + 1, 1 + 0 + 0 and 2 + 2 + 1 of them.
_BATCHES = (slice(0, 5), slice(5, 6), slice(6, 11))


def _towers(model_fn, num_towers):
  return replicate.replicate_model_fn(
      model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)])


def _shards(model_fn, num_shards):
  return tpu_shards.shard_model_fn(model_fn, num_shards, ['/cpu:0', '/cpu:1'])


def _evaluate(make_metrics, num_towers, batches=_BATCHES, split=_towers):
  """Returns the metrics after all batches; 0 towers: not replicated."""
  def model_fn(features, labels, mode):
    loss = tf.reduce_mean(features)
    metrics = make_metrics(*(features, labels, loss)[
        :len(inspect.signature(make_metrics).parameters)])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops=metrics)

  if num_towers:
    model_fn = split(model_fn, num_towers)
  with tf.Graph().as_default(), tf1.Session() as session:
    a = tf1.placeholder(tf.float32, [None])
    b = tf1.placeholder(tf.float32, [None])
    spec = model_fn(features=a, labels=b, mode='eval')
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


@pytest.mark.parametrize('split', (_towers, _shards))
@pytest.mark.parametrize('num_towers', (1, 2, 3))
def test_metrics_equal_numpy(behavior, num_towers, split):
  found = _evaluate(_numpy_metrics, num_towers, split=split)
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


def _keras_mean(value):
  metric = tf.keras.metrics.Mean()
  metric.update_state(value)
  return metric


@pytest.mark.parametrize('split', (_towers, _shards))
@pytest.mark.parametrize('num_towers', (2, 3))
@pytest.mark.parametrize('mean', (tf1.metrics.mean, _keras_mean),
                         ids=('v1', 'keras'))
def test_mean_of_a_number_per_batch(behavior, num_towers, mean, split):
  found = _evaluate(lambda a: {
      'mean': mean(tf.reduce_mean(a)), 'rows': mean(a),
      'constant': mean(tf.constant(3.0))}, num_towers, split=split)
  assert found['mean'] == pytest.approx(
      np.mean([_A[rows].mean() for rows in _BATCHES]), rel=1e-5)
  assert found['rows'] == pytest.approx(_A.mean(), rel=1e-5)
  assert found['constant'] == pytest.approx(3.0)


@pytest.mark.parametrize('rows', (5, 2, 1))
def test_mean_where_the_number_of_rows_is_known(behavior, rows):
  def model_fn(features, mode):
    metrics = {'rows': tf1.metrics.mean(features),
               'number': tf1.metrics.mean(tf.reduce_mean(features))}
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_mean(features), eval_metric_ops=metrics)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = replicate.replicate_model_fn(
        model_fn, devices=['/cpu:0', '/cpu:1'])(
            tf.constant(_A[:rows]), mode='eval')
    session.run(tf1.local_variables_initializer())
    updates = {key: op for key, (_, op) in spec.eval_metric_ops.items()}
    for found in session.run(updates).values():
      assert found == pytest.approx(_A[:rows].mean(), rel=1e-5)


def _rows(a, b):
  """What metrics are made of: each value has a row for each of `a` and `b`."""
  matrix = tf.stack([a, b], axis=1)
  return {
      'a': a, 'b': b, 'labels': a > 0, 'predictions': b > 0,
      'scores': tf.sigmoid(b), 'weights': tf.square(a), 'matrix': matrix,
      'targets': tf.stack([b, b], axis=1),
      'ids': tf.cast(a > 0, tf.int64), 'guesses': tf.cast(b > 0, tf.int64),
      'logits': tf.stack([-b, b, a], axis=1),
      'one_hot': tf.one_hot(tf.cast(a > 0, tf.int64), 2),
      'probabilities': tf.nn.softmax(tf.stack([-b, b], axis=1))}


def _v1(name, *arguments, **kwargs):
  """Returns a function from rows to a metric of tf.compat.v1.metrics."""
  def make(rows):
    function = getattr(tf1.metrics, name)
    return function(*(rows[key] for key in arguments), weights=rows['weights'],
                    **kwargs)
  return make


_THRESHOLDS = {'thresholds': [.3, .6]}
_V1_METRICS = {
    **{name: _v1(name, 'labels', 'predictions') for name in (
        'accuracy', 'false_negatives', 'false_positives', 'precision',
        'recall', 'true_negatives', 'true_positives')},
    **{name: _v1(name, 'labels', 'scores', **_THRESHOLDS) for name in (
        'false_negatives_at_thresholds', 'false_positives_at_thresholds',
        'precision_at_thresholds', 'recall_at_thresholds',
        'true_negatives_at_thresholds', 'true_positives_at_thresholds')},
    **{name: _v1(name, 'ids', 'logits', k=2) for name in (
        'average_precision_at_k', 'precision_at_k', 'recall_at_k',
        'sparse_average_precision_at_k', 'sparse_precision_at_k')},
    **{name: _v1(name, 'a', 'b') for name in (
        'mean_absolute_error', 'mean_squared_error',
        'root_mean_squared_error')},
    **{name: _v1(name, 'ids', 'guesses', num_classes=2) for name in (
        'mean_iou', 'mean_per_class_accuracy')},
    'auc': _v1('auc', 'labels', 'scores'),
    'mean': _v1('mean', 'a'),
    'mean_cosine_distance': lambda rows: tf1.metrics.mean_cosine_distance(
        rows['matrix'], rows['targets'], dim=1,
        weights=rows['weights'][:, None]),
    'mean_relative_error': _v1('mean_relative_error', 'a', 'b', 'weights'),
    'percentage_below': _v1('percentage_below', 'a', threshold=.1),
    'precision_at_top_k': lambda rows: tf1.metrics.precision_at_top_k(
        rows['ids'], rows['guesses'][:, None], weights=rows['weights']),
    'recall_at_top_k': lambda rows: tf1.metrics.recall_at_top_k(
        rows['ids'], rows['guesses'][:, None], weights=rows['weights']),
    'sensitivity_at_specificity': _v1(
        'sensitivity_at_specificity', 'labels', 'scores', specificity=.5),
    'specificity_at_sensitivity': _v1(
        'specificity_at_sensitivity', 'labels', 'scores', sensitivity=.5),
}
# In a graph their update op is the last of several, on one device as well.
_ZERO_IN_A_GRAPH = ('F1Score', 'FBetaScore')
# A mean over batches, element by element, has no value for a part of a batch.
_REFUSED = ('mean_tensor', 'MeanTensor')


def _keras(name, *arguments, **kwargs):
  """Returns a function from rows to a metric of tf.keras.metrics."""
  def make(rows):
    metric = getattr(tf.keras.metrics, name)(**kwargs)
    metric.update_state(*(rows[key] for key in arguments),
                        sample_weight=rows['weights'])
    return metric
  return make


_KERAS_METRICS = {
    **{name: _keras(name, 'labels', 'predictions') for name in (
        'Accuracy', 'FalseNegatives', 'FalsePositives', 'Precision', 'Recall',
        'TrueNegatives', 'TruePositives')},
    **{name: _keras(name, 'one_hot', 'probabilities') for name in (
        'BinaryAccuracy', 'BinaryCrossentropy', 'CategoricalAccuracy',
        'CategoricalCrossentropy', 'F1Score', 'FBetaScore', 'KLDivergence')},
    **{name: _keras(name, 'matrix', 'targets') for name in (
        'CategoricalHinge', 'CosineSimilarity', 'Hinge', 'LogCoshError',
        'MeanAbsoluteError', 'MeanAbsolutePercentageError', 'MeanSquaredError',
        'MeanSquaredLogarithmicError', 'Poisson', 'R2Score',
        'RootMeanSquaredError', 'SquaredHinge')},
    **{name: _keras(name, 'labels', 'scores', **{of: .5}) for name, of in (
        ('PrecisionAtRecall', 'recall'), ('RecallAtPrecision', 'precision'),
        ('SensitivityAtSpecificity', 'specificity'),
        ('SpecificityAtSensitivity', 'sensitivity'))},
    **{name: _keras(name, 'ids', 'logits') for name in (
        'SparseCategoricalAccuracy', 'SparseCategoricalCrossentropy')},
    **{name: _keras(name, 'a') for name in ('Mean', 'Sum')},
    'AUC': _keras('AUC', 'labels', 'scores'),
    'BinaryIoU': _keras('BinaryIoU', 'labels', 'scores'),
    'IoU': _keras('IoU', 'ids', 'guesses', num_classes=2,
                  target_class_ids=[0]),
    'MeanIoU': _keras('MeanIoU', 'ids', 'guesses', num_classes=2),
    'MeanMetricWrapper': _keras(
        'MeanMetricWrapper', 'matrix', 'targets', fn=tf.keras.losses.huber),
    'MeanRelativeError': _keras(
        'MeanRelativeError', 'matrix', 'targets', normalizer=[1.0, 3.0]),
    'OneHotIoU': _keras('OneHotIoU', 'one_hot', 'probabilities', num_classes=2,
                        target_class_ids=[1]),
    'OneHotMeanIoU': _keras(
        'OneHotMeanIoU', 'one_hot', 'probabilities', num_classes=2),
    'SparseTopKCategoricalAccuracy': _keras(
        'SparseTopKCategoricalAccuracy', 'ids', 'logits', k=2),
    'TopKCategoricalAccuracy': _keras(
        'TopKCategoricalAccuracy', 'one_hot', 'probabilities', k=1),
}


def test_the_tables_hold_every_metric():
  v1 = {name for name in dir(tf1.metrics) if not name.startswith('_')}
  assert v1 == {*_V1_METRICS, _REFUSED[0]}
  base = tf.keras.metrics.Metric
  keras = {value.__name__ for value in vars(tf.keras.metrics).values()
           if inspect.isclass(value) and issubclass(value, base)} - {
               base.__name__}
  assert keras == {*_KERAS_METRICS, _REFUSED[1]}


@pytest.mark.sampled(4)
@pytest.mark.parametrize('case', itertools.product(
    (_V1_METRICS, _KERAS_METRICS), (_towers, _shards)))
def test_every_metric_equals_one_device(behavior, case):
  table, split = case

  def make_metrics(a, b):
    rows = _rows(a, b)
    return {name: make(rows) for name, make in table.items()}

  expected = _evaluate(make_metrics, 0)
  found = _evaluate(make_metrics, 2, split=split)
  assert sorted(found) == sorted(table)
  for name, value in expected.items():
    assert np.any(value) == (name not in _ZERO_IN_A_GRAPH), name
    np.testing.assert_allclose(
        found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


class _LargestMean(tf.keras.metrics.Metric):
  """A user's own metric, whose update Keras makes one function."""

  def __init__(self):
    super().__init__(name='largest_mean')
    self._total = self.add_weight(name='sum', initializer='zeros')
    self._count = self.add_weight(name='rows', initializer='zeros')
    self._largest = self.add_weight(name='largest', initializer='zeros')

  def update_state(self, values):
    self._largest.assign(tf.maximum(self._largest, tf.reduce_mean(
        tf.reduce_max(values, axis=0))))
    self._total.assign_add(tf.reduce_mean(values) * tf.cast(
        tf.size(values), tf.float32))
    self._count.assign_add(tf.cast(tf.size(values), tf.float32))

  def result(self):
    return tf.stack([self._total / self._count, self._largest])


def test_metric_class_of_the_user(behavior):
  def make_metrics(a):
    metric = _LargestMean()
    metric.update_state(a)
    return {'own': metric}

  # Batches of 1 row leave towers without any.
  np.testing.assert_allclose(
      _evaluate(make_metrics, 3)['own'], [_A.mean(), _A.max()], rtol=1e-5)
