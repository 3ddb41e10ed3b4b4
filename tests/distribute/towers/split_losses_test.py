# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses of every form in towers: value and gradients are one device's."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.towers import loss_forms
from tfplugin.distribute.towers import tower_strategy
from tfplugin.estimator import replicate

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings(
    'ignore:`tf.layers', 'ignore:.*BasicRNNCell')

_Rows = collections.namedtuple('_Rows', 'loss hidden labels mask weight')
_RANDOM = np.random.RandomState(0)
_X = _RANDOM.randn(7, 3).astype(np.float32)
_Y = _RANDOM.rand(7, 4).astype(np.float32)
_M = (_RANDOM.rand(7, 1) > .4).astype(np.float32)


def _model_fn(features, labels, mode, params):
  weight = tf1.get_variable('weight', [4, 4], initializer=(
      tf1.initializers.random_normal(seed=3)))
  hidden = tf1.layers.dense(
      features['x'], 4, tf.tanh, name='dense',
      kernel_initializer=tf1.initializers.random_normal(seed=1)) @ weight
  row = tf.reduce_sum(tf.square(hidden - labels), 1, keepdims=True)
  rows = _Rows(row, hidden, labels, features['mask'], weight)
  loss = params['loss'](rows)
  step = tf1.train.GradientDescentOptimizer(1.).minimize(loss)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def _step(model_fn, loss, known):
  """Returns the loss, and the variables after a step down the gradient."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.set_random_seed(1)
    x, y, m = (tf.constant(v) if known else tf1.placeholder_with_default(
        v, [None, v.shape[1]]) for v in (_X, _Y, _M))
    spec = model_fn({'x': x, 'mask': m}, y, 'train', {'loss': loss})
    session.run(tf1.global_variables_initializer())
    found = session.run(spec.loss)
    session.run(spec.train_op)
    return [found, *session.run(sorted(
        tf1.global_variables(), key=lambda variable: variable.name))]


def _in_towers(num_towers):
  return replicate.replicate_model_fn(
      _model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)])


def _in_strategy(num_towers):
  """Returns a model_fn that gives each tower of a strategy a batch."""
  strategy = tower_strategy.TowerStrategy(
      [f'/cpu:{i}' for i in range(num_towers)])

  def model_fn(features, labels, mode, params):
    batches = [
        tf.nest.map_structure(lambda x, rows=rows: x[rows], (features, labels))
        for rows in (slice(0, 2), slice(2, 3), slice(3, 7))]
    with strategy.scope():
      batch = strategy.experimental_distribute_values_from_function(
          lambda context: batches[context.replica_id_in_sync_group])
      return strategy.run(
          lambda batch: _model_fn(*batch, mode, params), args=(batch,))

  return model_fn


def _assert_same(loss, num_towers, known, make=_in_towers):
  # Sums of a few hundred float32 terms in another order.
  for found, expected in zip(_step(make(num_towers), loss, known),
                             _step(_model_fn, loss, known)):
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


_NAMES = list(loss_forms.LOSSES)
_CASES = {
    '2 towers, known': (_in_towers, 2, True),
    '3 towers, unknown': (_in_towers, 3, False),
    'strategy, known': (_in_strategy, 3, True),
    'strategy, unknown': (_in_strategy, 3, False),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize('case', _CASES)
@pytest.mark.parametrize('name', _NAMES)
def test_a_loss_equals_one_device(behavior, name, case):
  make, num_towers, known = _CASES[case]
  _assert_same(loss_forms.LOSSES[name], num_towers, known, make)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('number', range(len(_NAMES)))
def test_a_sum_of_two_equals_one_device(number):
  # Each loss once in front, with one of another kind.
  first, second = (loss_forms.LOSSES[_NAMES[i % len(_NAMES)]]
                   for i in (number, number + 41))
  _assert_same(lambda rows: first(rows) - .3 * second(rows), 3, number % 2)


@pytest.mark.parametrize('name', ('penalty', 'adversarial', 'hessian'))
@pytest.mark.parametrize('num_towers', (2, 3))
def test_gradients_by_rows_within_a_loss(behavior, name, num_towers):
  # Joining the gradients' rows must not count as an op of the model.
  _assert_same(loss_forms.LOSSES[name], num_towers, True)
