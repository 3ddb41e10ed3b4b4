# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small graphs with elastic averaging, for the tests of the optimizer."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

Getter = elastic_custom_getter.ElasticAverageCustomGetter


def sgd(rate=1.0):
  """A step of the gradient itself; calls that nobody ordered lose none."""
  return tf1.train.GradientDescentOptimizer(rate, use_locking=True)


def make_optimizer(getter, opt=None, **kwargs):
  """One worker that communicates in every step, without a penalty."""
  defaults = {'num_worker': 1, 'communication_period': 1, 'moving_rate': 0.1,
              'rho': 0.0}
  return elastic_average.ElasticAverageOptimizer(
      opt or sgd(), ea_custom_getter=getter, **{**defaults, **kwargs})


def variable(getter, name='w', value=1.0, **kwargs):
  """A variable with a centre."""
  with tf1.variable_scope('', custom_getter=getter):
    return tf1.get_variable(name, initializer=tf.constant(value), **kwargs)


def session(optimizer):
  """A session in which the copies have started from their centres."""
  result = tf1.Session()
  init = optimizer.get_init_op(0)
  result.run(tf1.global_variables_initializer())
  result.run(tf1.local_variables_initializer())
  result.run(init)
  return result


def center(getter, local):
  """The centre of a local variable."""
  return getter.pair_of(local).center
