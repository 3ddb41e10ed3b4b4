# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the names in a checkpoint."""

import pytest
import tensorflow as tf

from tfplugin._tf_internals import saving

tf1 = tf.compat.v1


def test_names_are_those_of_a_saver(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    with tf1.variable_scope('layer'):
      plain = tf1.get_variable('plain', initializer=[1.0])
      parts = tf1.get_variable(
          'parts', [4], partitioner=tf1.fixed_size_partitioner(2))
    session.run(tf1.global_variables_initializer())
    named = saving.variables_by_saved_name([plain, *parts])
    assert named == {'layer/plain': plain, 'layer/parts': list(parts)}
    assert saving.variables_by_saved_name([plain, parts]) == named
    path = tf1.train.Saver([plain, *parts]).save(session, f'{tmp_path}/model')
  assert [name for name, _ in tf1.train.list_variables(path)] == sorted(named)


def test_something_else_than_a_variable_is_refused():
  with pytest.raises(TypeError, match='must hold variables. Received: 3'):
    saving.variables_by_saved_name([3])


def test_two_variables_of_one_name_are_refused():
  variables = []
  for _ in range(2):
    with tf.Graph().as_default():
      variables.append(tf.Variable(1.0, name='same'))
  with pytest.raises(ValueError, match='Received: same twice'):
    saving.variables_by_saved_name(variables)
