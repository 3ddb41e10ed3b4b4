# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a variable creator is told of a variable."""

import pytest
import tensorflow as tf

from tfplugin.optimizers import variable_arguments

tf1 = tf.compat.v1
GLOBAL = tf1.GraphKeys.GLOBAL_VARIABLES
LOCAL = tf1.GraphKeys.LOCAL_VARIABLES


@pytest.mark.parametrize('kwargs, expected', [
    ({}, True), ({'trainable': False}, False), ({'trainable': True}, True),
    ({'synchronization': tf.VariableSynchronization.ON_READ}, False)])
def test_what_is_trained(kwargs, expected):
  assert variable_arguments.is_trainable(kwargs) is expected


@pytest.mark.parametrize('kwargs, expected', [
    ({'dtype': tf.float16, 'initial_value': 1}, True),
    ({'dtype': tf.int64, 'initial_value': lambda: 1.0}, False),
    ({'initial_value': [1.0]}, True), ({'initial_value': 1}, False),
    ({'initial_value': lambda: 1.0}, True)])
def test_what_is_of_floating_point(kwargs, expected):
  assert variable_arguments.is_floating(kwargs) is expected


@pytest.mark.parametrize('collections, expected', [
    (None, [LOCAL]), ([], [LOCAL]), ([GLOBAL, 'mine'], [LOCAL, 'mine'])])
def test_where_what_is_local_is_listed(collections, expected):
  assert variable_arguments.localized(collections) == expected
