# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The threads of communications: in each form, at errors, at the end."""

from __future__ import annotations

import threading
import time
from typing import Any
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.elastic.values import first_values
from tfplugin.distribute.sessions import refused_runs
from tfplugin.testing import clusters

tf1 = tf.compat.v1

SETTINGS = {'communication_period': 2, 'moving_rate': 0.25, 'overlap': True}


def _threads():
  return [t for t in threading.enumerate() if t.name == 'elastic exchange']


@pytest.fixture(name='nothing_is_left', autouse=True)
def fixture_nothing_is_left():
  yield
  for thread in _threads():
    thread.join(60)
  assert not _threads()


def model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=1.0)
  train_op = elastic_graphs.sgd(0.25).minimize(
      w * w / 2, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=w * 1.0, train_op=train_op)


def _expected(values):
  """After 4 steps; the second communication waited for the first one.

  That may have been taken at the end of step 3 or 4; the second one has reached
  the centre at the end of the session, and never the copy.
  """
  x, center = 9 / 16, 1.0
  d = (x - center) / 4
  copies = {((x * 3 / 4 - d) * 3 / 4), x * 9 / 16 - d}
  centers = {center + d + (copy - center - d) / 4 for copy in copies}
  assert values['w'] in copies
  assert values['center'] in centers | {center + d}


def _train(spec, steps=4):
  """A session as Estimator makes it; reads after it has ended its hooks."""
  copy, = tf1.trainable_variables()
  center, = [v for v in tf1.global_variables() if 'w' in v.op.name]
  reads = {'w': copy.value(), 'center': tf.identity(center)}
  raw = []
  with tf1.train.SingularMonitoredSession(
      spec.training_hooks, spec.scaffold) as session:
    assert len(_threads()) == 1
    for _ in range(steps):
      session.run(spec.train_op)
    raw.append(session.raw_session().run(reads))
  return raw[0]


def test_the_decorator_brings_the_thread(behavior):
  del behavior
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    decorated = estimator.elastic_average(model_fn, **SETTINGS)
    _expected(_train(decorated_models.call(decorated, 'train', None)))


def test_the_strategy_brings_the_thread(behavior):
  del behavior
  strategy = elastic_average_strategy.ElasticAverageStrategy(**SETTINGS)
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    _expected(_train(strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(model_fn),
        args=(None, None, 'train'))))


class Optimizer:
  """One worker of a cluster, in a graph of its own."""

  def __init__(self, cluster, **kwargs):
    self.cluster, self.graph = cluster, tf.Graph()
    with self.graph.as_default(), tf1.device(cluster.device_setter(0)):
      getter = elastic_graphs.Getter('/job:worker/task:0')
      with getter.scope():
        self.local = tf1.get_variable('w', initializer=1.0, use_resource=True)
      self.step = tf1.train.create_global_step()
      self.optimizer = optimizer = elastic_graphs.make_optimizer(
          getter, elastic_graphs.sgd(0.25), **{**SETTINGS, **kwargs})
      self.train = optimizer.minimize(self.local ** 2 / 2, self.step)
      self.center = getter.pairs[0].center
      self.hook = optimizer.make_session_run_hook(True, 0)
      self.break_center = self.center.assign(np.inf)

  def session(self, *more_hooks):
    with self.graph.as_default():
      return tf1.train.MonitoredTrainingSession(
          self.cluster.target('worker', 0), hooks=[self.hook, *more_hooks],
          save_checkpoint_secs=None, save_summaries_steps=None,
          log_step_count_steps=None)


@pytest.fixture(name='cluster', scope='module')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1)


def test_every_communication_is_made_once(cluster):
  for _ in range(2):  # The second session finds the queues of the first.
    worker = Optimizer(cluster)
    with worker.session() as session:
      for _ in range(11):
        session.run(worker.train)
    assert not _threads()
  with tf1.Session(cluster.target('worker', 0), worker.graph) as session:
    # 5 in the second session, all of which have reached the step.
    assert session.run(worker.step) == 5


def test_its_error_is_that_of_a_step(cluster):
  worker = Optimizer(cluster, communication_period=1, on_nonfinite='raise')
  with pytest.raises(tf.errors.InvalidArgumentError,
                     match='infinity.*global_center_variable/w'):
    with worker.session() as session:
      session.run(worker.train)
      session.run(worker.break_center)
      for _ in range(3):
        session.run(worker.train)


def test_it_ends_with_a_session_that_fails(cluster):
  worker = Optimizer(cluster)
  with pytest.raises(KeyError):
    with worker.session() as session:
      session.run(worker.train)
      assert len(_threads()) == 1
      raise KeyError('of the program')


class LostOnce(separate_run.SeparateRun):
  """An exchange whose first run finds that a parameter server is gone."""

  def __init__(self):
    super().__init__('')
    self.runs, self._run = 0, self._begun.dequeue()

  @property
  def run(self):
    self.runs += 1
    if self.runs == 1:
      raise tf.errors.UnavailableError(None, None, 'lost')
    return self._run


def test_a_session_that_recovers_does_so_here_too():
  with tf.Graph().as_default():
    exchange, step = LostOnce(), tf.constant(1)
    with tf1.train.MonitoredSession(
        hooks=[separate_run.ExchangeThreads([exchange])]) as session:
      while exchange.runs < 2:
        session.run(step)
      assert len(_threads()) == 1


def test_a_run_that_is_refused_does_not_wait_for_ever(cluster, monkeypatch):
  """Of the first session no run writes its mark."""
  original, sessions = refused_runs.RefusedRuns.run, []
  has_asked, watches = threading.Event(), []

  def run(self, session, fetches):
    if session not in sessions:
      sessions.append(session)
      # Only the first session's limit ends at once.
      monkeypatch.setattr(
          refused_runs, '_OF_FIRST', 1e-6 if len(sessions) == 1 else 1e6)
    if len(sessions) == 1:
      watches.extend(
          t for t in threading.enumerate() if t.name == refused_runs.WATCH)
      self._asked = (time.monotonic(), True)
      has_asked.set()
      return session.run(fetches)
    return original(self, session, fetches)

  monkeypatch.setattr(refused_runs.RefusedRuns, 'run', run)
  monkeypatch.setattr(refused_runs, '_LOOK_SECS', 0.01)
  worker = Optimizer(cluster)
  with worker.graph.as_default(), worker.session() as session:
    session.run(worker.train)  # The exchange waits for the next step.
    assert has_asked.wait(60)
    assert len(watches) == 1
    # The session may be a second one by now, with a watch of its own.
    watches[0].join(60)
    assert not watches[0].is_alive()
    for _ in range(4):
      session.run(worker.train)
    assert len(_threads()) == 1
  assert len(sessions) == 2


def test_a_server_that_is_lost_at_the_end_is_missed_only_by_overlap():
  """It has ended before the worker, whose step does not wait for it."""
  with tf.Graph().as_default(), tf1.Session() as session:
    for is_awaited in (True, False):
      exchange = LostOnce()
      exchange.is_awaited = is_awaited
      hook = separate_run.ExchangeThreads([exchange])
      hook.after_create_session(session, tf.train.Coordinator())
      for thread in _threads():
        thread.join(60)
      if is_awaited:
        hook.end(session)
      else:
        with pytest.raises(tf.errors.UnavailableError, match='lost'):
          hook.end(session)


def test_two_hooks_of_a_session_make_the_runs_once(cluster):
  worker = Optimizer(cluster, overlap=False)
  with worker.graph.as_default():
    more = worker.optimizer.make_session_run_hook(True, 0)
    with worker.session(more) as session:
      for _ in range(5):
        session.run(worker.train)
      assert len(_threads()) == 1
  assert not _threads()


class Result(NamedTuple):
  """A function's own, which knows of no hooks."""

  train_op: Any


def _run_twice(overlap, make_result=lambda spec: spec):
  strategy = elastic_average_strategy.ElasticAverageStrategy(overlap=overlap)
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    for name in ('first', 'second'):
      with tf1.variable_scope(name):
        yield strategy.extended.call_for_each_replica(
            tf.autograph.experimental.do_not_convert(
                lambda: make_result(model_fn(None, None, 'train'))))


def test_a_result_without_a_place_for_hooks():
  first = next(_run_twice(False, lambda spec: Result(spec.train_op)))
  assert isinstance(first.train_op, tf.Operation)
  with pytest.raises(ValueError, match='`overlap` must be False where the'):
    next(_run_twice(True, lambda spec: Result(spec.train_op)))


def test_a_second_step_of_the_graph_is_refused():
  assert len(list(_run_twice(False))) == 2
  steps = _run_twice(True)
  # The other hook is of values that are written before the first step.
  assert [type(hook) for hook in next(steps).training_hooks][1:] == [
      separate_run.ExchangeThreads, first_values.FirstValues]
  with pytest.raises(RuntimeError, match='several training steps in one graph'):
    next(steps)


@pytest.mark.parametrize('settings, argument, remedy', [
    ({'update_order': 'elastic_first'}, 'update_order', "'gradient_first'"),
    ({'sparse_exchange': True}, 'sparse_exchange', 'Leave out one'),
    ({'devices': ['/cpu:0', '/cpu:1']}, 'overlap', 'Leave it out')])
def test_what_does_not_go_with_it_is_refused(settings, argument, remedy):
  with pytest.raises(ValueError, match=f'`{argument}` (must|cann).*{remedy}'):
    elastic_average_strategy.ElasticAverageStrategy(overlap=True, **settings)


def test_a_rate_of_the_graph_is_refused():
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='`moving_rate` cannot.*Pass a number'):
      elastic_graphs.make_optimizer(
          elastic_graphs.Getter(''), moving_rate=tf.constant(0.5), overlap=True)


def test_a_strategy_without_a_spec_is_refused():
  strategy = elastic_average_strategy.ElasticAverageStrategy(overlap=True)
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(ValueError, match='`overlap` must be False where the'):
      strategy.run(tf.autograph.experimental.do_not_convert(
          lambda: model_fn(None, None, 'train').train_op))


def test_a_step_that_counts_by_a_value_of_its_own_is_refused(behavior):
  del behavior

  def counting(features, labels, mode):
    spec = model_fn(features, labels, mode)
    with tf1.control_dependencies([spec.train_op]):
      return spec._replace(train_op=tf.group(
          tf1.train.get_global_step().assign_add(
              tf.identity(tf.constant(1, tf.int64)))))

  strategy = elastic_average_strategy.ElasticAverageStrategy(overlap=True)
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    with pytest.raises(ValueError, match='advanced by a value that the step'):
      strategy.extended.call_for_each_replica(
          tf.autograph.experimental.do_not_convert(counting),
          args=(None, None, 'train'))
