# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to train, each built in the default graph around any model."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np
import tensorflow as tf

import tfplugin
from benchmarks.growth import cells
from benchmarks.network import models

tf1 = tf.compat.v1

ROWS = 32

# Nothing is dropped, and no slice is beyond: the cost of looking is measured.
_STALENESS, _MAX_NORM = 10**6, 1e6
_NUM_WORKER = 2


@dataclasses.dataclass(frozen=True)
class Model:
  """A model to train.

  Attributes:
    features: Returns a batch of so many rows.
    loss: Makes the variables; returns the loss of a batch.
  """

  features: Callable[[int], tf.Tensor]
  loss: Callable[[tf.Tensor], tf.Tensor]


def square_layers(num_parameters: int) -> Model:
  """Returns a model of four square layers.

  Args:
    num_parameters: About so many.
  """
  side = round((num_parameters / 4)**0.5)
  return _layers(4, side, tf1.random_uniform_initializer(-.1, .1, seed=0))


def small_layers(num_variables: int) -> Model:
  """Returns a model of layers of [4, 4].

  Args:
    num_variables: How many.
  """
  return _layers(num_variables, 4, tf1.ones_initializer())


def _layers(count, side, initializer):
  def features(rows):
    random = np.random.RandomState(0)
    return tf.constant(random.rand(rows, side).astype(np.float32))

  def loss(hidden):
    for index in range(count):
      hidden = tf.tanh(tf.matmul(hidden, tf1.get_variable(
          f'kernel_{index}', [side, side], initializer=initializer)))
    return tf.reduce_mean(hidden)

  return Model(features, loss)


def build(name: str, model: Model, worker: str = '/cpu:0') -> models.Built:
  """Builds a way to train.

  Args:
    name: Of a curve of `cells`; strategies end with their devices.
    model: The model.
    worker: The device of the worker.
  """
  kind, _, what = name.partition(', ')
  if kind.endswith('Strategy'):
    return _with_strategy(_strategy(kind, what), model)
  tf1.train.get_or_create_global_step()
  if kind == cells.ELASTIC:
    return _elastic(model, worker)
  return models.Built(_minimize(
      _wrapped(kind, what), model.loss(model.features(ROWS))), [], [])


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.01)


def _minimize(optimizer, loss):
  return optimizer.minimize(loss, tf1.train.get_or_create_global_step())


def _rules(what):
  """The rows of each kernel, or of every tenth."""
  return {'kernel_[0-9]*' + '0' * (what == cells.FEW) + '(:|$)': [1]}


def _wrapped(kind, what):
  if kind == 'drop stale':
    return tfplugin.DropStaleGradientOptimizer(_sgd(), _STALENESS)
  if kind == 'clipping':
    return tfplugin.VariableClippingOptimizer(
        _sgd(), _rules(what), _MAX_NORM)
  return _sgd()


def _elastic(model, worker):
  getter = tfplugin.ElasticAverageCustomGetter(worker)
  with tf1.variable_scope('', custom_getter=getter):
    loss = model.loss(model.features(ROWS))
  optimizer = tfplugin.ElasticAverageOptimizer(
      _sgd(), _NUM_WORKER, getter, communication_period=cells.PERIOD, rho=0.0)
  step = _minimize(optimizer, loss)
  return models.Built(step, [tf1.local_variables_initializer(),
                             optimizer.get_init_op(0)], [])


def _strategy(kind: str, what: str) -> tf.distribute.Strategy:
  """A strategy by its name and, where it has some, the number of devices."""
  known = tfplugin.distribute
  if kind == 'DropStaleGradientStrategy':
    return known.DropStaleGradientStrategy(staleness=_STALENESS)
  if kind == 'VariableClippingStrategy':
    return known.VariableClippingStrategy(
        tf1.distribute.OneDeviceStrategy('/cpu:0'), _rules(what), _MAX_NORM)
  count = int(what.split()[0]) if what else None
  devices = count and [f'/cpu:{index}' for index in range(count)]
  if kind == 'MirroredStrategy':
    return tf1.distribute.MirroredStrategy(
        devices, cross_device_ops=tf.distribute.ReductionToOneDevice())
  if kind == 'ElasticAverageStrategy':
    return known.ElasticAverageStrategy(
        devices=devices if count and count > 1 else None)
  return getattr(known, kind)(devices)


def _with_strategy(strategy: tf.distribute.Strategy,
                   model: Model) -> models.Built:
  rows = ROWS // strategy.num_replicas_in_sync

  def replica(features):
    return _minimize(_sgd(), model.loss(features))

  with strategy.scope():
    tf1.train.get_or_create_global_step()
    # Of the class: a strategy of v1 has no method of that name.
    distribute = (
        tf.distribute.Strategy.experimental_distribute_values_from_function)
    features = distribute(strategy, lambda _: model.features(rows))
    steps = strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(replica), args=(features,))
  return models.Built(
      tf.group(*strategy.experimental_local_results(steps)),
      [tf1.local_variables_initializer()], [])


def make_devices(count: int) -> tf1.ConfigProto | None:
  """Makes logical CPUs, and returns the configuration of a session with them.

  Args:
    count: How many, before TensorFlow has any.
  """
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * count)
  return tf1.ConfigProto(device_count={'CPU': count}, allow_soft_placement=True)
