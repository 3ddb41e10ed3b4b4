# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers that restart, come late or are slow, against a replay in numpy.

A worker that starts again has new variables. Were they pushed before it has
read the centre, they would become the state of the whole cluster.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_RATE, _MOVING_RATE, _PERIOD = 0.125, 0.25, 2
_TARGET = np.array([3.0, -2.0])
_START = 10.0  # Far from the target, and from what is learnt.


def _model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable(
      'w', [2], initializer=tf1.constant_initializer(_START))
  loss = 0.5 * tf.reduce_sum(tf.square(w - _TARGET.astype(np.float32)))
  train_op = tf1.train.GradientDescentOptimizer(_RATE).minimize(
      loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class _Replay:
  """The rule, worker by worker; one that starts takes the centre."""

  def __init__(self):
    self.center, self.locals, self.steps = np.full(2, _START), {}, {}
    self.communications = 0

  def start(self, index):
    self.locals[index], self.steps[index] = self.center.copy(), 0

  def step(self, index):
    self.locals[index] -= _RATE * (self.locals[index] - _TARGET)
    self.steps[index] += 1
    if self.steps[index] % _PERIOD == 0:
      difference = _MOVING_RATE * (self.locals[index] - self.center)
      self.locals[index] -= difference
      self.center = self.center + difference
      self.communications += 1


def _start(cluster, index):
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, task_type='worker', task_id=index)
  return strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          resolver, communication_period=_PERIOD, moving_rate=_MOVING_RATE),
      _model_fn, cluster.target('worker', index), is_chief=index == 0)


# A number is a step of that worker, `+1` a start of worker 1: the first one, or
# after its death, wherever it was.
@pytest.mark.parametrize('events', [
    '+0 +1 0 1 1 0 1 +1 1 1 0 +1 1 0 1 1',
    '+0 0 0 0 0 +1 1 1 0 1 1 0',
    '+0 +1 ' + '0 ' * 10 + '1 ' + '0 ' * 10 + '1',
], ids=['restarts', 'late', 'ten times slower'])
def test_the_state_is_that_of_the_replay(behavior, events):
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  workers, replay = {}, _Replay()
  for event in events.split():
    index = int(event[-1])
    if event[0] == '+':
      if index in workers:
        workers[index].close()
      workers[index] = _start(cluster, index)
      replay.start(index)
    else:
      workers[index].step()
      replay.step(index)
    np.testing.assert_allclose(
        workers[index].value('w'), replay.locals[index], rtol=1e-5)
    np.testing.assert_allclose(
        workers[index].center('w'), replay.center, rtol=1e-5)
  assert workers[0].value('global_step') == replay.communications
  for worker in workers.values():
    worker.close()
