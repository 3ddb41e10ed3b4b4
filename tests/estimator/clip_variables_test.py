# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decorator that clips variables."""

from __future__ import annotations

import functools
import logging as std_logging

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.estimator import clip_variables

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN
RULES = {'weight': 0}


def _explicit(optimizer):
  return tfplugin.VariableClippingOptimizer(optimizer, RULES, 0.5)


def _decorated(model_fn, max_norm=0.5):
  return clip_variables(model_fn, rules=RULES, max_norm=max_norm)


@pytest.mark.parametrize('style', decorated_models.STYLES)
def test_equals_the_wrapper_bit_for_bit(behavior, style):
  values = decorated_models.train(
      _decorated(decorated_models.regression(style)))
  decorated_models.assert_equal(values, decorated_models.train(
      decorated_models.regression(style, wrap=_explicit)))
  assert np.linalg.norm(values['weight']) == pytest.approx(0.5)


def test_rules_that_can_be_read_once_hold_for_every_optimizer():
  model_fn = decorated_models.regression('two_optimizers')
  decorated_models.assert_equal(
      decorated_models.train(clip_variables(
          model_fn, rules=iter([('weight', iter([0]))]), max_norm=0.5)),
      decorated_models.train(_decorated(model_fn)))


@pytest.mark.parametrize('style', ('minimize', 'two_optimizers'))
def test_wrapper_in_the_model_fn_is_not_doubled(style):
  explicit = decorated_models.regression(style, wrap=_explicit)
  decorated_models.assert_equal(
      decorated_models.train(_decorated(explicit, max_norm=0.1)),
      decorated_models.train(explicit))


def _keras_dense():
  return tf1.keras.layers.Dense(2, use_bias=False, name='layer')


def _tf_dense():
  return tf1.layers.Dense(2, use_bias=False, name='layer')


@pytest.mark.parametrize('make_layer', (_keras_dense, _tf_dense))
def test_layers_against_numpy(behavior, make_layer):
  """One step of SGD, then columns of length at most 1."""
  start = np.array([[3.0, 0.1], [4.0, 0.2]], np.float32)

  @clip_variables(rules={'layer/kernel': 0}, max_norm=1.0)
  def model_fn(features, labels, mode):
    del labels
    layer = make_layer()
    layer.kernel_initializer = tf1.constant_initializer(start)
    loss = tf.reduce_sum(layer(features))
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        optimizer.minimize(loss, tf1.train.get_global_step())))

  def dataset():
    return tf.data.Dataset.from_tensors((np.ones([1, 2], np.float32), 0))

  updated = start - 0.1
  updated[:, 0] /= np.linalg.norm(updated[:, 0])
  values = decorated_models.train(model_fn, 1, dataset)
  np.testing.assert_allclose(values['layer/kernel'], updated, rtol=1e-6)


def test_sparse_gradient_against_numpy(behavior):
  @clip_variables(rules={'table': 1}, max_norm=2.0)
  def model_fn(features, mode):
    table = tf.Variable([[6.0, 8.0], [0.3, 0.4], [6.0, 8.0]], name='table')
    loss = tf.reduce_sum(tf.gather(table, features))
    optimizer = tf1.train.GradientDescentOptimizer(0.5)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        optimizer.minimize(loss, tf1.train.get_global_step())))

  def dataset():
    return tf.data.Dataset.from_tensors((np.array([0, 1, 0]), 0))

  # Row 0 occurs twice, row 2 not at all.
  row = np.array([5.0, 7.0])
  values = decorated_models.train(model_fn, 1, dataset)
  np.testing.assert_allclose(
      values['table'], [2 * row / np.linalg.norm(row), [-0.2, -0.1], [6., 8.]],
      rtol=1e-6)


def test_partitioned_embedding_in_a_canned_estimator(tmp_path):
  """A linear model of a sparse column: clipped to 1e-3 in every row."""
  column = tf1.feature_column.categorical_column_with_identity('id', 6)
  canned = tf1.estimator.LinearClassifier(
      [column], optimizer=tf1.train.FtrlOptimizer(0.5),
      partitioner=tf1.fixed_size_partitioner(2))
  estimator = tf.estimator.Estimator(
      clip_variables(canned.model_fn, rules={'linear_model/id': 1},
                     max_norm=1e-3), str(tmp_path))

  def input_fn():
    return tf.data.Dataset.from_tensors(
        ({'id': np.arange(6)}, np.arange(6) % 2)).repeat(2)

  estimator.train(input_fn)
  weights = estimator.get_variable_value('linear/linear_model/id/weights')
  np.testing.assert_allclose(np.abs(weights), np.full([6, 1], 1e-3), rtol=1e-6)
  assert estimator.evaluate(input_fn)['global_step'] == 2


def test_forms_of_use():
  class Model:

    @clip_variables(rules=RULES, max_norm=0.5)
    def method(self, features, labels, mode):
      return decorated_models.regression()(features, labels, mode)

  model_fn = decorated_models.regression()
  expected = decorated_models.train(_decorated(model_fn))
  predicate = clip_variables(
      rules=[(lambda name: name == 'weight', 0)], max_norm=0.5)
  for form in (Model().method, predicate(model_fn),
               _decorated(functools.partial(model_fn))):
    decorated_models.assert_equal(decorated_models.train(form), expected)


@pytest.mark.parametrize('arguments, error, match', (
    (dict(rules={}, max_norm=1.0), ValueError, '`rules` must name'),
    (dict(rules={'w': 'a'}, max_norm=1.0), TypeError, 'dim'),
    (dict(rules={'w': 0}, max_norm=0), ValueError, '`max_norm`'),
    (dict(rules={'w': 0}, max_norm='1'), TypeError, '`max_norm`'),
    (dict(rules={'w': 0}, max_norm=1.0, rows='some'), ValueError, '`rows`')))
def test_bad_arguments_are_refused_where_they_are_given(
    arguments, error, match):
  with pytest.raises(error, match=match):
    clip_variables(**arguments)


def test_rule_that_selects_nothing_names_what_is_near():
  decorated = clip_variables(decorated_models.regression(),
                             rules={'weigth': 0}, max_norm=1.0)
  with pytest.raises(ValueError, match='`rules`.*(?s:.*)weight'):
    decorated_models.train(decorated)


def _two_tables(wrap=lambda optimizer: optimizer, is_frozen=True):
  """Returns a model_fn with a table for each of one or two optimizers."""

  def model_fn(features, mode):
    del features
    tables = [tf1.get_variable(name, initializer=[[3.0, 4.0]])
              for name in ('used', 'frozen')]
    loss = 0.0 * tf.reduce_sum(tables[0] + tables[1])
    step = tf1.train.get_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(*[
        wrap(tf1.train.GradientDescentOptimizer(1.0)).minimize(
            loss, step, var_list=[table])
        for table in tables[:1 if is_frozen else 2]]))

  return model_fn


@pytest.mark.parametrize('rules, is_frozen, named', (
    ({'used': 1, 'frozen': 1}, True, "'frozen', which selects ['frozen']"),
    ({'used': 1, 'frozen': 1}, False, None), ({'': 1}, True, None)))
def test_rule_that_no_optimizer_uses_is_named(
    behavior, caplog, rules, is_frozen, named):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  values = decorated_models.train(
      clip_variables(_two_tables(is_frozen=is_frozen), rules=rules,
                     max_norm=1.0), 1)
  np.testing.assert_allclose(values['used'], [[0.6, 0.8]], rtol=1e-6)
  messages = [record.getMessage() for record in caplog.records
              if 'clips nothing' in record.getMessage()]
  assert len(messages) == bool(named)
  assert all(named in message and '`rules`' in message and
             '`var_list`' in message for message in messages)


def test_rules_of_wrappers_in_the_model_fn_are_not_named(caplog):
  caplog.set_level(std_logging.WARNING, logger='tensorflow')
  decorated_models.train(clip_variables(
      _two_tables(lambda optimizer: tfplugin.VariableClippingOptimizer(
          optimizer, {'used': 1}, 1.0)), rules={'frozen': 1}, max_norm=1.0), 1)
  assert 'clips nothing' not in caplog.text


def test_the_bound_may_be_a_tensor(behavior):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    bound = tf1.placeholder(tf.float32, [])
    spec = decorated_models.call(
        _decorated(decorated_models.regression(
            make_optimizer=lambda: tf1.train.GradientDescentOptimizer(0.0)),
                   bound), TRAIN, *map(np.float32, decorated_models.first_batch(
                       )))
    weight, _ = tf1.trainable_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for value, norm in ((9.0, 0.3125**0.5), (0.25, 0.25)):
        session.run(spec.train_op, {bound: value})
        # The direction of [0.5, -0.25] stays.
        np.testing.assert_allclose(
            session.run(weight), [[norm * 0.8**0.5], [-norm * 0.2**0.5]],
            rtol=1e-6)
      assert session.run(step) == 2
