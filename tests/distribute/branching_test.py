# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of conditions around updates, and of merge calls in branches."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import branching
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.mark.parametrize('use_resource', [True, False])
def test_only_the_branch_that_is_taken_updates(behavior, use_resource):
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=1.0, use_resource=use_resource)
    should = tf1.placeholder(tf.bool, [])

    def add(value):
      with tf.control_dependencies([v.assign_add(value).op]):
        return tf.constant(value)

    done = branching.cond(should, lambda: add(2.0), lambda: add(10.0), [v])
    session.run(v.initializer)
    assert session.run(done, {should: True}) == 2.0
    assert session.run(v) == 3.0
    assert session.run(done, {should: False}) == 10.0
    assert session.run(v) == 13.0


def test_the_kind_of_control_flow_is_as_it_was():
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0, use_resource=False)

    def fail():
      raise KeyError('of the user')

    with pytest.raises(KeyError, match='of the user'):
      branching.cond(tf.constant(True), fail, fail, [v])
  assert tf1.control_flow_v2_enabled()


@pytest.mark.parametrize('in_branch', [False, True])
def test_one_replica_merges_in_a_branch(behavior, in_branch):
  strategy = tf1.distribute.MirroredStrategy(['/cpu:0'])

  def merge():
    context = tf.distribute.get_replica_context()
    assert context.strategy is strategy
    return context.merge_call(lambda strategy: tf.constant(
        2.0 if tf.distribute.in_cross_replica_context() else 0.0))

  def replica():
    return tf.cond(tf1.placeholder_with_default(True, []), merge,
                   lambda: 1.0) if in_branch else merge()

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    result = strategy.extended.call_for_each_replica(
        branching.with_merges_in_branches(strategy, replica))
    assert session.run(result) == 2.0


def test_several_replicas_are_left_as_they_are():
  strategy = tf1.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  assert branching.with_merges_in_branches(strategy, len) is len


def test_replicas_merge_alone_in_a_branch(behavior):
  strategy = tf1.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  entered = []

  @contextlib.contextmanager
  def alone(replica):
    entered.append(replica)
    yield

  def merge():
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    return tf.distribute.get_replica_context().merge_call(
        lambda strategy, value: value + 1.0, (tf.cast(number, tf.float32),))

  def replica():
    return tf.cond(tf1.placeholder_with_default(True, []), merge, lambda: 9.0)

  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    result = strategy.extended.call_for_each_replica(
        branching.with_merges_in_branches(strategy, replica, alone))
    assert session.run(strategy.experimental_local_results(result)) == (1, 2)
  assert entered == [0, 1]


def test_a_cast_of_keras_is_merged_as_its_variable(behavior):
  strategy = tf1.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  merged = []

  def replica():
    layer = tf.keras.layers.Dense(
        1, dtype=tf.keras.mixed_precision.Policy('mixed_bfloat16'))
    layer.build([1, 1])
    return tf.distribute.get_replica_context().merge_call(
        lambda strategy, variable: merged.append(variable),
        (layer.kernel,))

  with tf.Graph().as_default(), strategy.scope():
    strategy.extended.call_for_each_replica(
        branching.with_merges_in_branches(strategy, replica, alone=print))
    assert merged == tf1.trainable_variables()[:1]


@pytest.mark.parametrize('use_resource', [True, False])
def test_control_flow_v1_is_for_reference_variables(behavior, use_resource):
  enabled = tf1.control_flow_v2_enabled()
  with tf.Graph().as_default() as graph:
    v = tf1.get_variable('v', initializer=1.0, use_resource=use_resource)
    branching.cond(tf1.placeholder(tf.bool, []), lambda: tf.constant(1.0),
                   lambda: tf.constant(2.0), [v])
    types = {op.type for op in graph.get_operations()}
  is_v2 = bool(types & {'If', 'StatelessIf'})
  assert is_v2 == (enabled and use_resource)
  assert ('Merge' in types) != is_v2
  assert tf1.control_flow_v2_enabled() == enabled


@pytest.mark.parametrize('use_resource', [False, True])
def test_rows_are_read_after_an_update(behavior, use_resource):
  cluster = clusters.in_process_cluster(num_workers=1)
  with tf.Graph().as_default() as graph, tf.device('/job:worker/task:0'):
    # What a model reads is a copy on its worker, made before the update.
    with tf.device('/job:ps/task:0'):
      v = tf1.get_variable('v', initializer=[[1.0], [2.0], [3.0]],
                           use_resource=use_resource,
                           caching_device='/job:worker/task:0')
    update = tf1.assign_add(v, v * 0.0 + 3.0)
    with tf.device('/job:ps/task:0'), tf.control_dependencies([update.op]):
      rows = branching.read_rows(v, tf.constant([2, 0, 2]))
    with cluster.session(0, graph) as session:
      session.run(tf1.global_variables_initializer())
      np.testing.assert_array_equal(session.run(rows), [[6.0], [4.0], [6.0]])


# Strategies whose variables have the names of one device.
_STRATEGIES = {
    'cross shard': distribute.CrossShardStrategy,
    'elastic': lambda devices: distribute.ElasticAverageStrategy(
        communication_period=1, moving_rate=0.5, devices=devices),
}


def _names_of_state(strategy):
  """Returns all names of a model whose optimizer is applied in scopes."""

  def step():
    w = tf1.get_variable('w', initializer=[1.0])
    with tf1.variable_scope('train'), tf.name_scope('adam'):
      return tf1.train.AdamOptimizer(0.1).apply_gradients(
          [(tf.ones([1]), w)], tf1.train.get_global_step())

  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    strategy.extended.call_for_each_replica(step)
    return [variable.name for variable in tf1.global_variables()]


@pytest.mark.parametrize('name', _STRATEGIES)
def test_scopes_of_a_merge_call_are_entered_once(behavior, name):
  plain = _names_of_state(tf.distribute.get_strategy())
  assert 'train/adam/beta1_power:0' in plain
  assert plain == _names_of_state(_STRATEGIES[name](['/cpu:0', '/cpu:1']))
