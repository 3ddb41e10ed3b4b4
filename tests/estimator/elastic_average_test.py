# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decorator for elastic averaging."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.estimator import elastic_average

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN
SETTINGS = dict(communication_period=3, moving_rate=0.25)
CONFIG = dict(save_summary_steps=None, log_step_count_steps=None)


def _explicit(style='minimize', num_worker=1, period=3, rho=0.0, **settings):
  """The same model, with everything that the decorator adds by hand."""

  def model_fn(features, labels, mode):
    getter = tfplugin.ElasticAverageCustomGetter('')
    optimizers = []

    def wrap(optimizer):
      optimizers.append(tfplugin.ElasticAverageOptimizer(
          optimizer, num_worker, getter, period, moving_rate=0.25, rho=rho,
          **settings))
      return optimizers[-1]

    with getter.scope():
      spec = decorated_models.regression(style, wrap=wrap)(
          features, labels, mode)
    saver = optimizers[0].swapping_saver()
    return spec._replace(
        scaffold=tf1.train.Scaffold(saver=saver),
        training_hooks=tuple(
            each.make_session_run_hook(True, 0) for each in optimizers))

  return model_fn


@pytest.mark.parametrize('style', decorated_models.STYLES)
def test_equals_the_wrapper_bit_for_bit(behavior, style):
  values = decorated_models.train(elastic_average(
      decorated_models.regression(style), **SETTINGS))
  explicit = decorated_models.train(_explicit(style))
  # A wrapper by hand has a counter for each optimizer.
  explicit.pop('local_step_1', None)
  decorated_models.assert_equal(values, explicit)
  assert values['global_step'] == 1
  assert not np.array_equal(values['weight'],
                            values['global_center_variable/weight'])


@pytest.mark.parametrize('settings', (
    dict(rho=0.5), dict(update_order='elastic_first'),
    dict(count_steps='local'), dict(rho=None), dict(synchronous=True)),
    ids=str)
def test_settings_reach_the_wrapper(behavior, settings):
  values = decorated_models.train(elastic_average(
      decorated_models.regression(), **SETTINGS, **settings))
  decorated_models.assert_equal(
      values, decorated_models.train(_explicit(**settings)))


def test_against_the_formula(behavior):
  """Gradient -1, rate 1: the copy climbs, the centre follows."""
  local, center, trace = 0.0, 0.0, []
  for step in range(1, 8):
    local += 1.0
    if step % 3 == 0:
      difference = 0.25 * (local - center)
      local, center = local - difference, center + difference
    trace.append((local, center))

  @elastic_average(num_worker=4, **SETTINGS)
  def model_fn(features, mode):
    del features
    w = tf.Variable(0.0, name='w')
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    return tf.estimator.EstimatorSpec(mode, loss=-1.0 * w, train_op=(
        optimizer.minimize(-1.0 * w, tf1.train.get_global_step())))

  for steps in (2, 3, 7):
    values = decorated_models.train(model_fn, steps)
    assert (values['w'], values['global_center_variable/w']
            ) == trace[steps - 1]


def test_moving_average_after_the_update_is_in_the_checkpoint(
    behavior, tmp_path):
  del behavior

  @elastic_average(communication_period=2, moving_rate=0.25)
  def model_fn(features, mode):
    w = tf1.get_variable('w', initializer=2.0)
    loss = w * features
    optimizer = tf1.train.GradientDescentOptimizer(0.5)
    update = optimizer.minimize(loss, tf1.train.get_global_step())
    with tf.control_dependencies([update]):
      train_op = tf.train.ExponentialMovingAverage(0.5).apply([w])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path), tf.estimator.RunConfig(**CONFIG))
  center = average = 2.0
  for _ in range(2):
    estimator.train(lambda: tf.data.Dataset.from_tensors(1.0).repeat(3))
    local = center  # A worker starts from the centre.
    for step in (1, 2, 3):
      local -= 0.5
      # It is part of the step, which ends with the communication.
      average = 0.5 * average + 0.5 * local
      if step == 2:
        difference = 0.25 * (local - center)
        local, center = local - difference, center + difference
    assert estimator.get_variable_value('w') == center
    assert estimator.get_variable_value(
        'w/ExponentialMovingAverage') == pytest.approx(average)


def test_default_rate_counts_the_workers():
  values = decorated_models.train(elastic_average(
      decorated_models.regression(), num_worker=3, communication_period=2), 2)
  other = decorated_models.train(elastic_average(
      decorated_models.regression(), num_worker=1, communication_period=2,
      moving_rate=0.9 / 2 / 3), 2)
  decorated_models.assert_equal(values, other)


def test_wrapper_in_the_model_fn_is_not_doubled(behavior):
  decorated_models.assert_equal(
      decorated_models.train(elastic_average(
          _explicit(), communication_period=1)),
      decorated_models.train(_explicit()))


def test_wrapper_for_half_of_the_model_is_refused():
  @elastic_average
  def model_fn(features, labels, mode):
    getter = tfplugin.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=[[0.0], [0.0]])
    other = tf1.get_variable('other', initializer=1.0)
    loss = tf.reduce_mean(features @ w - labels) * other
    optimizer = tfplugin.ElasticAverageOptimizer(
        decorated_models.momentum(), 1, getter, rho=0.0)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        optimizer.minimize(loss, tf1.train.get_global_step(), [w])))

  with pytest.raises(ValueError, match='the variable other'):
    decorated_models.train(model_fn)


def _layered(features, labels, mode):
  """Batch norm of Keras and a dense layer of tf.layers."""
  hidden = tf1.keras.layers.BatchNormalization(momentum=0.5, name='norm')(
      features, training=mode == TRAIN)
  loss = tf.reduce_mean(tf.square(
      tf1.layers.dense(hidden, 1, name='out',
                       kernel_initializer=tf1.ones_initializer()) - labels))
  train_op = None
  if mode == TRAIN:
    train_op = tf1.train.AdamOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _estimator(model_fn, directory, **config):
  return tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      model_dir=str(directory), save_checkpoints_steps=100, **CONFIG, **config))


def _input_fn():
  return decorated_models.batches()


def _values(estimator):
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


def test_checkpoints_are_those_of_the_plain_model(behavior, tmp_path):
  elastic = _estimator(
      elastic_average(_layered, communication_period=2), tmp_path / 'a')
  plain = _estimator(_layered, tmp_path / 'b')
  for estimator in (elastic, plain):
    estimator.train(_input_fn)
  values = _values(elastic)
  assert sorted(values) == sorted(_values(plain))
  assert values['global_step'] == 2
  # Restart: centre and the chief's Adam state are there again.
  elastic.train(_input_fn, steps=1)
  assert _values(elastic)['global_step'] == 3
  assert _values(elastic)['beta1_power'] == pytest.approx(0.9**(4 + 1 + 2))
  # The plain model evaluates and goes on from the centre.
  metrics = elastic.evaluate(_input_fn)
  other = _estimator(_layered, tmp_path / 'a')
  assert other.evaluate(_input_fn) == metrics
  other.train(_input_fn, steps=1)
  assert _values(other)['global_step'] == 4
  # And elastic averaging goes on from the plain model's checkpoint.
  elastic.train(_input_fn, steps=1)
  assert _values(elastic)['global_step'] == 5


def test_warm_start_sets_the_centre(behavior, tmp_path):
  plain = _estimator(decorated_models.regression(), tmp_path / 'a')
  plain.train(_input_fn)
  start = _values(plain)

  def frozen():
    return tf1.train.GradientDescentOptimizer(0.0)

  warm = tf.estimator.Estimator(
      elastic_average(decorated_models.regression(make_optimizer=frozen),
                      **SETTINGS),
      str(tmp_path / 'b'), warm_start_from=str(tmp_path / 'a'))
  warm.train(_input_fn)
  for name in ('weight', 'bias'):
    np.testing.assert_array_equal(_values(warm)[name], start[name])


def test_a_model_fn_that_begins_from_a_checkpoint_sets_the_centre(
    behavior, tmp_path):
  plain = _estimator(decorated_models.regression(), tmp_path / 'a')
  plain.train(_input_fn)

  def model_fn(features, labels, mode):
    spec = decorated_models.regression(
        make_optimizer=lambda: tf1.train.GradientDescentOptimizer(0.0))(
            features, labels, mode)
    tf1.train.init_from_checkpoint(
        str(tmp_path / 'a'), {'weight': 'weight', 'bias': 'bias'})
    return spec

  warm = _estimator(elastic_average(model_fn, **SETTINGS), tmp_path / 'b')
  warm.train(_input_fn)
  for name in ('weight', 'bias'):
    np.testing.assert_array_equal(_values(warm)[name], _values(plain)[name])


def test_two_optimizers_keep_both_states(tmp_path):
  def adam():
    return tf1.train.AdamOptimizer(0.1)

  model_fn = decorated_models.regression('two_optimizers', adam)
  plain = _estimator(model_fn, tmp_path / 'a')
  elastic = _estimator(elastic_average(model_fn, **SETTINGS), tmp_path / 'b')
  for estimator in (plain, elastic):
    estimator.train(_input_fn)
  assert sorted(_values(elastic)) == sorted(_values(plain))
  assert 'bias/Adam' in _values(elastic)


def test_forms_of_use():
  model_fn = decorated_models.regression()

  class Model:

    @elastic_average(**SETTINGS)
    def method(self, features, labels, mode):
      return model_fn(features, labels, mode)

  expected = decorated_models.train(elastic_average(model_fn, **SETTINGS))
  for form in (Model().method,
               elastic_average(functools.partial(model_fn), **SETTINGS),
               elastic_average(**SETTINGS)(model_fn)):
    decorated_models.assert_equal(decorated_models.train(form), expected)
  # Without arguments: 4 steps of 10 are no communication.
  assert decorated_models.train(elastic_average(model_fn))['global_step'] == 0


def _receive():
  x = tf1.placeholder(tf.float32, [None, 2])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


def test_train_and_evaluate_predict_and_export_the_centre(tmp_path):
  estimator = _estimator(elastic_average(
      decorated_models.regression(), **SETTINGS), tmp_path)
  metrics, exports = tf.estimator.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(_input_fn, max_steps=1),
      tf.estimator.EvalSpec(_input_fn, steps=None, exporters=(
          tf.estimator.FinalExporter('last', _receive))))
  values = _values(estimator)
  x, y = next(iter(decorated_models.batches().batch(4)))
  expected = x.numpy() @ values['weight'] + values['bias']
  assert metrics['loss'] == pytest.approx(np.mean((expected - y)**2), rel=1e-5)
  predicted = [p['y'] for p in estimator.predict(_input_fn)]
  np.testing.assert_allclose(predicted, expected.reshape(16, 1), rtol=1e-5)
  served = tf1.train.load_checkpoint(
      exports[0].decode() + '/variables/variables')
  np.testing.assert_array_equal(served.get_tensor('weight'), values['weight'])


@pytest.mark.parametrize('arguments, error', (
    (dict(num_worker=0), ValueError), (dict(communication_period=1.5),
                                       TypeError),
    (dict(moving_rate=2.0), ValueError), (dict(rho=-1.0), ValueError),
    (dict(update_order='x'), ValueError), (dict(count_steps='x'), ValueError),
    (dict(statistics='x'), ValueError)))
def test_bad_arguments_are_refused_where_they_are_given(arguments, error):
  with pytest.raises(error, match=f'`{next(iter(arguments))}`'):
    elastic_average(**arguments)


def test_strategy_around_it_is_refused():
  decorated = elastic_average(decorated_models.regression())
  strategy = tf1.distribute.OneDeviceStrategy('/cpu:0')
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    with pytest.raises(RuntimeError, match='ElasticAverageStrategy'):
      strategy.run(lambda: decorated_models.call(
          decorated, TRAIN, tf.ones([4, 2]), tf.ones([4, 1])).loss)
