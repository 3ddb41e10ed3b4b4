# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""BERT's kind of program, unchanged, under every decorator and strategy.

What each has to come to is computed without tfplugin: by the plain program on
one device, by numpy between its steps (the elastic rule, the clip), or by the
plain program on each half of the batch (shards, which sum their gradients).
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.programs import bert
from tfplugin import distribute
from tfplugin import estimator

tf1 = tf.compat.v1

STEPS, PERIOD, RATE, MAX_NORM = 4, 2, 0.25, 0.6
RULES = {'word_embeddings': 1, 'kernel': 0}
DEVICES = ['/cpu:0', '/cpu:1']
ROWS = 4


def _dataset(rows):
  return bert.input_fn().unbatch().batch(rows)


def _clipped(values, number):
  """Clips rows of the table and columns of kernels, by numpy, after a step."""
  result = dict(values)
  if not number:
    return result
  for name, value in values.items():
    if name == 'word_embeddings' or name.endswith('kernel'):
      axis = 1 if name == 'word_embeddings' else 0
      norms = np.linalg.norm(value, axis=axis, keepdims=True)
      result[name] = np.where(
          norms > MAX_NORM, value * MAX_NORM / np.maximum(norms, 1e-9), value)
  return result


class _Elastic:
  """Moves copies and their centre, by numpy; all copies are alike."""

  def __init__(self, num_copies):
    self.num_copies = num_copies
    self.centers = None

  def __call__(self, values, number):
    trained = {n: v for n, v in values.items() if 'adam' not in n}
    if not number:
      self.centers = trained
    if not number or number % PERIOD:
      return values
    moves = {n: RATE * (v - self.centers[n]) for n, v in trained.items()}
    self.centers = {n: c + self.num_copies * moves[n]
                    for n, c in self.centers.items()}
    return {**values, **{n: v - moves[n] for n, v in trained.items()}}


def _by_hand(after_step=lambda values, number: values, halves=1):
  """Trains the plain program; returns the values of its variables.

  Args:
    after_step: Changes the values of all variables; gets the number of steps
      that were made.
    halves: Into how many parts the batch is split, whose gradients are summed.
  """
  with tf.Graph().as_default():
    features, labels = tf1.data.make_one_shot_iterator(
        _dataset(ROWS)).get_next()
    step = tf1.train.create_global_step()
    gradients = []
    with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
      for x, y in zip(tf.split(features, halves), tf.split(labels, halves)):
        loss = bert.model_fn(x, y, tf.estimator.ModeKeys.EVAL).loss
        own = tf1.gradients(loss, tf1.trainable_variables())
        gradients.append([tf.convert_to_tensor(g) for g in
                          tf.clip_by_global_norm(own, 1.0)[0]])
    sums = [tf.add_n(parts) for parts in zip(*gradients)]
    train_op = bert.DecayedAdam(bert.RATE).apply_gradients(
        zip(sums, tf1.trainable_variables()), step)
    variables = [v for v in tf1.global_variables() if v is not step]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for number in range(STEPS + 1):
        if number:
          session.run(train_op)
        names = [v.op.name for v in variables]
        values = after_step(dict(zip(names, session.run(
            [v.read_value() for v in variables]))), number)
        for variable in variables:
          variable.load(values[variable.op.name], session)
  return values


def _elastic_by_hand(num_copies):
  rule = _Elastic(num_copies)
  values = _by_hand(rule)
  return {**values, **rule.centers}


REFERENCES = {
    'plain': _by_hand,
    'clipped': lambda: _by_hand(_clipped),
    'halves': lambda: _by_hand(halves=2),
    'halves clipped': lambda: _by_hand(_clipped, halves=2),
    'elastic': lambda: _elastic_by_hand(1),
    'elastic, two copies': lambda: _elastic_by_hand(2),
}
_ELASTIC = dict(communication_period=PERIOD, moving_rate=RATE)


def _clipping(make_base):
  return lambda: distribute.VariableClippingStrategy(
      make_base(), RULES, MAX_NORM)


def _mirrored():
  return tf.distribute.MirroredStrategy(
      DEVICES, tf.distribute.ReductionToOneDevice())


def _towers():
  return distribute.TowerStrategy(DEVICES)


def _drop_stale():
  return distribute.DropStaleGradientStrategy(staleness=100)


def _cross_shard():
  return distribute.CrossShardStrategy(DEVICES)


# name: (decorate, reference)
DECORATORS = {
    'drop_stale_gradients': (
        lambda fn: estimator.drop_stale_gradients(fn, staleness=100), 'plain'),
    'clip_variables': (lambda fn: estimator.clip_variables(
        fn, rules=RULES, max_norm=MAX_NORM), 'clipped'),
    'elastic_average': (
        lambda fn: estimator.elastic_average(fn, **_ELASTIC), 'elastic'),
    'replicate_model_fn': (lambda fn: tfplugin.replicate_model_fn(
        fn, devices=DEVICES), 'plain'),
    'cross_shard': (
        lambda fn: estimator.cross_shard(fn, devices=DEVICES), 'halves'),
    'clip above drop': (lambda fn: estimator.clip_variables(
        estimator.drop_stale_gradients(fn, staleness=100), rules=RULES,
        max_norm=MAX_NORM), 'clipped'),
    'cross_shard above clip': (lambda fn: estimator.cross_shard(
        estimator.clip_variables(fn, rules=RULES, max_norm=MAX_NORM),
        devices=DEVICES), 'halves clipped'),
    'replicate above drop': (lambda fn: tfplugin.replicate_model_fn(
        estimator.drop_stale_gradients(fn, staleness=100), devices=DEVICES),
                             'plain'),
}
# name: (make the strategy, rows of a replica, reference)
STRATEGIES = {
    'drop stale': (_drop_stale, ROWS, 'plain'),
    'elastic': (lambda: distribute.ElasticAverageStrategy(**_ELASTIC), ROWS,
                'elastic'),
    'elastic, devices': (lambda: distribute.ElasticAverageStrategy(
        devices=DEVICES, **_ELASTIC), ROWS, 'elastic, two copies'),
    'towers': (_towers, ROWS // 2, 'plain'),
    'cross shard': (_cross_shard, ROWS // 2, 'halves'),
    'clipping over one device': (_clipping(
        lambda: tf.distribute.OneDeviceStrategy('/cpu:0')), ROWS, 'clipped'),
    'clipping over drop stale': (_clipping(_drop_stale), ROWS, 'clipped'),
    'clipping over towers': (_clipping(_towers), ROWS // 2, 'clipped'),
    'clipping over mirrored': (
        _clipping(_mirrored), ROWS // 2, 'halves clipped'),
    'clipping over cross shard': (
        _clipping(_cross_shard), ROWS // 2, 'halves clipped'),
}


@pytest.fixture(scope='module', name='references')
def fixture_references():
  return {name: make() for name, make in REFERENCES.items()}


def _train(model_fn, model_dir, rows=ROWS, strategy=None, steps=STEPS):
  config = tf.estimator.RunConfig(
      str(model_dir), train_distribute=strategy, log_step_count_steps=None,
      session_config=tf1.ConfigProto(
          device_count={'CPU': 4}, allow_soft_placement=True))
  trained = tf.estimator.Estimator(model_fn, config=config)
  trained.train(lambda: _dataset(rows), steps=steps)
  return {name: trained.get_variable_value(name)
          for name in trained.get_variable_names()}


def _assert_close(values, expected):
  added = {'global_step', 'stale_counter'}
  assert set(values) - added == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        values[name], value, atol=2e-6, err_msg=name)


def test_references_differ_from_each_other(references):
  values = [r['word_embeddings'] for r in references.values()]
  for number, value in enumerate(values):
    for other in values[:number]:
      assert np.abs(value - other).max() > 1e-3


@pytest.mark.parametrize('name', DECORATORS)
def test_decorator(behavior, tmp_path, references, name):
  decorate, reference = DECORATORS[name]
  _assert_close(_train(decorate(bert.model_fn), tmp_path),
                references[reference])


@pytest.mark.parametrize('name', STRATEGIES)
def test_strategy(behavior, tmp_path, references, name):
  make, rows, reference = STRATEGIES[name]
  # Elastic strategies count communications, the model's own advance too.
  steps = STEPS // PERIOD if 'elastic' in reference else STEPS
  _assert_close(_train(bert.model_fn, tmp_path, rows, make(), steps),
                references[reference])
