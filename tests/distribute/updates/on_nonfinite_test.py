# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What becomes of a NaN, in each form of each wrapper that is asked."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin import estimator as decorators

tf1 = tf.compat.v1

RATE, MOMENTUM = 0.5, 0.5
FEATURES = (1.0, math.nan, 2.0)
# The gradient is the feature: v = 1, then v = .5 * 1 + 2 = 2.5.
DROPPED = 3.0 - RATE * 1.0 - RATE * 2.5


def _model_fn(wrap=lambda optimizer: optimizer, breaks_copy=False):
  def model_fn(features, labels, mode):
    del labels
    weight = tf1.get_variable('weight', initializer=3.0)
    loss = weight * features
    optimizer = wrap(tf1.train.MomentumOptimizer(RATE, MOMENTUM))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    if breaks_copy:
      with tf.control_dependencies([train_op]):
        train_op = tf.group(weight.assign(math.inf))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


class _LastCounts(tf1.train.SessionRunHook):
  """Reads the local counters of each step."""

  def begin(self):
    self.counts = {}
    self._local = {v.op.name.split('/')[-1]: v.value()
                   for v in tf1.local_variables() if '/num_' in v.op.name}

  def after_run(self, run_context, run_values):
    self.counts = run_context.session.run(self._local)


def _train(model_fn, tmp_path, strategy=None):
  """Returns the weight, the step and the counts after all features."""
  hook = _LastCounts()
  estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      str(tmp_path), train_distribute=strategy))
  estimator.train(
      lambda: tf.data.Dataset.from_tensor_slices(list(FEATURES)), hooks=[hook])
  return (float(estimator.get_variable_value('weight')),
          int(estimator.get_variable_value('global_step')), hook.counts)


def _tags(directory):
  (events,) = directory.glob('events*')
  return {value.tag for event in tf1.train.summary_iterator(str(events))
          for value in event.summary.value}


def _drop_stale(form, policy):
  """Returns the arguments of `_train`."""
  if form == 'optimizer':
    return _model_fn(lambda opt: tfplugin.DropStaleGradientOptimizer(
        opt, 3, on_nonfinite=policy)), None
  if form == 'decorator':
    return decorators.drop_stale_gradients(
        _model_fn(), staleness=3, on_nonfinite=policy), None
  return _model_fn(), distribute.DropStaleGradientStrategy(
      staleness=3, on_nonfinite=policy)


def _elastic(form, policy, make=_model_fn):
  """With one copy, period 1 and rate 1/4; the arguments of `_train`."""
  settings = {'communication_period': 1, 'moving_rate': 0.25, 'rho': 0.0,
              'on_nonfinite': policy}
  if form == 'decorator':
    return decorators.elastic_average(
        make(), **settings), None
  if form == 'strategy':
    return make(), distribute.ElasticAverageStrategy(**settings)

  def model_fn(features, labels, mode):
    getter = tfplugin.ElasticAverageCustomGetter('')
    made = []

    def wrap(optimizer):
      made.append(tfplugin.ElasticAverageOptimizer(
          optimizer, 1, getter, **settings))
      return made[0]

    with getter.scope():
      spec = make(wrap)(features, labels, mode)
    return spec._replace(
        training_hooks=[made[0].make_session_run_hook(True, 0)],
        scaffold=tf1.train.Scaffold(saver=made[0].swapping_saver()))

  return model_fn, None


FORMS = ('optimizer', 'decorator', 'strategy')


@pytest.fixture(autouse=True)
def nan_losses_pass(monkeypatch):
  """Estimator ends a training whose loss is a NaN before anything is seen."""
  monkeypatch.setattr(tf1.train.NanTensorHook, 'after_run',
                      lambda self, run_context, run_values: None)


@pytest.mark.parametrize('form', FORMS)
def test_drop_stale_drops_and_counts_apart(behavior, tmp_path, form):
  model_fn, strategy = _drop_stale(form, 'drop')
  weight, step, counts = _train(model_fn, tmp_path, strategy)
  assert (weight, step) == (DROPPED, 2)
  assert counts == {'num_applied': 2, 'num_dropped': 0, 'num_nonfinite': 1}
  assert _tags(tmp_path) & {'Gradients_not_finite', 'stale_gradients/nonfinite'}


@pytest.mark.parametrize('form', FORMS)
def test_drop_stale_raises_with_worker_step_and_variable(
    behavior, tmp_path, form):
  model_fn, strategy = _drop_stale(form, 'raise')
  with pytest.raises(tf.errors.InvalidArgumentError, match=(
      '(?s)worker:0, at step.*1.*update of.*weight:0')):
    _train(model_fn, tmp_path, strategy)


@pytest.mark.parametrize('form', FORMS)
def test_drop_stale_applies_by_default(tmp_path, form):
  model_fn, strategy = _drop_stale(form, 'apply')
  weight, step, counts = _train(model_fn, tmp_path, strategy)
  assert math.isnan(weight) and step == 3
  assert counts == {'num_applied': 3, 'num_dropped': 0}


@pytest.mark.parametrize('make', [_drop_stale, _elastic])
@pytest.mark.parametrize('form', FORMS)
def test_another_word_is_refused(make, form):
  with pytest.raises(ValueError, match="`on_nonfinite`.*Received: 'skip'"):
    model_fn, _ = make(form, 'skip')
    with tf.Graph().as_default():
      tf1.train.get_or_create_global_step()
      model_fn(tf.constant(1.0), None, 'train')


@pytest.mark.parametrize('form', FORMS)
def test_elastic_leaves_copy_and_centre_alone_and_counts(
    behavior, tmp_path, form):
  model_fn, strategy = _elastic(form, 'drop')
  center, step, counts = _train(model_fn, tmp_path, strategy)
  # The copy steps and then moves a quarter towards the centre, which starts
  # at 3: copy 2.5, d = -1/8, copy 2.625, centre 2.875; with v = 2.5
  # copy 1.375, d = -3/8, centre 2.5.
  assert (center, step) == (2.5, 2)
  assert counts == {'num_nonfinite': 1}
  assert 'elastic_average/nonfinite' in _tags(tmp_path)


@pytest.mark.parametrize('form', FORMS)
def test_elastic_raises_with_worker_step_and_variable(
    behavior, tmp_path, form):
  model_fn, strategy = _elastic(form, 'raise')
  with pytest.raises(tf.errors.InvalidArgumentError, match=(
      '(?s)worker:0, at step.*1.*update of.*weight')):
    _train(model_fn, tmp_path, strategy)


@pytest.mark.parametrize('form', FORMS)
def test_elastic_applies_by_default(tmp_path, form):
  model_fn, strategy = _elastic(form, 'apply')
  center, step, counts = _train(model_fn, tmp_path, strategy)
  assert math.isnan(center) and step == 3 and not counts


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_a_copy_that_is_not_finite_does_not_reach_the_centre(
    behavior, tmp_path, form):
  model_fn, strategy = _elastic(
      form, 'drop', lambda: _model_fn(breaks_copy=True))
  center, step, counts = _train(model_fn, tmp_path, strategy)
  assert (center, step) == (3.0, 0)
  assert counts['num_nonfinite'] >= 2  # Exchanges; and a gradient.


def _applied_twice(wrap=lambda optimizer: optimizer):
  """One optimizer for two players, as in some GANs."""
  def model_fn(features, labels, mode):
    del labels
    weight, other = (tf1.get_variable(name, initializer=3.0)
                     for name in ('weight', 'other'))
    optimizer = wrap(tf1.train.GradientDescentOptimizer(RATE))
    finite = tf.where(tf.math.is_nan(features), 1.0, tf.minimum(features, 1.0))
    first = optimizer.apply_gradients(
        [(finite, other)], tf1.train.get_global_step())
    with tf.control_dependencies([first]):
      train_op = optimizer.apply_gradients([(features, weight)])
    return tf.estimator.EstimatorSpec(
        mode, loss=features * 0.0, train_op=train_op)

  return model_fn


@pytest.mark.parametrize('form, center', [
    # The copy and the centre: 2.625, 2.875; then the copy stays, or both move
    # with `other`: 2.6875, 2.8125; then a quarter of 2.875 - 1.625 or of
    # 2.8125 - 1.6875.
    ('optimizer', 2.5625), ('decorator', 2.53125), ('strategy', 2.53125)])
def test_elastic_checks_each_call_of_an_optimizer(
    behavior, tmp_path, form, center):
  model_fn, strategy = _elastic(form, 'drop', _applied_twice)
  assert _train(model_fn, tmp_path, strategy)[:2] == (center, 3)
