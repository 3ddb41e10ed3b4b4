# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the specs and model_fns that decorators refuse."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tfplugin import estimator
from tfplugin.estimator import model_fn as model_fn_lib

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN
DECORATORS = {
    'clip_variables': estimator.clip_variables(
        rules={'weight': 0}, max_norm=1.0),
    'cross_shard': estimator.cross_shard(devices=['/cpu:0', '/cpu:1']),
    'drop_stale_gradients': estimator.drop_stale_gradients(staleness=1),
    'elastic_average': estimator.elastic_average(),
    'replicate_model_fn': estimator.replicate_model_fn(
        devices=['/cpu:0', '/cpu:1']),
}


# Towers take whatever assigns to the variables, as one device does.
NEED_OPTIMIZERS = sorted({*DECORATORS} - {'replicate_model_fn'})


@pytest.fixture(params=sorted(DECORATORS), name='name')
def _name(request):
  return request.param


def _refuses(name, model_fn, error, match):
  with tf.Graph().as_default():
    tf1.train.get_or_create_global_step()
    with pytest.raises(error, match=match):
      decorated_models.call(DECORATORS[name](model_fn), TRAIN,
                            tf.ones([4, 2]), tf.ones([4, 1]))


def test_no_spec(name):
  def model_fn(features, labels, mode):
    del labels, mode
    return tf.reduce_sum(features)

  _refuses(name, model_fn, TypeError, 'must return a `tf.estimator.Estim')


@pytest.mark.parametrize('other_mode, field', (
    (tf.estimator.ModeKeys.PREDICT, 'loss'),
    (tf.estimator.ModeKeys.EVAL, 'train_op')))
def test_spec_without(name, other_mode, field):
  """An EstimatorSpec of TRAIN refuses that itself; not so of another mode."""

  def model_fn(features, labels, mode):
    del mode
    return decorated_models.regression()(features, labels, other_mode)

  _refuses(name, model_fn, ValueError,
           f'`{name}` must return a `{field}` in TRAIN')


@pytest.mark.parametrize('name', ('cross_shard',))
@pytest.mark.parametrize('differ, match', (
    (lambda spec: spec._replace(predictions={'a': spec.loss}),
     r"`predictions` is \[\] in shard 0 and \['a'\] in shard 1"),
    (lambda spec: tf.estimator.EstimatorSpec('eval', loss=spec.loss),
     "must return a `train_op` in TRAIN. Received: a spec for mode 'eval'"),
    (lambda spec: tf.estimator.EstimatorSpec('infer', {}),
     "must return a `loss` in TRAIN. Received: a spec for mode 'infer'"),
    (lambda spec: spec._replace(scaffold=tf1.train.Scaffold(
        init_fn=lambda scaffold, session: None)),
     r"`scaffold` is \[\] in shard 0 and \['init_fn'\] in shard 1"),
    (lambda spec: spec._replace(training_hooks=(tf1.train.SessionRunHook(),)),
     r"`training_hooks` is \[\] in shard 0 and \['SessionRunHook'\]")))
def test_specs_that_differ_between_shards(name, differ, match):
  made = []

  def model_fn(features, labels, mode):
    made.append(decorated_models.regression()(features, labels, mode))
    return made[0] if len(made) == 1 else differ(made[-1])

  _refuses(name, model_fn, ValueError, match)


@pytest.mark.parametrize('name', NEED_OPTIMIZERS)
def test_train_op_of_no_optimizer(name):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('weight', initializer=[[0.5], [-0.25]])
    loss = tf.reduce_sum(features @ w - labels)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.no_op())

  _refuses(name, model_fn, ValueError, 'must apply gradients')


@pytest.mark.parametrize('name', NEED_OPTIMIZERS)
def test_a_keras_optimizer_is_named_with_its_remedy(name):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('weight', initializer=[[0.5], [-0.25]])
    loss = tf.reduce_sum(features @ w - labels)
    optimizer = tf.keras.optimizers.legacy.SGD(0.1)
    train_op = optimizer.apply_gradients(
        [(gradient, w) for gradient in tf.gradients(loss, w)])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  _refuses(name, model_fn, ValueError,
           'such as a Keras optimizer. Use e.g. `tf.compat.v1.train.Adam')


@pytest.mark.parametrize('model_fn, error, match', (
    (3, TypeError, '`model_fn` must be a function'),
    (lambda labels: None, ValueError, 'must take `features`'),
    (lambda features, size: None, ValueError, 'needs `size`')))
def test_wrong_signature(name, model_fn, error, match):
  with pytest.raises(error, match=match):
    DECORATORS[name](model_fn)


@pytest.mark.parametrize('use, error', (
    (tf.estimator.Estimator, ValueError),  # TensorFlow's own error.
    (estimator.drop_stale_gradients(staleness=1), TypeError)))
def test_a_forgotten_model_fn_is_named(name, use, error):
  with pytest.raises(error) as raised:
    use(DECORATORS[name])
  assert f'{name}(...) without its model_fn: write {name}(model_fn, ...)' in (
      str(raised.value))


def test_a_strategy_around_is_refused():
  model_fn_lib.check_no_strategy('cross_shard')
  with tf.distribute.OneDeviceStrategy('/cpu:0').scope():
    with pytest.raises(RuntimeError, match=(
        '`cross_shard` must not be used inside a tf.distribute strategy.*'
        'OneDeviceStrategy.*Leave out one of the two, or use '
        '`tfplugin.distribute.CrossShardStrategy` alone.')):
      model_fn_lib.check_no_strategy('cross_shard')
    with pytest.raises(RuntimeError, match='Leave out one of the two.$'):
      model_fn_lib.check_no_strategy('ShardedTPUEstimator')
