# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that the first shard reports, in summaries and under names."""

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.shards import shared_shards

tf1 = tf.compat.v1

_ROWS = [[1.0, 2.0], [3.0, 8.0]]


def _report(make, group_assignment=None):
  """Returns the number `shown` of `make(rows)`, with two rows in each shard."""
  with tf.Graph().as_default(), tf1.Session() as session:
    rows = [tf1.placeholder_with_default(x, [None]) for x in _ROWS]
    shared_shards.SharedShards(
        ['/cpu:0', '/cpu:1'], group_assignment=group_assignment).build(
            [lambda own=own: tf.identity(make(own), name='shown')
             for own in rows], rows)
    return session.run('shown:0')


@pytest.mark.parametrize('reduce, of_all, of_first', (
    (tf.reduce_mean, 3.5, 1.5), (tf.reduce_max, 8.0, 2.0)))
def test_a_number_under_a_name_is_of_all_rows_of_the_group(
    behavior, reduce, of_all, of_first):
  assert _report(reduce) == of_all
  assert _report(reduce, [[0], [1]]) == of_first


def test_what_cannot_be_made_again_is_named(behavior, caplog):
  def first_by_chance(rows):
    return tf.random.shuffle(rows)[0] * 0.0 + rows[0]

  assert _report(first_by_chance) == 1.0
  assert 'show the first of 2: shown' in caplog.text


def test_summaries_of_rows_and_of_gradients_are_named(behavior, caplog):
  def model_fn(rows):
    w = tf1.get_variable('w', initializer=2.0)
    gradients = tf.gradients(tf.reduce_mean(w * rows), [w])
    tf1.summary.scalar('norm', tf.linalg.global_norm(gradients))
    tf1.summary.histogram('rows', rows)
    tf1.summary.histogram('weights', w)
    return tf.reduce_max(rows)

  assert _report(model_fn) == 8.0
  text, = (record.getMessage() for record in caplog.records
           if 'show the first' in record.getMessage())
  assert text.endswith('show the first of 2: norm, rows.')


def _model_fn(features, labels, mode):
  w = tf1.get_variable('w', initializer=2.0)
  rows = w * features - labels
  loss = tf.identity(tf.reduce_mean(rows), name='loss')
  tf1.summary.scalar('shown', tf.reduce_max(rows))
  # An op of the first replica alone, as TensorFlow's caches are.
  if not tf.get_static_value(
      tf.distribute.get_replica_context().replica_id_in_sync_group):
    tf.identity(1.0, name='of_the_first')
  tf.identity(tf.reduce_max(rows), name='worst')
  return tf.estimator.EstimatorSpec(
      mode, loss=loss,
      train_op=tf1.train.GradientDescentOptimizer(0.0).minimize(loss))


def _names_under_the_strategy(names, model_fn=_model_fn):
  """Returns tensors, and the collection of summaries."""
  strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    rows = [tf1.placeholder_with_default(x, [None]) for x in _ROWS]
    strategy.extended.call_for_each_replica(model_fn, args=(
        _tf_internals.per_replica(rows), 1.0, 'train'))
    session.run(tf1.global_variables_initializer())
    return session.run(names), tf1.get_collection(tf1.GraphKeys.SUMMARIES)


def test_numbers_that_hooks_read_are_of_all_replicas(behavior):
  # The rows are 2 x - 1: 1, 3, 5, 15.
  (loss, shown, worst), summaries = _names_under_the_strategy(
      ['loss:0', 'shown:0', 'worst:0'])
  assert loss == 6.0
  assert worst == 15.0
  assert tf1.Summary.FromString(shown).value[0].simple_value == 15.0
  assert [summary.name for summary in summaries] == ['shown:0']


def _metric(make):
  """Returns a metric after two updates, by `make(rows)`."""
  strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])

  def model_fn(features, labels, mode):
    del labels
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_mean(features),
        eval_metric_ops={'metric': make(features)})

  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    rows = [tf1.placeholder_with_default(x, [None]) for x in _ROWS]
    spec = strategy.extended.call_for_each_replica(model_fn, args=(
        _tf_internals.per_replica(rows), 1.0, 'eval'))
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    value, update = spec.eval_metric_ops['metric']
    for _ in range(2):
      session.run(strategy.group(update))
    return session.run(value)


def _largest(x):
  v = tf1.get_local_variable('v', [], initializer=tf1.zeros_initializer())
  update = tf1.assign(v, tf.maximum(v, tf.reduce_max(x)))
  return tf.identity(v), update


def _sum_of_shards(x):
  v = tf1.get_variable(
      'v', [], initializer=tf1.zeros_initializer(), trainable=False,
      synchronization=tf.VariableSynchronization.ON_READ,
      aggregation=tf.VariableAggregation.SUM)
  return tf.identity(v), v.assign_add(tf.reduce_sum(x))


def test_a_metric_has_one_value(behavior, caplog):
  assert _metric(_largest) == 8.0
  assert _metric(tf1.metrics.mean) == 3.5
  assert 'An evaluation on 2 devices ends when one' in caplog.text
  with pytest.raises(ValueError, match='one value.*`metric` with.*has its own'):
    _metric(_sum_of_shards)


def test_replicas_that_build_different_ops_report_the_first_one(
    behavior, caplog):
  built = []

  def model_fn(features, labels, mode):
    built.append(mode)
    if len(built) == 1:
      features = features + 0.0
    return _model_fn(features, labels, mode)

  (loss, worst), _ = _names_under_the_strategy(['loss:0', 'worst:0'], model_fn)
  assert (loss, worst) == (6.0, 3.0)  # The loss is that of all in any case.
  assert 'show the first of 2: ' in caplog.text
