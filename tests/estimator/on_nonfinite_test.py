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


def _model_fn(wrap=lambda optimizer: optimizer):
  def model_fn(features, labels, mode):
    del labels
    weight = tf1.get_variable('weight', initializer=3.0)
    loss = weight * features
    optimizer = wrap(tf1.train.MomentumOptimizer(RATE, MOMENTUM))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
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
  (events,) = tmp_path.glob('events*')
  tags = {value.tag for event in tf1.train.summary_iterator(str(events))
          for value in event.summary.value}
  assert tags & {'Gradients_not_finite', 'stale_gradients/nonfinite'}


@pytest.mark.parametrize('form', FORMS)
def test_drop_stale_raises_with_worker_step_and_variable(
    behavior, tmp_path, form):
  model_fn, strategy = _drop_stale(form, 'raise')
  with pytest.raises(tf.errors.InvalidArgumentError, match=(
      '(?s)worker:0, at global step.*1.*update of.*weight:0')):
    _train(model_fn, tmp_path, strategy)


@pytest.mark.parametrize('form', FORMS)
def test_drop_stale_applies_by_default(tmp_path, form):
  model_fn, strategy = _drop_stale(form, 'apply')
  weight, step, counts = _train(model_fn, tmp_path, strategy)
  assert math.isnan(weight) and step == 3
  assert counts == {'num_applied': 3, 'num_dropped': 0}


@pytest.mark.parametrize('form', FORMS)
def test_another_word_is_refused(form):
  with pytest.raises(ValueError, match="`on_nonfinite`.*Received: 'skip'"):
    model_fn, _ = _drop_stale(form, 'skip')
    with tf.Graph().as_default():
      tf1.train.get_or_create_global_step()
      model_fn(tf.constant(1.0), None, 'train')
