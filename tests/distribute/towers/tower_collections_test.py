# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the collections of towers."""

import inspect

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.towers import tower_collections

tf1 = tf.compat.v1


def test_towers_see_what_was_before_and_their_own():
  with tf.Graph().as_default() as graph:
    graph.add_to_collection('c', 'before')
    towers = tower_collections.TowerCollections(graph, 2)
    towers.show(0)
    graph.add_to_collection('c', 'a')
    towers.keep(0)
    towers.show(1)
    assert graph.get_collection('c') == ['before']
    graph.add_to_collection('c', 'b')
    towers.keep(1)
    towers.show(0)
    assert graph.get_collection('c') == ['before', 'a']
    towers.join()
    assert graph.get_collection('c') == ['before', 'a', 'b']


def test_shared_values_are_joined_once():
  shared = object()
  with tf.Graph().as_default() as graph:
    towers = tower_collections.TowerCollections(graph, 2)
    for tower in range(2):
      towers.show(tower)
      graph.add_to_collection('c', shared)
      towers.keep(tower)
    towers.join()
    assert graph.get_collection('c') == [shared]


def test_every_tower_may_make_the_same_variable():
  with tf.Graph().as_default() as graph:
    towers = tower_collections.TowerCollections(graph, 2)
    for tower in range(2):
      towers.show(tower)
      tf1.get_variable('w', [1])
      towers.keep(tower)
    towers.join()


def test_names_lead_to_the_variables_of_the_first_tower_afterwards():
  with tf.Graph().as_default() as graph:
    before = tf1.get_variable('before', [1])
    towers = tower_collections.TowerCollections(graph, 2)
    made = []
    for tower in range(2):
      towers.show(tower)
      made.append(tf1.get_variable('w', [1]))
      towers.keep(tower)
    towers.join()
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
      assert tf1.get_variable('w', [1]) is made[0]
      assert tf1.get_variable('before', [1]) is before


def test_replace_puts_a_value_in_the_place_of_another():
  old, other, new = object(), object(), object()
  with tf.Graph().as_default() as graph:
    for value in (old, other):
      graph.add_to_collection('c', value)
    graph.add_to_collection('d', other)
    assert tower_collections.keys_with(graph, old) == ['c']
    tower_collections.replace(graph, old, new)
    assert graph.get_collection('c') == [new, other]
    assert graph.get_collection('d') == [other]


@pytest.mark.parametrize('outer', (None, 'outer'))
def test_scopes_find_the_entries_of_every_tower(behavior, outer):
  # (1 + 9) / 2 of the rows, and 3 * 1 of the weight.
  prefix = f'{outer}/net' if outer else 'net'

  def model_fn(features, labels, mode):
    with tf1.variable_scope('net'):
      w = tf1.get_variable('w', initializer=1.0,
                           regularizer=lambda w: tf.multiply(w, 3.0))
      tf1.losses.mean_squared_error(labels, features * w)
    assert not tf1.get_collection('losses', 'others')
    assert [v.name for v in tf1.global_variables('net')] == ['net/w:0']
    losses = tf1.losses.get_losses(scope=prefix)
    penalty = tf1.losses.get_regularization_loss(scope='net')
    return tf.estimator.EstimatorSpec(mode, loss=tf.add_n([*losses, penalty]))

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    with tf.name_scope(outer or ''):
      spec = tfplugin.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
          tf.constant([1., 3.]), tf.constant([0., 0.]), 'eval')
    assert inspect.ismethod(graph.get_collection)
    session.run(tf1.global_variables_initializer())
    assert session.run(spec.loss) == 5.0 + 3.0


def test_every_tower_sees_the_step_that_the_first_one_makes():
  step = tf1.GraphKeys.GLOBAL_STEP
  with tf.Graph().as_default() as graph:
    towers = tower_collections.TowerCollections(graph, 2)
    towers.show(0)
    assert not graph.get_collection(step)
    graph.add_to_collection(step, 'made')
    towers.keep(0)
    towers.show(1)
    assert graph.get_collection(step) == ['made']
