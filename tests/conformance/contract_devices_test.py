# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every wrapper on two devices trains as the bare optimizer does there."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

# Settings under which the rule does nothing; the bare optimizer sums over the
# replicas.
WRAPPERS = {
    'CrossShardOptimizer': lambda opt, variables: tfplugin.CrossShardOptimizer(
        opt, tf1.losses.Reduction.SUM),
    'DropStaleGradientOptimizer': lambda opt, variables: (
        tfplugin.DropStaleGradientOptimizer(opt, staleness=1000)),
    'TowerOptimizer': lambda opt, variables: tfplugin.TowerOptimizer(opt),
    'VariableClippingOptimizer': lambda opt, variables: (
        tfplugin.VariableClippingOptimizer(
            opt, {v: [1] for v in variables}, 1e4)),
}
# Elastic averaging on several devices is ElasticAverageStrategy's.
_ELSEWHERE = {'ElasticAverageOptimizer'}

NESTS = {f'{outer}({inner})': (
    lambda opt, variables, outer=outer, inner=inner: WRAPPERS[outer](
        WRAPPERS[inner](opt, variables), variables))
         for outer, inner in itertools.permutations(WRAPPERS, 2)}


def _bare(opt, variables):
  del variables
  return opt


def _train(wrap):
  """Values of all copies after three steps of Adam on two devices."""
  strategy = tf.distribute.MirroredStrategy(
      ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())
  with tf.Graph().as_default(), strategy.scope():
    step = tf1.train.get_or_create_global_step()

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      dense = tf1.get_variable(
          'dense', initializer=tf.ones([2, 3]), use_resource=True)
      table = tf1.get_variable(
          'table', initializer=tf.ones([5, 2]), use_resource=True)
      rows = tf1.nn.embedding_lookup(
          table, tf.gather(tf.constant([[1, 1, 3], [0, 3, 3]]), index))
      loss = tf.reduce_sum(rows ** 2) + tf.reduce_sum(dense ** 2) * (
          tf.cast(index, tf.float32) + 1.0)
      optimizer = wrap(tf1.train.AdamOptimizer(0.125), [dense, table])
      return optimizer.minimize(loss, step), dense, table

    results = strategy.run(replica)
    train_op, *variables = tf.nest.map_structure(
        strategy.experimental_local_results, results)
    with tf1.Session() as session:
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      for _ in range(3):
        session.run(train_op)
      return session.run([variables, step])


@functools.cache
def _train_bare(behavior):
  del behavior  # the key
  return _train(_bare)


@pytest.mark.sampled(4)
@pytest.mark.parametrize('name', [*WRAPPERS, *NESTS])
def test_two_devices_equal_the_bare_optimizer(behavior, name):
  values, step = _train({**WRAPPERS, **NESTS}[name])
  expected, _ = _train_bare(behavior)
  assert step == 3
  for value, want in zip(tf.nest.flatten(values), tf.nest.flatten(expected)):
    np.testing.assert_array_equal(value, want)


def test_every_public_optimizer_has_an_entry():
  public = {name for name in tfplugin.__all__ if name.endswith('Optimizer')}
  assert public == set(WRAPPERS) | _ELSEWHERE
