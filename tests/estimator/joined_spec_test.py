# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the spec of the whole batch, from a run with given weights."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_weights
from tfplugin.estimator import joined_spec

tf1 = tf.compat.v1

_TRAIN, _EVAL, _PREDICT = 'train', 'eval', 'infer'
# Three rows and one row.
_ROWS = (3, 1)
_WEIGHTS = tower_weights.TowerWeights([.75, .25], [.75, .25])


def _join(mode, fn):
  """Returns the joined spec of `fn(tower)` in two towers."""
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
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
