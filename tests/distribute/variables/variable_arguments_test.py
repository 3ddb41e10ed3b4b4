# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the arguments of variable creators."""

import pytest
import tensorflow as tf

from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

_ON_READ = tf.VariableSynchronization.ON_READ


@pytest.mark.parametrize('kwargs, expected', (
    ({}, True), ({'trainable': None}, True), ({'trainable': True}, True),
    ({'trainable': False}, False), ({'synchronization': _ON_READ}, False),
    ({'synchronization': _ON_READ, 'trainable': True}, True)))
def test_is_trainable(kwargs, expected):
  assert variable_arguments.is_trainable(kwargs) == expected


@pytest.mark.parametrize('kwargs, expected', (
    ({}, False),
    ({'collections': [tf1.GraphKeys.GLOBAL_VARIABLES]}, False),
    ({'collections': [tf1.GraphKeys.METRIC_VARIABLES]}, True),
    ({'collections': [tf1.GraphKeys.LOCAL_VARIABLES]}, True),
    ({'synchronization': _ON_READ,
      'aggregation': tf.VariableAggregation.SUM}, True),
    # The statistics of Keras' batch normalisation.
    ({'synchronization': _ON_READ,
      'aggregation': tf.VariableAggregation.MEAN}, False)))
def test_is_streaming(kwargs, expected):
  assert variable_arguments.is_streaming(
      {'name': 'v', **kwargs}) == expected


def test_the_global_step_is_global():
  kwargs = {'collections': [tf1.GraphKeys.GLOBAL_STEP]}
  assert variable_arguments.is_global_step(kwargs)
  assert not variable_arguments.is_local(kwargs)
  assert not variable_arguments.is_global_step({'collections': None})
