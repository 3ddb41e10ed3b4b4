# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the scope of towers makes of variables and EstimatorSpecs."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1


@pytest.mark.parametrize('arguments, expected', (
    ({'trainable': False}, 'ONLY_FIRST_REPLICA'),
    ({'trainable': True}, 'NONE'),
    ({'trainable': False, 'aggregation': tf.VariableAggregation.SUM}, 'SUM'),
))
def test_aggregation_in_eager_execution(arguments, expected):
  with tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']).scope():
    assert tf.Variable(1.0, **arguments).aggregation.name == expected


def _run(fn):
  """Runs `fn` of [2.] in tower 0 and [2., 2.] in tower 1."""
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with strategy.scope():
    batches = strategy.experimental_distribute_values_from_function(
        lambda context: tf.fill([context.replica_id_in_sync_group + 1], 2.0))
    return strategy, strategy.run(fn, args=(batches,))


def test_gradients_of_a_run_are_those_of_all_towers(behavior):
  # d/dw of 2 w + 4 w.
  def fn(x):
    w = tf1.get_variable('w', initializer=1.0)
    return tf.gradients(w * tf.reduce_sum(x), [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, gradients = _run(fn)
    session.run(tf1.global_variables_initializer())
    found = session.run(strategy.experimental_local_results(gradients))
    np.testing.assert_allclose(found, [6] * len(found), rtol=1e-6)


def test_a_mean_over_towers_counts_rows(behavior):
  # 2 of one row and 8 of two: (2 + 2 * 8) / 3. Moving averages ask like this.
  def fn(x):
    value = tf.reduce_sum(x) * tf.cast(tf.shape(x)[0], tf.float32)
    return tf.distribute.get_replica_context().merge_call(
        lambda strategy, value: strategy.extended.reduce_to(
            tf.distribute.ReduceOp.MEAN, value, '/cpu:0'), args=(value,))

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, means = _run(fn)
    found = session.run(strategy.experimental_local_results(means))
    np.testing.assert_allclose(found, [6] * len(found), rtol=1e-6)


def test_the_first_tower_trains(behavior):
  # What it makes of an update is of all rows: its updates come last.
  def fn(x):
    return tf.estimator.EstimatorSpec(
        'train', loss=tf.reduce_sum(x), train_op=tf.no_op('train'))

  with tf.Graph().as_default(), tf1.Session() as session:
    strategy, spec = _run(fn)
    losses, updates = (strategy.experimental_local_results(each)
                       for each in (spec.loss, spec.train_op))
    assert {op.name for op in updates} == {'train'}
    # Estimator adds them up: 2 of one row and 4 of two.
    assert sum(session.run(losses)) == pytest.approx(6.0)


def test_a_tower_waits_for_the_batches_of_all(behavior):
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    parts = [tf1.placeholder(tf.float32, [1]) for _ in range(2)]
    shared = tf1.placeholder(tf.float32, [])
    batches = strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group])
    seen = strategy.run(lambda x, y: (2 * x, y), args=(batches, shared))
    first, _ = strategy.experimental_local_results(seen[0])
    # What all towers get is theirs as it is.
    assert all(each is shared
               for each in strategy.experimental_local_results(seen[1]))
    assert session.run(first, {parts[0]: [3.0], parts[1]: [5.0]}) == [6.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match='must feed'):
      session.run(first, {parts[0]: [3.0]})
