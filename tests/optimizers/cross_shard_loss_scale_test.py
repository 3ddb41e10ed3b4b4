# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loss scales under cross shard, where a shard overflows, and where none does.

The loss of shard i is weight * x[i], of which the gradient is x[i].
"""

import functools

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.estimator import cross_shard

tf1 = tf.compat.v1
_Scaled = tf1.mixed_precision.MixedPrecisionLossScaleOptimizer


def _fixed():
  return tf1.mixed_precision.FixedLossScale(128.0)


def _dynamic():
  return tf1.mixed_precision.DynamicLossScale(
      initial_loss_scale=1024.0, increment_period=1)


def _optimizer(make_scale, wrap):
  sgd = tf1.train.GradientDescentOptimizer(1.0)
  if wrap == 'inside':
    return _Scaled(tfplugin.CrossShardOptimizer(sgd), make_scale())
  scaled = _Scaled(sgd, make_scale())
  return tfplugin.CrossShardOptimizer(scaled) if wrap == 'outside' else scaled


def _loss(x, sparse):
  weight = tf1.get_variable('weight', initializer=[[10.0]], use_resource=True)
  rows = tf.gather(weight, [0]) if sparse else weight
  return weight, tf.reduce_mean(rows * x)


def _by_strategy(optimizer, x, sparse):
  strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
  with strategy.scope():

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      weight, loss = _loss(tf.gather(x, index), sparse)
      return weight, tf.group(optimizer().minimize(loss))

    weight, train_op = strategy.run(replica)
    return (tf.stack(strategy.experimental_local_results(weight)),
            tf.group(strategy.experimental_local_results(train_op)))


def _by_decorator(optimizer, x, sparse):

  def model_fn(features, labels, mode):
    del labels
    _, loss = _loss(features, sparse)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer().minimize(loss))

  spec = cross_shard(model_fn, devices=['/cpu:0', '/cpu:1'])(
      features=tf.reshape(x, [2, 1]), labels=None, mode='train')
  return tf1.trainable_variables()[0], spec.train_op


FORMS = {'strategy': _by_strategy, 'decorator': _by_decorator}


def _train(form, make_scale, wrap, batches, sparse=False):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder(tf.float32, [2])
    weight, train_op = FORMS[form](
        functools.partial(_optimizer, make_scale, wrap), x, sparse)
    session.run(tf1.global_variables_initializer())
    values = []
    for batch in batches:
      session.run(train_op, {x: batch})
      weights = session.run(weight).ravel().tolist()
      assert len(set(weights)) == 1
      values.append(weights[0])
    return values


@pytest.mark.parametrize('wrap', ['none', 'outside', 'inside'])
@pytest.mark.parametrize('make_scale', [_fixed, _dynamic])
@pytest.mark.parametrize('form', FORMS)
def test_scaled_gradients_are_the_mean(behavior, form, make_scale, wrap):
  assert _train(form, make_scale, wrap, [[1.0, 3.0], [2.0, 2.0]]) == [8.0, 6.0]


@pytest.mark.parametrize('sparse', [False, True])
@pytest.mark.parametrize('wrap', ['none', 'outside'])
@pytest.mark.parametrize('form', FORMS)
def test_a_step_is_skipped_if_any_shard_overflows(behavior, form, wrap, sparse):
  batches = [[1.0, 3.0], [1.0, 1e38], [1e38, 1.0], [1.0, 1.0]]
  assert _train(form, _dynamic, wrap, batches, sparse) == [8.0, 8.0, 8.0, 7.0]
