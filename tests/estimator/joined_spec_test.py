# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the spec of the whole batch, from a run with given weights."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.towers import shard_towers
from tfplugin.distribute.towers import tower_weights
from tfplugin.estimator import joined_spec

tf1 = tf.compat.v1

_TRAIN, _EVAL, _PREDICT = 'train', 'eval', 'infer'
# Three rows and one row.
_ROWS = (3, 1)
_WEIGHTS = tower_weights.TowerWeights([.75, .25], [.75, .25])


def _join(mode, fn):
  """Returns the joined spec of `fn(tower)` in two towers."""
  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    run, specs = strategy.build_towers(fn, _WEIGHTS)
  return joined_spec.join(mode, run, specs, _WEIGHTS.loss, _ROWS)


def _values(tower):
  return tf.constant([8.0] if tower else [1.0, 2.0, 6.0])


def test_train_has_the_loss_and_the_step_of_the_batch(behavior):
  def fn(tower):
    w = tf1.get_variable('w', initializer=1.0)
    # Means 3 and 8 of three rows and one row: 17 / 4.
    loss = w * tf.reduce_mean(_values(tower))
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(loss)
    return tf.estimator.EstimatorSpec(_TRAIN, loss=loss, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = _join(_TRAIN, fn)
    session.run(tf1.global_variables_initializer())
    assert session.run(spec.loss) == 4.25
    session.run(spec.train_op)
    assert session.run(tf1.trainable_variables()) == [1 - 4.25]
    assert not spec.eval_metric_ops


def test_eval_has_the_metrics_of_the_batch_and_of_its_loss(behavior):
  def fn(tower):
    loss = tf.reduce_mean(_values(tower))
    return tf.estimator.EstimatorSpec(
        _EVAL, loss=loss, predictions={'values': _values(tower)},
        eval_metric_ops={'mean': tf1.metrics.mean(_values(tower)),
                         'squares': tf1.metrics.mean(_values(tower) ** 2),
                         'loss': tf1.metrics.mean(loss * 2)})

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = _join(_EVAL, fn)
    session.run(tf1.local_variables_initializer())
    session.run([update for _, update in spec.eval_metric_ops.values()])
    found = session.run({
        key: value for key, (value, _) in spec.eval_metric_ops.items()})
    assert found == {'mean': 4.25, 'squares': (1 + 4 + 36 + 64) / 4,
                     # One value for the batch, and not one per tower.
                     'loss': 8.5}
    assert session.run(spec.loss) == 4.25
    assert session.run(spec.predictions['values']).tolist() == [1, 2, 6, 8]


def test_predict_has_the_rows_in_order_and_no_loss(behavior):
  def fn(tower):
    return tf.estimator.EstimatorSpec(_PREDICT, predictions=_values(tower))

  with tf.Graph().as_default(), tf1.Session() as session:
    spec = _join(_PREDICT, fn)
    assert session.run(spec.predictions).tolist() == [1.0, 2.0, 6.0, 8.0]
    assert spec.loss is None


@pytest.mark.parametrize('mode', (_EVAL, _PREDICT))
def test_specs_that_differ_are_refused_before_anything_is_built(mode):
  def fn(tower):
    keys = ['a'] if tower else ['a', 'b']
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.constant(1.0), predictions=dict.fromkeys(
            keys, _values(tower)))

  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='`predictions` is .* in tower 1'):
      _join(mode, fn)
    assert 'loss' not in [op.name for op in tf1.get_default_graph(
    ).get_operations()]


# What a model_fn reports in training is of all towers.
_LOGITS = np.array([[1., 0.], [0., 1.], [0., 1.], [3., 1.], [0., 2.]],
                   np.float32)
_LABELS = np.array([0, 0, 1, 1, 1])


def _reporting_model_fn(features, labels, mode):
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
    return strategy.run(
        lambda batch: _reporting_model_fn(*batch, mode), args=(values,))


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
  expected = _reports(_reporting_model_fn, tensors)
  found = _reports(tfplugin.replicate_model_fn(
      _reporting_model_fn, devices=['/cpu:0'] * devices), tensors)
  # Three of five rows are right; with the opposite signs the two others.
  assert [step['right'] for step in expected] == [
      pytest.approx(.6), pytest.approx(.5)]
  for one, towers in zip(expected, found):
    assert towers == pytest.approx(one, rel=1e-6)


def test_reports_of_a_strategy_are_those_of_one_device(behavior):
  expected, found = _reports(_reporting_model_fn), _reports(_on_strategy)
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


_SHARES = [.75, .25]
_ROWS_of_sums = ([1.0, 2.0, 6.0], [8.0])


@pytest.mark.parametrize('mode', ('train', 'eval'))
@pytest.mark.parametrize('reduce, expected', (
    (tf.reduce_sum, 17.0), (tf.reduce_mean, 4.25)))
def test_a_sum_is_added_up_and_a_mean_averaged(
    behavior, mode, reduce, expected):
  strategy = shard_towers.ShardTowers(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    batch = [tf.constant(rows) for rows in _ROWS_of_sums]

    def fn(tower):
      return tf.estimator.EstimatorSpec(
          mode, loss=reduce(batch[tower]), train_op=tf.no_op())

    with strategy.scope():
      run, specs = strategy.build_towers(
          fn, tower_weights.TowerWeights(_SHARES, _SHARES, by_terms=True),
          batch=batch)
    spec = joined_spec.join(mode, run, specs, _SHARES, [3, 1])
    assert session.run(spec.loss) == expected


@pytest.mark.parametrize('mode', (_TRAIN, _EVAL))
def test_what_is_made_of_the_loss_is_made_of_that_of_the_batch(behavior, mode):
  # (17 / 4) ** 2, and not the mean of 3 ** 2 and 8 ** 2.
  seen = []

  def fn(tower):
    loss = tf.reduce_mean(_values(tower))
    seen.append(loss ** 2)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.no_op())

  with tf.Graph().as_default(), tf1.Session() as session:
    _join(mode, fn)
    assert session.run(seen) == [18.0625] * 2
