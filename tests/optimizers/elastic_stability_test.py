# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several workers in turn: against numpy, and at the bound of stability.

On x * x / 2 a worker's step is linear in (x_1 ... x_p, centre). The matrix of a
whole round is read off the optimizer, by running it on each unit vector.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.testing import clusters

tf1 = tf.compat.v1


class _Worker:
  """One worker's graph of x * x / 2 for every element of x."""

  def __init__(self, size, num_worker, device='', setter='', **kwargs):
    self.graph = tf.Graph()
    with self.graph.as_default(), tf1.device(setter):
      getter = elastic_custom_getter.ElasticAverageCustomGetter(device)
      with tf1.variable_scope('', custom_getter=getter):
        self.local = tf1.get_variable('x', [size], tf.float64)
      eta = kwargs.pop('eta')
      optimizer = elastic_average.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(eta), num_worker, getter,
          rho=0.0, **kwargs)
      self.center = getter.pairs[0].center
      self.train = optimizer.minimize(tf.reduce_sum(self.local ** 2) / 2)
      self.start = optimizer.get_init_op(0)
      self.new_value = tf1.placeholder(tf.float64, [size])
      self.set = {name: variable.assign(self.new_value) for name, variable in
                  [('local', self.local), ('center', self.center)]}
      self.init = tf1.global_variables_initializer()
      self.local_init = tf1.local_variables_initializer()


def _matrix_of_one_worker(eta, rate):
  """The 2 x 2 matrix that one step of the optimizer applies to (x, centre)."""
  worker = _Worker(2, 1, eta=eta, communication_period=1, moving_rate=rate,
                   update_order='elastic_first')
  with tf1.Session(graph=worker.graph) as session:
    session.run(worker.init)
    session.run(worker.local_init)
    # Column 0: x = 1 and centre = 0; column 1: the reverse.
    session.run(worker.set['local'], {worker.new_value: [1.0, 0.0]})
    session.run(worker.set['center'], {worker.new_value: [0.0, 1.0]})
    session.run(worker.train)
    return np.array([session.run(worker.local), session.run(worker.center)])


def _spectral_radius_of_a_round(eta, rate, num_workers):
  step = _matrix_of_one_worker(eta, rate)
  whole = np.eye(num_workers + 1)
  for i in range(num_workers):
    matrix = np.eye(num_workers + 1)
    matrix[np.ix_([i, num_workers], [i, num_workers])] = step
    whole = matrix @ whole
  return np.abs(np.linalg.eigvals(whole)).max()


@pytest.mark.parametrize('num_workers', [1, 3, 8])
@pytest.mark.parametrize('eta', [0.1, 0.5, 1.0, 1.5])
def test_bound_of_stability(eta, num_workers):
  """The bound is exact for an odd number of workers, and near for an even one.

  A worker's matrix is symmetric and has the eigenvalue -1 at the bound, so that
  the centre turns its sign once per worker and each copy once per round. This
  repeats itself, with eigenvalue -1 of the round, for odd numbers. For 8
  workers the round is still stable at the bound, and no longer 2% beyond.
  """
  bound = (4 - 2 * eta) / (4 - eta)
  is_odd = num_workers % 2 == 1
  inside, at, beyond = [
      _spectral_radius_of_a_round(eta, rate, num_workers)
      for rate in (bound - 1e-3, bound,
                   bound + 1e-3 if is_odd else bound * 1.02)]
  assert inside < 1 < beyond
  if is_odd:
    np.testing.assert_allclose(at, 1.0, atol=1e-6)
  else:
    assert 0.99 < at < 1


@pytest.mark.parametrize('order', ['gradient_first', 'elastic_first'])
def test_two_workers_in_turn_equal_numpy(behavior, order):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=2)
  eta, rate, period = 0.25, 0.125, 2
  workers = [
      _Worker(2, 2, f'/job:worker/task:{i}', cluster.device_setter(i), eta=eta,
              communication_period=period, moving_rate=rate,
              update_order=order) for i in range(2)]
  sessions = [cluster.session(i, worker.graph)
              for i, worker in enumerate(workers)]
  center = np.array([8.0, -4.0])
  sessions[0].run(workers[0].init)
  sessions[0].run(workers[0].set['center'], {workers[0].new_value: center})
  for session, worker in zip(sessions, workers):
    session.run(worker.local_init)
    session.run(worker.start)
  local = [center.copy(), center.copy()]
  steps = [0, 0]
  for i in [0, 1, 0, 0, 1, 1, 1, 0]:
    sessions[i].run(workers[i].train)
    steps[i] += 1
    gradient = local[i].copy()
    if order == 'gradient_first':
      local[i] = local[i] - eta * gradient
    if steps[i] % period == 0:
      d = rate * (local[i] - center)
      local[i], center = local[i] - d, center + d
    if order == 'elastic_first':
      local[i] = local[i] - eta * gradient
    np.testing.assert_allclose(sessions[i].run(workers[i].local), local[i])
    for session, worker in zip(sessions, workers):
      np.testing.assert_allclose(session.run(worker.center), center)
  for session in sessions:
    session.close()
