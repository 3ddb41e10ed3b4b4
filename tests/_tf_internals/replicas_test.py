# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replicas have the losses of one device."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin.testing import devices

tf1 = tf.compat.v1

_X = np.ones([4, 2], np.float32)


def _clipped(devices):
  return distribute.VariableClippingStrategy(tf.distribute.MirroredStrategy(
      devices, tf.distribute.ReductionToOneDevice()), {'.*': 0}, 100.0)


@pytest.mark.parametrize('strategy', [
    distribute.CrossShardStrategy, distribute.ElasticAverageStrategy, _clipped])
@pytest.mark.parametrize('make', [
    lambda x, reuse, reg: tf1.layers.dense(
        x, 1, name='dense', reuse=reuse, use_bias=False,
        kernel_initializer=tf1.ones_initializer(), kernel_regularizer=reg),
    lambda x, reuse, reg: x @ tf1.get_variable(
        'w', initializer=np.ones([2, 1], np.float32), regularizer=reg)])
def test_each_replica_has_the_loss_of_a_regularizer(behavior, strategy, make):
  strategy = strategy(devices=devices.make_logical_cpus(2))
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():

    def replica():
      with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
        for reuse in (None, True):  # The second time adds none.
          make(tf.constant(_X), reuse, lambda w: 3.0 * tf.reduce_sum(w))
      loss = tf1.losses.get_regularization_loss()
      weights, = (v for v in tf1.trainable_variables())
      return loss, tf1.gradients(loss, [weights])[0]

    losses, gradients = map(
        strategy.experimental_local_results, strategy.run(replica))
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    assert session.run(losses) == (6.0, 6.0)
    np.testing.assert_array_equal(session.run(gradients), [[[3.0]] * 2] * 2)


def _getter(make):
  with tfplugin.ElasticAverageCustomGetter('').scope():
    return make()


def _custom_getter(make):
  with tf1.variable_scope(
      '', custom_getter=tfplugin.ElasticAverageCustomGetter('')):
    return make()


def _strategy(make):
  strategy = distribute.ElasticAverageStrategy(communication_period=1)
  with strategy.scope():
    return strategy.extended.call_for_each_replica(make)


@pytest.mark.parametrize('build', [
    lambda make: make(), _getter, _custom_getter, _strategy])
@pytest.mark.parametrize('partitioner', [
    None, tf1.fixed_size_partitioner(2)])
def test_a_layer_that_is_reused_adds_its_loss_once(
    behavior, build, partitioner):
  """A discriminator, called for real rows and for others."""

  def make():
    tf1.train.get_or_create_global_step()
    with tf1.variable_scope('net', partitioner=partitioner):
      for reuse in (None, True):
        tf1.layers.dense(
            tf.constant(_X), 2, name='dense', reuse=reuse,
            kernel_initializer=tf1.ones_initializer(),
            kernel_regularizer=tf.reduce_sum)
      # As contrib's `l2_regularizer(0.0)`.
      tf1.layers.dense(
          tf.constant(_X), 2, kernel_regularizer=lambda w: None,
          kernel_initializer=tf1.ones_initializer())
    return tf1.losses.get_regularization_loss()

  with tf.Graph().as_default(), tf1.Session() as session:
    loss = build(make)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    assert session.run(loss) == 4.0


def test_each_replica_has_its_own_tensors(behavior):
  strategy = distribute.CrossShardStrategy(devices.make_logical_cpus(2))
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    tf1.add_to_collection('decays', tf.constant(10.0))

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      loss = 1.0 + tf.cast(index, tf.float32)
      tf1.losses.absolute_difference(0.0, loss)
      tf1.add_to_collection('decays', loss)
      return tf1.losses.get_total_loss(), tf.add_n(
          tf1.get_collection('decays'))

    losses, decays = map(
        strategy.experimental_local_results, strategy.run(replica))
    assert session.run(losses) == (1.0, 2.0)
    assert session.run(decays) == (11.0, 12.0)
