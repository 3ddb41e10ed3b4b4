# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of calling and wrapping a model_fn."""

import functools
import inspect
import json

import pytest
import tensorflow as tf

from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import model_fn as model_fn_lib

tf1 = tf.compat.v1


def _run(call):
  """A decorator's body: doubles the features, reports the mode."""
  return call.mode, call(features=2 * call.arguments['features'])


def _arguments(fn):
  return list(inspect.signature(fn).parameters)


def test_passes_what_the_function_asks_for():
  def model_fn(features, labels, mode, params, config):
    return features, labels, mode, params, config

  decorated = model_fn_lib.decorate(model_fn, _run)
  assert _arguments(decorated) == [
      'features', 'labels', 'mode', 'params', 'config']
  assert decorated(features=1, labels=2, mode='train', params={}, config=None
                   ) == ('train', (2, 2, 'train', {}, None))
  assert decorated.__name__ == 'model_fn'


def test_function_without_mode_gets_none_but_the_decorator_does():
  decorated = model_fn_lib.decorate(lambda features: features, _run)
  assert _arguments(decorated) == ['features', 'mode', 'config']
  assert decorated(features=1, mode='eval') == ('eval', 2)


def test_method_of_a_class():
  class Model:
    factor = 10

    def model_fn(self, features, mode):
      return self.factor * features, mode

    decorated = model_fn_lib.decorate(model_fn, _run)

  assert Model().decorated(1, mode='eval') == ('eval', (20, 'eval'))
  bound = model_fn_lib.decorate(Model().model_fn, _run)
  assert bound(1, mode='eval') == ('eval', (20, 'eval'))


def test_partial():
  def model_fn(features, mode, scale):
    return features * scale, mode

  decorated = model_fn_lib.decorate(
      functools.partial(model_fn, scale=3), _run)
  assert decorated(features=1, mode='eval') == ('eval', (6, 'eval'))


def test_partial_that_hides_arguments_as_keywords():
  """Estimator sees positional arguments only, and looks through a partial."""

  def model_fn(scale, features, labels=None, *, mode, **rest):
    return scale, features, labels, mode, rest

  partial = functools.partial(model_fn, scale=3)
  decorated = model_fn_lib.decorate(partial, _run)
  assert inspect.getfullargspec(decorated).args == [
      'features', 'labels', 'mode', 'config']
  assert decorated(1, 2, 'eval') == ('eval', (3, 2, 2, 'eval', {}))


@pytest.mark.parametrize('added', ('mode', 'config', 'params'))
def test_what_a_partial_binds_is_not_estimators_to_pass(added):
  def model_fn(features, mode=None, params=None, config=None):
    return {'mode': mode, 'params': params, 'config': config}[added]

  partial = functools.partial(model_fn, **{added: 'bound'})
  decorated = model_fn_lib.decorate(partial, _run)
  assert _arguments(decorated).count('params') == (added != 'params')
  assert decorated(features=1, mode='eval', config='of Estimator') == (
      'eval', 'bound')
  again = model_fn_lib.decorate(functools.partial(decorated), _run)
  assert again(features=1, mode='eval', config='of Estimator') == (
      'eval', ('eval', 'bound'))


def test_decorated_twice():
  decorated = model_fn_lib.decorate(
      model_fn_lib.decorate(lambda features: features, _run),
      lambda call: call())
  assert decorated(features=1, mode='eval') == ('eval', 2)


@pytest.mark.parametrize('model_fn, error, match', (
    (3, TypeError, '`model_fn` must be a function'),
    (lambda labels: None, ValueError, 'must take `features`'),
    (lambda features, size: None, ValueError, 'needs `size`')))
def test_bad_model_fn_is_refused(model_fn, error, match):
  with pytest.raises(error, match=match):
    model_fn_lib.decorate(model_fn, _run)


_WITH_PS = {'chief': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']}


@pytest.mark.parametrize('cluster, job, mode, waits', (
    (_WITH_PS, 'worker', 'train', True),
    (_WITH_PS, 'worker', 'eval', False),
    (_WITH_PS, 'chief', 'train', False),
    ({'chief': ['a:1'], 'worker': ['b:1']}, 'worker', 'train', False),
    ({}, 'worker', 'train', False)))
def test_who_waits_for_the_variables_of_the_chief(
    monkeypatch, cluster, job, mode, waits):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': job, 'index': 0}}
      if cluster else {}))

  def model_fn(features, mode):
    loss = tf1.get_variable('w', initializer=1.0) * features
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
        loss, tf1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  decorated = model_fn_lib.decorate_training(
      model_fn, lambda call: model_fn_lib.TrainingRule(
          optimizer_interception.Interception(lambda opt: opt, int),
          lambda spec: spec), 'of_the_test', 'no wrapper')
  with tf.Graph().as_default():
    decorated(1.0, mode=mode, config=tf.estimator.RunConfig('unused'))
    assert bool(tf1.get_collection(
        tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP)) == waits
