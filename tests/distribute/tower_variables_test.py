# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the variables that towers share."""

import pytest
import tensorflow as tf

from tfplugin.distribute import tower_strategy
from tfplugin.distribute import tower_variables

tf1 = tf.compat.v1


@pytest.mark.parametrize('kwargs, expected', (
    ({}, False),
    ({'collections': [tf1.GraphKeys.GLOBAL_VARIABLES]}, False),
    ({'collections': [tf1.GraphKeys.METRIC_VARIABLES]}, True),
    ({'collections': [tf1.GraphKeys.LOCAL_VARIABLES]}, True),
    ({'synchronization': tf.VariableSynchronization.ON_READ,
      'aggregation': tf.VariableAggregation.SUM}, True),
    # The statistics of Keras' batch normalisation.
    ({'synchronization': tf.VariableSynchronization.ON_READ,
      'aggregation': tf.VariableAggregation.MEAN}, False)))
def test_is_streaming(kwargs, expected):
  assert tower_variables.is_streaming(name='v', **kwargs) == expected


def test_shared_variable_is_in_the_collections(behavior):
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    w = tf1.get_variable('w', [2])
    plain = tf1.get_variable('plain', [], trainable=False)
    assert isinstance(w, tower_variables.TowerVariable)
    assert tf1.trainable_variables() == [w]
    assert [v.name for v in tf1.global_variables()] == ['w:0', 'plain:0']
    assert plain.aggregation == tf1.VariableAggregation.ONLY_FIRST_REPLICA


def test_saver_stores_it_under_its_name(behavior, tmp_path):
  strategy = tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      tf1.get_variable('w', initializer=[1.0, 2.0])
    saver = tf1.train.Saver()
    session.run(tf1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / 'model'))
  assert tf.train.list_variables(path) == [('w', [2])]
  assert tf.train.load_variable(path, 'w').tolist() == [1.0, 2.0]
