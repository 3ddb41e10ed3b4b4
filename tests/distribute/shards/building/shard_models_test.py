# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the scopes and collections of shards; see shard_run_test, too."""

import functools
import inspect

import pytest
import tensorflow as tf

from tfplugin.distribute.shards import shared_shards
from tfplugin.distribute.shards.building import shard_models

tf1 = tf.compat.v1


def test_the_devices_and_scopes_around_are_those_of_every_shard(behavior):
  def fn():
    with tf.name_scope('inside'):
      op = tf.no_op('op')
    return op, tf1.get_variable('w', [])

  with tf.Graph().as_default(), tf1.device('/job:worker'), (
      tf.name_scope('around')):
    (first, w), (second, _) = shared_shards.SharedShards(
        ['/device:CPU:0', '/device:CPU:1']).build([fn, fn]).results
  assert (first.device, second.device) == (
      '/job:worker/device:CPU:0', '/job:worker/device:CPU:1')
  assert (first.name, second.name) == (
      'around/inside/op', 'around/tower_1/inside/op')
  assert (w.name, w.values[0].device) == ('w:0', '/job:worker/device:CPU:0')


def test_shards_see_what_was_before_and_their_own():
  with tf.Graph().as_default() as graph:
    graph.add_to_collection('c', 'before')
    shards = shard_models.ShardCollections(graph, 2)
    shards.show(0)
    graph.add_to_collection('c', 'a')
    shards.keep(0)
    shards.show(1)
    assert graph.get_collection('c') == ['before']
    graph.add_to_collection('c', 'b')
    shards.keep(1)
    shards.show(0)
    assert graph.get_collection('c') == ['before', 'a']
    shards.join()
    assert graph.get_collection('c') == ['before', 'a', 'b']


def test_shared_values_are_joined_once():
  shared = object()
  with tf.Graph().as_default() as graph:
    shards = shard_models.ShardCollections(graph, 2)
    for shard in range(2):
      shards.show(shard)
      graph.add_to_collection('c', shared)
      shards.keep(shard)
    shards.join()
    assert graph.get_collection('c') == [shared]


def test_every_shard_may_make_the_same_variable():
  with tf.Graph().as_default() as graph:
    shards = shard_models.ShardCollections(graph, 2)
    for shard in range(2):
      shards.show(shard)
      tf1.get_variable('w', [1])
      shards.keep(shard)
    shards.join()


def test_names_lead_to_the_variables_of_the_first_shard_afterwards():
  with tf.Graph().as_default() as graph:
    before = tf1.get_variable('before', [1])
    shards = shard_models.ShardCollections(graph, 2)
    made = []
    for shard in range(2):
      shards.show(shard)
      made.append(tf1.get_variable('w', [1]))
      shards.keep(shard)
    shards.join()
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
      assert tf1.get_variable('w', [1]) is made[0]
      assert tf1.get_variable('before', [1]) is before


def test_keys_are_those_of_the_collections_that_hold_a_value():
  value, other = object(), object()
  with tf.Graph().as_default() as graph:
    for key in 'cd':
      graph.add_to_collection(key, other)
    graph.add_to_collection('c', value)
    assert shard_models.keys_with(graph, value) == ['c']


@pytest.mark.parametrize('outer', (None, 'outer'))
def test_scopes_find_the_entries_of_every_shard(behavior, outer):
  # Losses of 1 and 9, and 3 * 1 of the weight.
  prefix = f'{outer}/net' if outer else 'net'

  def build(number):
    with tf1.variable_scope('net'):
      w = tf1.get_variable('w', initializer=1.0,
                           regularizer=lambda w: tf.multiply(w, 3.0))
      tf1.losses.mean_squared_error([0.], [number] * w)
    assert not tf1.get_collection('losses', 'others')
    assert [v.name for v in tf1.global_variables('net')] == ['net/w:0']
    return [*tf1.losses.get_losses(scope=prefix),
            tf1.losses.get_regularization_loss(scope='net')]

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    with tf.name_scope(outer or ''):
      losses = shared_shards.SharedShards(['/cpu:0'] * 2).build(
          [functools.partial(build, number) for number in (1., 3.)]).results
    assert inspect.ismethod(graph.get_collection)
    session.run(tf1.global_variables_initializer())
    assert session.run(losses) == [[1.0, 3.0], [9.0, 3.0]]


def test_every_shard_sees_the_step_that_the_first_one_makes():
  step = tf1.GraphKeys.GLOBAL_STEP
  with tf.Graph().as_default() as graph:
    shards = shard_models.ShardCollections(graph, 2)
    shards.show(0)
    assert not graph.get_collection(step)
    graph.add_to_collection(step, 'made')
    shards.keep(0)
    shards.show(1)
    assert graph.get_collection(step) == ['made']
