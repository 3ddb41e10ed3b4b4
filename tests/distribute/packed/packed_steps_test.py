# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the gradients and reads that a strategy's step packs."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.elastic import transfers
from tests.distribute.packed import packed_programs
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin.distribute.packed import packing
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=1)


def _strategy(cluster):
  return distribute.PackedParameterServerStrategy(
      tf.distribute.cluster_resolver.SimpleClusterResolver(
          cluster.cluster_spec, task_type='worker', task_id=0))


def _variables(number, **kwargs):
  return [tf1.get_variable(f'v{index}', [2], initializer=(
      tf1.constant_initializer(index + 1.0)), **kwargs)
          for index in range(number)]


def _worker(cluster, build):
  def model_fn(features, labels, mode):
    del features, labels
    return build(mode)

  return strategy_worker.StrategyWorker(
      _strategy(cluster), model_fn, cluster.target('worker', 0))


def test_a_gradient_that_is_applied_twice_and_none(behavior, cluster):
  """With rate 1 and the loss sum(v * v): v - 2 v for each time."""
  del behavior

  def build(mode):
    first, second, third = _variables(3)
    loss = tf.reduce_sum(first * first + second * second) + (
        0.0 * tf.stop_gradient(tf.reduce_sum(third)))
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(loss, [first, second, third])
    assert pairs[2][0] is None
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.apply_gradients(
            pairs, tf1.train.get_global_step()))

  worker = _worker(cluster, build)
  worker.step()
  for name, value in ('v0', -1.0), ('v1', -2.0), ('v2', 3.0):
    np.testing.assert_array_equal(worker.value(name), [value] * 2)
  worker.close()


def test_types_and_sizes_go_by_themselves(behavior, cluster, monkeypatch):
  """Two messages each way for two types, one more for a large variable."""
  del behavior
  monkeypatch.setattr(packing, 'MAX_BYTES', 64)

  def build(mode, with_large):
    floats = _variables(4)
    doubles = [tf1.get_variable(f'd{index}', [3], tf.float64)
               for index in range(4)]
    large = [tf1.get_variable('large', [17])] if with_large else []
    loss = tf.add_n([tf.reduce_sum(tf.square(v))
                     for v in floats + large]) + tf.cast(
        tf.add_n([tf.reduce_sum(tf.square(v)) for v in doubles]), tf.float32)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=packed_programs.sgd().minimize(
            loss, tf1.train.get_global_step()))

  found = []
  for with_large in False, True:
    worker = _worker(cluster, functools.partial(
        build, with_large=with_large))
    found.append(transfers.of(worker.session, worker.spec.train_op).messages)
    worker.close()
  for way in ('ps', 'worker'), ('worker', 'ps'):
    assert found[1][way] == found[0][way] + 1
  assert found[0]['ps', 'worker'] <= 4


def test_a_call_that_is_no_whole_step_is_not_changed(behavior, cluster):
  """What it returns may be differentiated: no variable is connected."""
  del behavior
  strategy = _strategy(cluster)
  with tf.Graph().as_default(), strategy.scope():
    variables = _variables(3)
    losses = strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(
            lambda: [tf.reduce_sum(v * v) for v in variables]))
    gradients = tf.gradients(losses[0], variables)
  assert [gradient is None for gradient in gradients] == [False, True, True]


def test_values_that_are_reduced_to_a_device(behavior, cluster):
  del behavior
  strategy = _strategy(cluster)
  with tf.Graph().as_default(), strategy.scope():
    reduced = strategy.extended.batch_reduce_to('SUM', [
        (tf.constant([1.0, 2.0]), '/job:worker/task:0/device:CPU:0')] * 2)
    with tf1.Session(cluster.target('worker', 0)) as session:
      for value in session.run([
          strategy.experimental_local_results(each)[0] for each in reduced]):
        np.testing.assert_array_equal(value, [1.0, 2.0])
