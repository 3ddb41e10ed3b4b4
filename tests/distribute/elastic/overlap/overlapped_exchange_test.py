# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One worker whose communications take as many steps as the test says."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs

tf1 = tf.compat.v1

ETA, RATE = 0.25, 0.25


class Worker:
  """x * x / 2 for each element of x; the test runs the communications."""

  def __init__(self, value=1.0, center=None, is_served=True, opt=None,
               use_resource=True, **kwargs):
    kwargs = {'moving_rate': RATE, 'overlap': True, **kwargs}
    self.graph = tf.Graph()
    with self.graph.as_default():
      self.step_count = tf1.train.create_global_step()
      getter = elastic_graphs.Getter('')
      self.local = elastic_graphs.variable(
          getter, value=np.float64(value), use_resource=use_resource)
      self.optimizer = elastic_graphs.make_optimizer(
          getter, opt or elastic_graphs.sgd(ETA), **kwargs)
      self.center = getter.pairs[0].center
      self._train = self.optimizer.minimize(
          tf.reduce_sum(self.local ** 2) / 2, self.step_count)
      self.exchange, = self.optimizer.runs
      self.session = elastic_graphs.session(self.optimizer)
      self.session.run([v.initializer for v in self.optimizer.variables()])
      self._new_center = tf1.placeholder(tf.float64)
      self._set_center = self.center.assign(self._new_center)
      if center is not None:
        self.set_center(center)
      if is_served:
        self.session.run(self.exchange.serve)

  def train(self):
    self.session.run(self._train)

  def communicate(self):
    return self.session.run(self.exchange.run)

  def set_center(self, value):
    self.session.run(self._set_center, {self._new_center: value})

  def values(self):
    return self.session.run([self.local, self.center])


class Rule:
  """The equations of docs/exchange.md."""

  def __init__(self, value=1.0, center=None):
    self.x = np.float64(value)
    self.center = self.x if center is None else np.float64(center)
    self.difference = None

  def train(self):
    self.x = self.x - ETA * self.x

  def begin(self):
    self.snapshot = self.x

  def communicate(self):
    self.difference = RATE * (self.snapshot - self.center)
    self.center = self.center + self.difference

  def take(self):
    self.x = self.x - self.difference


@pytest.mark.parametrize('use_resource', [True, False])
@pytest.mark.parametrize('period, delay', [
    (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_difference_is_of_the_copy_as_it_was(
    behavior, period, delay, use_resource):
  """It is taken at the end of the step that is `delay` after the one due."""
  del behavior
  worker = Worker(communication_period=period, use_resource=use_resource)
  rule, left = Rule(), None
  for step in range(1, 4 * period + 1):
    if left == 1:  # The communication ends while the step is made.
      assert worker.communicate() % period == period - 1
      rule.communicate()
    worker.train()
    rule.train()
    if left == 1:
      rule.take()
    left = left and left - 1
    if step % period == 0:
      rule.begin()
      left = delay
    np.testing.assert_allclose(worker.values(), [rule.x, rule.center],
                               rtol=1e-12)
  # The last one is on its way.
  assert worker.session.run(worker.step_count) == 3


def test_numbers_of_a_reader():
  """Period 2, rates 1/4, from 1: 3/4, 9/16; then d = (9/16 - 1) / 4."""
  worker = Worker(communication_period=2)
  for _ in range(3):
    worker.train()
  assert worker.values() == [27 / 64, 1.0]
  worker.communicate()
  assert worker.values() == [27 / 64, 1 - 7 / 64]
  worker.train()
  assert worker.values() == [81 / 256 + 7 / 64, 57 / 64]


def test_a_step_that_is_due_waits_for_the_one_before():
  worker = Worker(communication_period=2)
  for _ in range(3):
    worker.train()
  thread = threading.Thread(target=worker.train)
  thread.start()
  thread.join(1)
  assert thread.is_alive()
  assert worker.communicate() == 1
  thread.join(60)
  assert not thread.is_alive()
  # As above, and the next one has begun.
  assert worker.values() == [81 / 256 + 7 / 64, 57 / 64]
  assert worker.communicate() == 3


def test_period_and_delay_of_one_are_the_papers_rule():
  """There the difference is that of the copy before the gradient step."""
  worker = Worker(3.0, center=1.0, communication_period=1)
  worker.train()
  x, center = 3.0 * (1 - ETA), 1.0
  for _ in range(5):
    worker.communicate()
    worker.train()
    d = RATE * (x - center)
    x, center = x - ETA * x - d, center + d
    np.testing.assert_allclose(worker.values(), [x, center])


def test_penalty_pulls_to_the_centre_that_came_with_the_difference(behavior):
  del behavior
  rho = 0.5
  worker = Worker(2.0, center=1.0, communication_period=2, rho=rho)
  # The worker began at a centre of 2.
  x, center, seen, snapshot = 2.0, 1.0, 2.0, None
  for step in range(1, 9):
    if step > 2 and step % 2:
      worker.communicate()
      difference, came = RATE * (snapshot - center), center
      center += difference
    worker.train()
    x -= ETA * (x + rho * (x - seen))
    if step > 2 and step % 2:
      x, seen = x - difference, came
    if step % 2 == 0:
      snapshot = x
    np.testing.assert_allclose(worker.values(), [x, center])


@pytest.mark.parametrize('dtype, exact', [('float16', 2e-3), ('int8', 2e-2)])
def test_a_smaller_type_may_overlap(behavior, dtype, exact):
  """What a copy loses the centre gains, or is going to."""
  del behavior
  value = np.random.RandomState(0).randn(300)
  worker = Worker(value, communication_period=2, exchange_dtype=dtype)
  rule = Rule(value)
  for step in range(1, 10):
    before, center = worker.values()
    if step > 1 and step % 2:
      worker.communicate()
      rule.communicate()
    worker.train()
    rule.train()
    if step > 1 and step % 2:
      rule.take()
      # In float16 a copy loses what the centre gains.
      after, gained = worker.values()
      if dtype == 'float16':
        np.testing.assert_allclose(
            before * (1 - ETA) - after, gained - center, atol=1e-12)
    if step % 2 == 0:
      rule.begin()
    np.testing.assert_allclose(
        worker.values(), [rule.x, rule.center], atol=exact)


def test_a_session_without_the_hook_is_refused(behavior):
  del behavior
  worker = Worker(communication_period=2, is_served=False)
  worker.train()
  with pytest.raises(tf.errors.InvalidArgumentError,
                     match='`overlap` must be False in a session without'):
    worker.train()


def test_a_difference_that_is_not_finite_is_not_taken(behavior):
  del behavior
  worker = Worker(communication_period=1, on_nonfinite='drop')
  worker.train()
  worker.set_center(np.inf)
  worker.communicate()
  assert worker.session.run(worker.step_count) == 0
  worker.set_center(1.0)
  worker.train()
  assert worker.values() == [9 / 16, 1.0]


def test_end_lets_the_run_end():
  worker = Worker(communication_period=1)
  worker.session.run(worker.exchange.stop)
  assert worker.communicate() == -1
  worker.session.run(worker.exchange.serve)
  worker.train()
  assert worker.communicate() == 0


def test_a_failed_communication_lets_the_step_go_on():
  worker = Worker(communication_period=1)
  worker.train()
  worker.session.run(worker.exchange.fail)
  worker.train()
  assert worker.values() == [9 / 16, 1.0]
