# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of dropping stale gradients with two workers and a parameter server."""

import threading

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_LIMIT = 60


class _Worker:
  """One worker: loss w * w, the read of w held back where a gate is given."""

  def __init__(self, cluster, index, bound, gate=None, use_locking=False):
    with tf.Graph().as_default() as graph:
      with tf1.device(cluster.device_setter(index)):
        self.w = tf1.get_variable('w', initializer=1.0)
        step = self.step = tf1.train.get_or_create_global_step()
        read = self.w.read_value()
        if gate is not None:
          held = tf1.py_func(gate, [read], tf.float32, stateful=True)
          held.set_shape([])
          read = read + 0.0 * tf.stop_gradient(held)
        self.optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
            tf1.train.AdamOptimizer(0.1), bound, use_locking=use_locking)
        self.train_op = self.optimizer.minimize(read * read, global_step=step)
        self.counts = (self.optimizer.num_dropped, self.optimizer.num_applied)
        self.stale_counter = self.optimizer.stale_counter
        self.init = tf1.global_variables_initializer()
    self.session = cluster.session(index, graph)

  def run(self, fetches):
    return self.session.run(fetches)


@pytest.mark.parametrize('use_locking', [False, True])
@pytest.mark.parametrize('bound, accepted', [(4, False), (5, True)])
def test_a_slow_worker_is_5_behind_a_fast_one(
    behavior, bound, accepted, use_locking):
  reached, release = threading.Event(), threading.Event()

  def gate(value):
    reached.set()
    assert release.wait(_LIMIT)
    return value

  cluster = clusters.in_process_cluster(2)
  fast = _Worker(cluster, 0, bound, use_locking=use_locking)
  slow = _Worker(cluster, 1, bound, gate, use_locking)
  fast.run(fast.init)
  result = []
  thread = threading.Thread(target=lambda: result.append(slow.run(
      [slow.optimizer.staleness, slow.optimizer.accepted, slow.train_op])))
  thread.start()
  try:
    assert reached.wait(_LIMIT)
    for _ in range(5):
      fast.run(fast.train_op)
    before = fast.run(fast.w)
  finally:
    release.set()
    thread.join(_LIMIT)
  assert [tuple(r[:2]) for r in result] == [(5, accepted)]
  # A drop leaves the variable and the step, and counts for its worker alone.
  assert (fast.run(fast.w) != before) == accepted
  assert fast.run(fast.step) == 5 + accepted
  assert fast.run(fast.stale_counter) == (not accepted)
  assert slow.run(slow.counts) == (not accepted, accepted)
  assert fast.run(fast.counts) == (0, 5)
  for worker in (fast, slow):
    worker.session.close()


def _elastic_worker(cluster, index):
  """Returns a session and the stale_counter of a worker with its own copy."""
  with tf.Graph().as_default() as graph:
    with tf1.device(cluster.device_setter(index)):
      getter = tfplugin.ElasticAverageCustomGetter(f'/job:worker/task:{index}')
      with tf1.variable_scope('', custom_getter=getter):
        w = tf1.get_variable('w', initializer=1.0)
      optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
          tf1.train.AdamOptimizer(0.1), 3)
      tfplugin.ElasticAverageOptimizer(optimizer, 2, getter, rho=0.0).minimize(
          w * w, tf1.train.get_or_create_global_step())
      counter = optimizer.stale_counter
      inits = (tf1.global_variables_initializer(),
               tf1.local_variables_initializer())
  return cluster.session(index, graph), counter, inits


def test_workers_with_copies_of_their_own_count_drops_in_one_counter(behavior):
  del behavior
  cluster = clusters.in_process_cluster(2)
  session, counter, inits = _elastic_worker(cluster, 0)
  for init in inits:
    session.run(init)
  with session.graph.as_default():
    session.run(counter.assign(7.0))
  late, late_counter, (_, local_init) = _elastic_worker(cluster, 1)
  late.run(local_init)
  assert '/job:ps' in late_counter.device
  assert late.run(late_counter) == session.run(counter) == 7.0
  for each in (session, late):
    each.close()
