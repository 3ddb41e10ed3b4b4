# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which data pipelines are tuned."""

import warnings

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import untuned_inputs
from tfplugin.estimator import cluster_training as training

tf1 = tf.compat.v1

_AUTOTUNE = tf.data.AUTOTUNE
# As bytes: field 7 of the options is `autotune_options`, field 1 of those, with
# the value 0, is `enabled`.
_NOT_TUNED = b'\x3a\x02\x08\x00'


def _enabled(make):
  with tf.Graph().as_default():
    return untuned_inputs.untuned(make(
        tf.data.Dataset.from_tensor_slices([1, -1]))).options().autotune.enabled


@pytest.mark.parametrize('make', [
    lambda data: data.repeat(-1).shuffle(10).take(-1).batch(2),
    lambda data: data.map(lambda x: x + 1, num_parallel_calls=2).prefetch(2),
    lambda data: data.zip(data.skip(1)).cache(),
    lambda data: tf.data.Dataset.from_generator(
        lambda: [1, 2], tf.int64, tf.TensorShape([])).batch(2),
    lambda data: data.interleave(
        lambda x: tf.data.Dataset.range(3).prefetch(1), cycle_length=2),
], ids=['plain', 'numbers', 'two', 'generator', 'inside'])
def test_one_that_does_not_ask_is_not_tuned(behavior, make):
  assert _enabled(make) is False


@pytest.mark.parametrize('make', [
    lambda data: data.prefetch(_AUTOTUNE).repeat(),
    lambda data: data.map(lambda x: x + 1, num_parallel_calls=_AUTOTUNE),
    lambda data: data.zip(data.batch(1, num_parallel_calls=_AUTOTUNE)),
    lambda data: data.flat_map(
        lambda x: tf.data.Dataset.range(3).prefetch(_AUTOTUNE)),
    lambda data: data.interleave(
        lambda x: data.flat_map(lambda y: data.prefetch(_AUTOTUNE)), 2),
], ids=['prefetch', 'map', 'one of two', 'inside', 'deep inside'])
def test_one_that_asks_is(behavior, make):
  assert _enabled(make) is None


def test_tensorflow_does_not_warn_of_options_that_no_program_has_asked_for():
  with tf.Graph().as_default(), warnings.catch_warnings():
    warnings.simplefilter('error')
    assert untuned_inputs.untuned(tf.data.Dataset.range(3)) is not None


def test_options_are_kept_and_what_is_no_dataset():
  def tuned(data):
    options = tf.data.Options()
    options.autotune.enabled = True
    return data.with_options(options)

  assert _enabled(tuned) is True
  assert untuned_inputs.untuned((1, 2)) == (1, 2)


@pytest.mark.parametrize('make_strategy', [
    lambda: distribute.DropStaleGradientStrategy(staleness=1),
    lambda: distribute.TowerStrategy(devices=['/cpu:0']),
    lambda: distribute.ElasticAverageStrategy(devices=['/cpu:0', '/cpu:1']),
    lambda: distribute.CrossShardStrategy(devices=['/cpu:0', '/cpu:1']),
], ids=['drop_stale', 'towers', 'elastic', 'cross_shard'])
def test_no_iterator_of_a_strategy_is_tuned(behavior, make_strategy):
  strategy = make_strategy()
  with tf.Graph().as_default() as graph, strategy.scope():
    strategy.make_input_fn_iterator(
        lambda context: tf.data.Dataset.range(4).batch(2))
  tuned = _are_tuned(graph)
  assert len(tuned) >= 2
  assert not any(tuned)


@pytest.mark.parametrize('steps_of_input, is_tuned', [
    (lambda data: data, False),
    (lambda data: data.prefetch(_AUTOTUNE), True),
], ids=['plain', 'asks'])
def test_no_iterator_of_an_estimator_is_tuned_that_does_not_ask(
    behavior, tmp_path, steps_of_input, is_tuned):
  tuned = []

  def model_fn(features, mode, params):
    tuned.append((mode, _are_tuned(features.graph)))
    step = tf1.train.get_global_step()
    return tf.estimator.EstimatorSpec(
        mode, loss=features[0] * params['rate'],
        train_op=step.assign_add(1, read_value=False))

  def input_fn(params):  # Gets what it asks for.
    return steps_of_input(
        tf.data.Dataset.from_tensors([params['rate']]).repeat(2))

  training.train_and_evaluate(
      tf.estimator.Estimator(model_fn, str(tmp_path), params={'rate': 0.5}),
      tf.estimator.TrainSpec(input_fn, max_steps=1),
      tf.estimator.EvalSpec(input_fn, steps=1))
  assert tuned == [('train', [is_tuned]), ('eval', [is_tuned])]


def _are_tuned(graph):
  """Returns for each iterator of a graph whether its input is tuned."""
  variants = [tensor for op in graph.get_operations()
              if op.type in ('MakeIterator', 'MultiDeviceIteratorInit')
              for tensor in op.inputs if tensor.dtype == tf.variant]
  return [not any(_NOT_TUNED in op.get_attr('serialized_options')
                  for op in _upstream(variant.op)
                  if op.type == 'OptionsDataset') for variant in variants]


def _upstream(op):
  return [op, *(o for tensor in op.inputs if tensor.dtype == tf.variant
                for o in _upstream(tensor.op))]
