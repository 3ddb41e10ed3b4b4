# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Handles, initialisers and views of variables do as the functions say."""

from __future__ import annotations

import contextlib

import pytest
import tensorflow as tf

from tfplugin._tf_internals import variables

tf1 = tf.compat.v1

_ON_READ = tf.VariableSynchronization.ON_READ


def _variable(name, value):
  return tf1.get_variable(name, initializer=value, use_resource=True)


def test_a_variable_starts_from_what_initialises_another():
  with tf.Graph().as_default(), tf1.Session() as session:
    other = _variable('other', 3.0)
    first = _variable('first', 1.0)
    variables.initialize_from(first, other.initializer)
    session.run(first.initializer)
    assert session.run([first, first.initial_value]) == [3.0, 3.0]


@pytest.mark.parametrize('use_resource', [True, False])
def test_a_variable_starts_from_an_assignment_that_a_read_waits_for(
    use_resource):
  with tf.Graph().as_default(), tf1.Session() as session:
    first = _variable('first', 1.0)
    other = tf1.get_variable('o', initializer=3.0, use_resource=use_resource)
    with tf.control_dependencies([tf.group(tf1.assign(other, 4.0).op)]):
      read = tf.identity(other)
    variables.initialize_from(first, read)
    session.run(first.initializer)
    assert session.run(first) == 4.0


def test_an_initialiser_that_assigns_nothing_is_refused():
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match="'v:0' must assign a value"):
      variables.initialize_from(_variable('v', 1.0), tf.no_op())


def test_a_cast_variable_has_one_inside():
  layer = tf.keras.layers.Dense(
      1, dtype=tf.keras.mixed_precision.Policy('mixed_bfloat16'))
  layer.build([1, 1])
  own = variables.own_variable(layer.kernel)
  assert own is not layer.kernel
  assert own.handle is layer.kernel.handle
  assert variables.own_variable(own) is own
  assert variables.own_variable(None) is None


def test_a_session_fetches_the_graph_element():
  with tf.Graph().as_default(), tf1.Session() as session:
    variable = _variable('v', 1.0)
    element = variables.graph_element(variable)
    session.run(variable.initializer)
    assert tf.is_tensor(element)
    assert session.run(element) == 1.0


def test_a_read_after_an_assignment_sees_it():
  with tf.Graph().as_default(), tf1.Session() as session:
    variable = _variable('v', 1.0)
    update = variable.assign_add(1.0, read_value=False)
    after = variables.read_after(variable, update)
    session.run(variable.initializer)
    assert session.run(after + 0.0) == 2.0
    session.run(after.op)
    assert session.run(variable) == 3.0


def test_a_variable_in_parts_is_taken_apart():
  parts = [tf.Variable([1.0], name='part_0'), tf.Variable([2.0], name='part_1')]
  sharded = variables.sharded_variable.ShardedVariable(parts, name='whole')
  assert [part is own for part, own in zip(
      variables.parts_of(sharded), parts)] == [True, True]
  assert variables.parts_of(parts[0])[0] is parts[0]


def test_a_copy_of_the_variable_store_makes_a_variable_again():
  with tf.Graph().as_default() as graph:
    tf1.get_variable('v', [])
    copied = variables.copy_of_variable_store()
    graph.get_collection_ref(variables.VARIABLE_STORE_KEY)[:] = copied
    with tf1.variable_scope('', reuse=True):
      tf1.get_variable('v', [])  # Known to the copy.
    with pytest.raises(ValueError, match='already exists'):
      tf1.get_variable('v', [])
    del graph.get_collection_ref(variables.VARIABLE_STORE_KEY)[:]
    assert tf1.get_variable('v', []).op.name == 'v_1'


def test_the_own_variable_of_one_that_casts():
  policy = tf.keras.mixed_precision.Policy('mixed_bfloat16')
  strategy = tf.distribute.MirroredStrategy(['/cpu:0'])
  for scope in (contextlib.nullcontext(), strategy.scope()):
    with scope:
      layer = tf.keras.layers.Dense(1, dtype=policy)
      layer.build([None, 1])
    own = variables.own_variable(layer.kernel)
    assert own is not layer.kernel
    assert own.ref() != layer.kernel.ref()
    assert type(own).__name__ in ('ResourceVariable', 'MirroredVariable')
    assert variables.own_variable(own) is own


@pytest.mark.parametrize('use_resource', [True, False])
def test_any_other_variable_is_its_own(use_resource):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', [], use_resource=use_resource)
    assert variables.own_variable(variable) is variable


@pytest.mark.parametrize('use_resource', [True, False])
def test_a_constant_and_the_value_of_a_variable_are_no_computation(
    use_resource):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=1.0, use_resource=use_resource)
    sum_ = variable + 1.0
    assert not variables.is_constant_or_read(sum_.op)
    assert all(variables.is_constant_or_read(tensor.op)
               for tensor in sum_.op.inputs)
    assert not variables.is_constant_or_read(tf1.placeholder(tf.float32).op)


@pytest.mark.parametrize('kwargs, expected', (
    ({}, True), ({'trainable': None}, True), ({'trainable': True}, True),
    ({'trainable': False}, False), ({'synchronization': _ON_READ}, False),
    ({'synchronization': _ON_READ, 'trainable': True}, True)))
def test_is_trainable(kwargs, expected):
  assert variables.is_trainable(kwargs) == expected


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
  assert variables.is_streaming(
      {'name': 'v', **kwargs}) == expected


def test_the_global_step_is_global():
  kwargs = {'collections': [tf1.GraphKeys.GLOBAL_STEP]}
  assert variables.is_global_step(kwargs)
  assert not variables.is_local(kwargs)
  assert not variables.is_global_step({'collections': None})
