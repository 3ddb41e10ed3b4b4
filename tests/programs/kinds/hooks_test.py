# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks that build gradients when a training begins, in every form.

They take them by what a program has: the trained variables, and tensors by
name. The numbers are numpy's, at the values that the variable then has.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import wrapper_forms

tf1 = tf.compat.v1

_X = np.float32([[1, 2], [3, -1]])
_W = np.float32([[0.5], [-0.25]])
# In other strategies a variable has a copy for each replica, which TensorFlow
# gives to replicas alone.
_FORMS = [*wrapper_forms.DECORATORS, 'elastic_strategy', 'drop_stale_strategy',
          'packed_strategy', 'clip_drop_stale', 'tower_strategy']


def _loss_of(features):
  """Returns the loss, from tensors that a hook finds by their names."""
  w = tf1.get_variable('w', initializer=_W)
  hidden = tf.tanh(tf.identity(features, name='inputs') @ w, name='hidden')
  return tf.reduce_mean(tf.square(hidden), name='objective')


def _with(wrap):
  """Returns a model_fn with a wrapped optimizer."""

  def model_fn(features, labels, mode):
    del labels
    loss = _loss_of(features)
    optimizer = wrap(tf1.train.GradientDescentOptimizer(0.5))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=optimizer.minimize(loss, tf1.train.get_global_step()))

  return model_fn


_model_fn = _with(lambda optimizer: optimizer)


def _elastic_by_hand(features, labels, mode):
  del labels
  getter = tfplugin.ElasticAverageCustomGetter('')
  with getter.scope():
    loss = _loss_of(features)
  optimizer = tfplugin.ElasticAverageOptimizer(
      tf1.train.GradientDescentOptimizer(0.5), 1, getter,
      communication_period=1, moving_rate=wrapper_forms.MOVING_RATE, rho=0.0)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      scaffold=tf1.train.Scaffold(saver=optimizer.swapping_saver()),
      training_hooks=[optimizer.make_session_run_hook(True, 0)])


# Model_fns with an optimizer of ours.
_BY_HAND = {
    'drop_stale_optimizer': _with(
        lambda optimizer: tfplugin.DropStaleGradientOptimizer(optimizer, 10)),
    'clip_optimizer': _with(
        lambda optimizer: tfplugin.VariableClippingOptimizer(
            optimizer, {'w': []}, 1e6)),
    'elastic_optimizer': _elastic_by_hand,
}


def _input_fn(batches=None):
  return lambda: tf.data.Dataset.from_tensors((_X, _X[:, :1])).repeat(batches)


def _by_hand(w, x):
  """Returns the gradients by the weight, the inputs and the hidden values."""
  hidden = np.tanh(x @ w)
  by_hidden = 2 * hidden / len(x)
  before = by_hidden * (1 - hidden**2)
  return x.T @ before, before @ w.T, by_hidden


def _second_by_hand(w, x):
  """Returns the product of the second derivatives and ones."""
  hidden = np.tanh(x @ w)
  slope = (1 - hidden**2) * (1 - 3 * hidden**2) * 2 / len(x)
  return x.T @ (slope * (x @ np.ones_like(w)))


class _Gradients(tf1.train.SessionRunHook):
  """Takes gradients before each step."""

  def __init__(self):
    self.seen = []

  def begin(self):
    graph = tf1.get_default_graph()
    loss, *tensors = (graph.get_tensor_by_name(f'{name}:0')
                      for name in ('objective', 'inputs', 'hidden'))
    w, = tf1.trainable_variables()
    gradients = tf.gradients(loss, [w, *tensors])
    self._fetches = {'w': w.value(), 'gradients': gradients, 'second':
                     tf.gradients(tf.reduce_sum(gradients[0]), w)[0]}

  def before_run(self, run_context):
    self.seen.append(run_context.session.run(self._fetches))


def _rows_of(form):
  """Returns the rows that the named tensors have."""
  if form == 'cross_shard':
    return _X[:1]  # The first shard's.
  return np.concatenate([_X, _X]) if form == 'tower_strategy' else _X


@pytest.mark.sampled(5)
@pytest.mark.parametrize('form', [*_FORMS, *_BY_HAND])
def test_a_hook_takes_gradients(form, tmp_path, behavior):
  del behavior
  hook = _Gradients()
  estimator = wrapper_forms.estimator(
      form, _BY_HAND.get(form, _model_fn), tmp_path)
  estimator.train(_input_fn(), max_steps=3, hooks=[hook])
  x = _rows_of(form)
  assert len(hook.seen) == 3
  assert not np.array_equal(hook.seen[0]['w'], hook.seen[2]['w'])
  for seen in hook.seen:
    for found, expected in zip(seen['gradients'], _by_hand(seen['w'], x)):
      np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(seen['second'], _second_by_hand(seen['w'], x),
                               rtol=1e-4, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', [*wrapper_forms.DECORATORS, 'tower_strategy'])
def test_a_hook_takes_gradients_while_a_model_is_evaluated(
    form, tmp_path, behavior):
  del behavior
  estimator = wrapper_forms.estimator(form, _model_fn, tmp_path)
  estimator.train(_input_fn(), max_steps=1)
  hook = _Gradients()
  estimator.evaluate(_input_fn(2), steps=1, hooks=[hook])
  for found, expected in zip(hook.seen[0]['gradients'],
                             _by_hand(hook.seen[0]['w'], _X)):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
