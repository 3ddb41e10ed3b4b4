# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of elastic averaging: what they may be, and their defaults."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1

Settings = elastic_settings.ElasticSettings


@pytest.mark.parametrize('argument', ['num_worker', 'communication_period'])
@pytest.mark.parametrize('value, error, words', [
    (0, ValueError, 'at least 1. Received: 0'),
    (-3, ValueError, 'at least 1. Received: -3'),
    *((value, TypeError, 'must be an integer of at least 1. Received')
      for value in (2.5, 2.0, '3', True))])
def test_a_count_is_a_positive_integer(argument, value, error, words):
  with pytest.raises(error, match=f'`{argument}`.*{words}'):
    Settings(**{argument: value})


@pytest.mark.parametrize('make', [
    lambda **kwargs: distribute.ElasticAverageStrategy(num_worker=1, **kwargs),
    lambda **kwargs: estimator.elastic_average(
        lambda features, labels, mode: None, **kwargs)])
def test_how_many_steps_max_steps_is_is_said_at_the_start(caplog, make):
  with caplog.at_level('WARNING'):
    make(communication_period=10, count_steps='local')
    make(communication_period=10, count_steps='communications')
    make(communication_period=1)
    assert not caplog.records
    make(communication_period=10)
  told, = (record.getMessage() for record in caplog.records)
  assert 'max_steps=100,000 makes 1,000,000 local steps' in told
  assert "Pass count_steps='local'" in told


def test_by_default_communications_are_counted_as_by_the_optimizer():
  assert Settings().count_steps == 'communications'


def _optimizer(**kwargs):
  with tf.Graph().as_default():
    return tfplugin.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(0.5), 2,
        tfplugin.ElasticAverageCustomGetter('', statistics='shared'), **kwargs)


FORMS = [
    _optimizer, distribute.ElasticAverageStrategy,
    lambda **kwargs: estimator.elastic_average(
        lambda features, labels, mode: None, **kwargs)]
# The optimizer has these itself.
OPTIONS = distribute.ElasticOptions(
    num_worker=2, statistics='shared', communication_period=3, rho=0.25)


@pytest.mark.parametrize('make', FORMS)
@pytest.mark.parametrize('keywords, error, words', [
    ({'overlap': True}, ValueError, '`options` must hold all.*and overlap'),
    ({'communication_period': 5}, ValueError, 'and communication_period.*Make'),
    ({'options': {'rho': 0.0}}, TypeError, '`options` must be an ElasticOptio'),
    ({'period': 5}, (TypeError, ValueError), 'period')])
def test_options_exclude_keywords(make, keywords, error, words):
  make(options=OPTIONS)
  with pytest.raises(error, match=words):
    make(**{'options': OPTIONS, **keywords})


@pytest.mark.parametrize('make', FORMS)
def test_each_form_takes_each_option(make):
  for field in dataclasses.fields(OPTIONS):
    value = getattr(OPTIONS, field.name)
    if make is not _optimizer or field.name != 'num_worker':
      make(**{field.name: value})
  with pytest.raises(TypeError, match='takes num_worker, .*period=5'):
    make(period=5)


def test_options_are_handed_on_whole():
  assert _optimizer(options=OPTIONS)._settings == Settings(**vars(OPTIONS))
  strategy = distribute.ElasticAverageStrategy(options=OPTIONS)
  assert strategy.extended._settings == Settings(**vars(OPTIONS))


@pytest.mark.parametrize('argument, value', [
    ('num_worker', 3), ('statistics', 'average')])
def test_the_optimizer_and_its_options_agree(argument, value):
  with pytest.raises(ValueError, match=(
      f'`{argument}` must be .*getter. Received: {value!r}')):
    _optimizer(options=dataclasses.replace(OPTIONS, **{argument: value}))


def test_numpy_integers_are_integers():
  assert Settings(communication_period=np.int64(3)).communication_period == 3


@pytest.mark.parametrize('value', [-0.1, 1.5, float('nan'), float('inf')])
def test_moving_rate_is_in_the_unit_interval(value):
  with pytest.raises(ValueError, match='`moving_rate` must be a number in'):
    Settings(moving_rate=value)


@pytest.mark.parametrize('value', [None, 0, 0.5, 1, np.float32(0.1)])
def test_moving_rates_that_are_fine(value):
  assert Settings(moving_rate=value).moving_rate is value


@pytest.mark.parametrize('value', ['0.5', True, [0.5]])
def test_rates_are_numbers(value):
  for argument in ('moving_rate', 'rho'):
    with pytest.raises(TypeError, match=f'`{argument}` must be a number'):
      Settings(**{argument: value})


@pytest.mark.parametrize('value', [-1, float('inf'), float('nan')])
def test_rho_is_not_negative(value):
  with pytest.raises(ValueError, match='`rho` must be a number of at least 0'):
    Settings(rho=value)


@pytest.mark.parametrize('argument, choices', [
    ('update_order', ('gradient_first', 'elastic_first')),
    ('count_steps', ('communications', 'local')),
    ('statistics', ('average', 'shared'))])
def test_choice_names_what_there_is(argument, choices):
  for choice in choices:
    assert getattr(Settings(**{argument: choice}), argument) == choice
  with pytest.raises(ValueError, match=(
      f"`{argument}` must be one of .*{choices[1]}.*Received: 'c'")):
    Settings(**{argument: 'c'})


@pytest.mark.parametrize('argument', ['synchronous', 'sparse_exchange'])
def test_a_flag_is_a_bool(argument):
  with pytest.raises(TypeError, match=f"`{argument}` .*Received: 'no'"):
    Settings(**{argument: 'no'})


@pytest.mark.parametrize('setting', [
    {'sparse_exchange': True}, {'exchange_dtype': 'float16'},
    {'overlap': True}])
def test_devices_of_one_process_refuse_a_setting_of_the_network(setting):
  Settings(**setting).check_of_strategy(False)
  with pytest.raises(ValueError, match=(
      f'`{next(iter(setting))}` must be .* one process.*Leave it out')):
    Settings(**setting).check_of_strategy(True)


@pytest.mark.parametrize('value, error', [
    ('float32', ValueError), ('int4', ValueError), (tf.float16, TypeError)])
def test_exchange_dtype_names_what_there_is(value, error):
  for dtype in (None, 'float16', 'bfloat16', 'int8'):
    assert Settings(exchange_dtype=dtype).exchange_dtype == dtype
  with pytest.raises(error, match=(
      r"`exchange_dtype` must be one of \('float16', 'bfloat16', 'int8'\).*"
      'None exchanges')):
    Settings(exchange_dtype=value)


@pytest.mark.parametrize('exchange_dtype, dtypes, is_refused', [
    ('float16', [tf.float16], True), ('float16', [tf.bfloat16], True),
    ('float16', [tf.float16, tf.float32], False), ('float16', [], False),
    ('int8', [tf.float16], False), (None, [tf.float16], False)])
def test_exchange_dtype_makes_something_smaller(
    exchange_dtype, dtypes, is_refused):
  settings = Settings(exchange_dtype=exchange_dtype)
  if is_refused:
    with pytest.raises(ValueError, match=(
        f'`exchange_dtype` must be smaller.*float16.*{dtypes[0].name}.*Leave')):
      settings.check_exchanged(dtypes)
  else:
    settings.check_exchanged(dtypes)


def test_rate_is_the_users_or_the_default():
  assert Settings(moving_rate=0.5).rate(4) == 0.5
  # .9 / 3 / 4, and with the number of workers that the user says.
  assert Settings(communication_period=3).rate(4) == pytest.approx(0.075)
  assert Settings(
      num_worker=2, communication_period=3).rate(4) == pytest.approx(0.15)
  assert Settings(moving_rate=0.0).rate(4) == 0.0
  tensor = tf.constant(0.25)
  assert Settings(moving_rate=tensor).rate(4) is tensor


@pytest.mark.parametrize('argument', [
    'communication_period', 'synchronous', 'update_order', 'statistics',
    'sparse_exchange'])
def test_only_a_rate_may_be_a_tensor_and_only_some_are_optional(argument):
  with tf.Graph().as_default():
    for value in (None, tf.constant(1)):
      with pytest.raises((TypeError, ValueError), match=f'`{argument}` must'):
        Settings(**{argument: value})
  with pytest.raises(TypeError, match='`num_worker` must'):
    Settings(num_worker=tf.constant(1))


@pytest.mark.parametrize('make', [
    tf1.train.GradientDescentOptimizer, tf1.train.AdamOptimizer,
    tf1.train.AdagradOptimizer, tf1.train.AdadeltaOptimizer,
    tf1.train.RMSPropOptimizer, tf1.train.FtrlOptimizer,
    tf1.train.ProximalGradientDescentOptimizer,
    tf1.train.ProximalAdagradOptimizer,
    lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    lambda rate: tf1.train.AdagradDAOptimizer(
        rate, tf.constant(0, tf.int64)),
    lambda rate: wrapper.OptimizerWrapper(
        tf1.train.AdamOptimizer(rate), False, 'around')])
def test_default_rho_of_every_optimizer(make):
  with tf.Graph().as_default():
    assert Settings(moving_rate=0.1, rho=None).rho_for(make(0.25), 1) == 0.4


def test_default_rho_follows_a_schedule(behavior):
  del behavior
  with tf.Graph().as_default():
    rate = tf1.placeholder(tf.float32, [])
    rho = Settings(moving_rate=0.5, rho=None).rho_for(
        tf1.train.GradientDescentOptimizer(rate), 1)
    with tf1.Session() as session:
      assert session.run(rho, {rate: 0.25}) == 2.0


def test_no_moving_rate_no_penalty():
  with tf.Graph().as_default():
    assert Settings(moving_rate=0.0, rho=None).rho_for(
        tf1.train.GradientDescentOptimizer(tf.constant(0.1)), 1) == 0.0


def test_rho_of_the_user_is_taken():
  assert Settings(rho=0.25).rho_for(None, 1) == 0.25
  # The default moving rate, .9 / 10 / 2, over .5.
  assert Settings(rho=None).rho_for(
      tf1.train.GradientDescentOptimizer(0.5), 2) == pytest.approx(0.09)
