# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the look at all variables, of every type and kind."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.checkpoints import training_guard

tf1 = tf.compat.v1


@pytest.mark.parametrize('dtype', [
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64])
def test_only_what_is_not_finite_is_named(behavior, dtype):
  with tf.Graph().as_default(), tf1.Session() as session:
    good = tf1.get_variable('good', [3], dtype,
                            initializer=tf1.zeros_initializer())
    bad = tf1.get_variable('bad', [2, 2], dtype,
                           initializer=tf1.zeros_initializer())
    others = [tf1.get_variable(f'other_{i}', initializer=value)
              for i, value in enumerate([1, True, 'text'])]
    state = training_guard.FiniteState([good, bad, *others])
    session.run(tf1.global_variables_initializer())
    assert state.not_finite(session) == []
    for value in (np.nan, np.inf, -np.inf):
      session.run(bad.assign(tf.cast([[0.0, 0.0], [0.0, value]], dtype)))
      assert state.not_finite(session) == ['bad']


def test_no_variable_is_finite(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf.constant(1.0)  # TensorFlow runs nothing in an empty graph.
    assert training_guard.FiniteState([]).not_finite(session) == []


def test_it_looks_where_the_variables_are(behavior):
  with tf.Graph().as_default() as graph:
    variables = []
    for index in (0, 1):
      with tf1.device(f'/job:ps/task:{index}'):
        variables += [tf1.get_variable(f'v{index}{k}', initializer=1.0)
                      for k in range(3)]
    before = set(graph.get_operations())
    training_guard.FiniteState(variables)
    made = set(graph.get_operations()) - before
    looks = [op for op in made if op.type in ('IsFinite', 'Pack', 'All')]
    # A pack for each server: two tensors travel, whatever there is.
    assert sum(op.type == 'Pack' and op.inputs[0].op.type == 'All'
               for op in looks) >= 2
    for op in looks:
      assert op.device.startswith('/job:ps/task:'), op.name


def test_each_copy_of_a_distributed_variable_is_looked_at(behavior):
  strategy = tf1.distribute.MirroredStrategy(['cpu:0', 'cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      variable = tf1.get_variable('v', initializer=1.0)
    state = training_guard.FiniteState([variable])
    session.run(tf1.global_variables_initializer())
    assert state.not_finite(session) == []
    session.run(variable.values[1].assign(np.nan))
    assert state.not_finite(session) == [variable.values[1].op.name]
