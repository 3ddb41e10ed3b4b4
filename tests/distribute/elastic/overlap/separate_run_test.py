# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchanges that are session runs of their own, of a step that waits for them.

A session without the hook makes them in the step; both train alike, to the bit.
"""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.elastic import transfers
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.bin.processes import ports
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.testing import clusters

tf1 = tf.compat.v1

PERIOD, STEPS = 3, 8
NOTHING_SAVED = {'save_checkpoint_secs': None, 'save_summaries_steps': None,
                 'log_step_count_steps': None}
DEVICE = '/job:worker/task:0'
# With one parameter server; tests/distribute/elastic/pair_moves_packed_test.py
# explains them.
IN_THE_STEP = {('worker', 'ps'): 3, ('ps', 'worker'): 2}


@pytest.fixture(name='cluster', scope='module')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1)


def _loss(table, weight):
  rows = tf.gather(table, [0, 2, 2])
  random = np.random.RandomState(0)
  return tf.reduce_sum(tf.tanh(rows @ tf.constant(
      random.randn(2, 3), tf.float32)) * weight)


class Worker:
  """A worker whose session may have the `hook` or not."""

  def __init__(self, cluster, name, opt=tf1.train.MomentumOptimizer,
               use_resource=True, has_rate=True, **settings):
    settings = {'communication_period': PERIOD, 'moving_rate': 0.3, **settings}
    random = np.random.RandomState(1)
    self._cluster, self.graph = cluster, tf.Graph()
    with self.graph.as_default(), self.graph.container(name), tf1.device(
        cluster.device_setter(0)):
      self.step = tf1.train.create_global_step()
      getter = elastic_graphs.Getter(DEVICE)
      with getter.scope():
        variables = [tf1.get_variable(
            name, initializer=random.randn(*shape).astype(np.float32),
            use_resource=use_resource)
                     for name, shape in (('table', (4, 2)), ('weight', (3,)))]
        # Not trained and not written by the step: a program sets it.
        self.rate = tf1.get_variable(
            'rate', initializer=0.5, trainable=False,
            use_resource=use_resource) if has_rate else tf.constant(0.5)
      if settings['moving_rate'] == 'tensor':
        settings['moving_rate'] = tf.constant(0.3)
      optimizer = elastic_graphs.make_optimizer(
          getter, opt(0.1, *[0.9] * (opt is tf1.train.MomentumOptimizer)),
          **settings)
      self.train = optimizer.minimize(_loss(*variables) * self.rate, self.step)
      self.hook = optimizer.make_session_run_hook(True, 0)
      self.runs = optimizer.runs
      self.reads = [self.step, *variables,
                    *(pair.center for pair in getter.pairs),
                    *optimizer.variables()]
      self.lower_rate = self.rate.assign(0.25) if has_rate else None
      self.break_center = getter.pairs[0].center.assign(
          np.full([4, 2], np.inf, np.float32))
      self.init = tf1.global_variables_initializer(), (
          tf1.local_variables_initializer()), optimizer.get_init_op(0)

  def plain(self):
    """A session without the hook."""
    session = self._cluster.session(0, self.graph)
    for op in self.init:
      session.run(op)
    return session

  def hooked(self):
    """A session with the hook."""
    with self.graph.as_default():
      self.hook.begin()
    session = self.plain()
    self.hook.after_create_session(session, tf.train.Coordinator())
    return session

  def monitored(self, *hooks, **kwargs):
    """A session as a program makes it, of hooks that include the own one."""
    with self.graph.as_default():
      return tf1.train.MonitoredTrainingSession(
          self._cluster.target('worker', 0), hooks=hooks, **NOTHING_SAVED,
          **kwargs)


def _trajectory(worker, session):
  found = []
  for step in range(STEPS):
    if step == PERIOD + 1:
      session.run(worker.lower_rate)
    session.run(worker.train)
    found.append(session.run(worker.reads))
  return found


SETTINGS = {
    'default': {},
    'reference': {'use_resource': False},
    'rho': {'rho': 0.25},
    'Adam': {'opt': tf1.train.AdamOptimizer},
    'local': {'count_steps': 'local'},
    'drop': {'on_nonfinite': 'drop'},
    'float16': {'exchange_dtype': 'float16'},
    'int8': {'exchange_dtype': 'int8'},
    'sparse': {'sparse_exchange': True},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize('settings', list(SETTINGS))
def test_no_bit_changes(behavior, cluster, settings):
  del behavior
  found = []
  for way in (Worker.plain, Worker.hooked):
    worker = Worker(cluster, f'{way.__name__}.{settings}', **SETTINGS[settings])
    with way(worker) as session:
      found.append(_trajectory(worker, session))
      if way is Worker.hooked:
        worker.hook.end(session)
  for in_step, separate in zip(*found):
    for one, other in zip(in_step, separate):
      np.testing.assert_array_equal(one, other)


def test_a_local_step_sends_nothing(behavior, cluster):
  del behavior
  worker = Worker(cluster, 'sends')
  assert len(worker.runs) == 2  # The other one is of the rate.
  with worker.hooked() as session:
    assert transfers.of(session, worker.train) == ({}, 0)
    session.run(worker.train)
    assert transfers.of(session, worker.train) == ({}, 0)  # One that is due.
    worker.hook.end(session)
    # All that is sent is of the runs.
    session.run(worker.runs[0].begin(tf.constant(2, tf.int64)))
    assert transfers.of(session, worker.runs[0].run).messages == IN_THE_STEP


def model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=[1.0, 2.0])
  loss = tf.reduce_sum(w * w)
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=elastic_graphs.sgd(0.25).minimize(
          loss, tf1.train.get_global_step()))


@pytest.fixture(name='chief')
def fixture_chief(monkeypatch):
  """A cluster with a chief, the task of TF_CONFIG; the chief's server."""
  places = [f'127.0.0.1:{port}' for port in ports.pick_free(2)]
  cluster = {'chief': places[:1], 'ps': places[1:]}
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': 'chief', 'index': 0}}))
  servers = [tf.distribute.Server(cluster, job, 0) for job in cluster]
  return servers[0].target


def _decorated(model_fn):
  config = tf1.estimator.RunConfig()
  with tf1.device(tf1.train.replica_device_setter(
      cluster=config.cluster_spec, worker_device='/job:chief/task:0')):
    tf1.train.create_global_step()
    return estimator.elastic_average(model_fn, communication_period=PERIOD)(
        None, None, 'train', config=config)


def _of_strategy(model_fn):
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=PERIOD)
  with strategy.scope():
    tf1.train.create_global_step()
    return strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(model_fn),
        args=(None, None, 'train'))


class Counting(tf1.train.SessionRunHook):
  """Notes what a hook sees of the global step around each step."""

  def __init__(self):
    self.before, self.after = [], []

  def begin(self):
    self._step = tf1.train.get_global_step()

  def before_run(self, run_context):
    self.before.append(run_context.session.run(self._step))

  def after_run(self, run_context, run_values):
    self.after.append(run_context.session.run(self._step))


@pytest.mark.parametrize('build', [_decorated, _of_strategy])
def test_every_hook_sees_the_step_of_an_exchange_at_its_end(
    behavior, chief, build):
  """Before and after the hook of the exchange in the list."""
  del behavior
  first, last = Counting(), Counting()
  with tf.Graph().as_default():
    spec = build(model_fn)
    with tf1.train.MonitoredTrainingSession(
        chief, scaffold=spec.scaffold,
        hooks=[first, *spec.training_hooks, last],
        **NOTHING_SAVED) as session:
      for _ in range(2 * PERIOD):
        session.run(spec.train_op)
      sent = session.run_step_fn(lambda step_context: transfers.of(
          step_context.session, spec.train_op))
  assert sent == ({}, 0)
  assert first.before == last.before == [0, 0, 0, 1, 1, 1]
  assert first.after == last.after == [0, 0, 1, 1, 1, 2]


class Training(tf1.train.SessionRunHook):
  """Makes steps before each step of the session, as TF-GAN's hooks do."""

  count = 0

  def __init__(self, train_op):
    self._train_op = train_op

  def before_run(self, run_context):
    for _ in range(self.count):
      run_context.session.run(self._train_op)


@pytest.mark.parametrize('is_first', [True, False])
def test_a_train_op_inside_a_hook_exchanges(cluster, is_first):
  by_hand = Worker(cluster, 'by.hand')
  with by_hand.plain() as session:
    expected = _trajectory(by_hand, session)[-1]
  worker = Worker(cluster, f'inside.{is_first}')
  training = Training(worker.train)
  hooks = [training, worker.hook] if is_first else [worker.hook, training]
  with worker.monitored(*hooks) as session:
    session.run(worker.step)  # What hooks write before it is the start.
    training.count = 2
    for step in range(0, STEPS, training.count):
      if step == PERIOD + 1:
        session.run_step_fn(
            lambda step_context: step_context.session.run(worker.lower_rate))
      session.run(worker.step)
    found = session.run_step_fn(
        lambda step_context: step_context.session.run(worker.reads))
  for one, other in zip(expected, found):
    np.testing.assert_array_equal(one, other)


def test_a_session_of_the_graph_without_the_hook_is_refused(cluster):
  worker = Worker(cluster, 'unserved')
  with worker.hooked() as session:
    session.run(worker.train)
    worker.hook.end(session)
    session.run(worker.train)
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match='must have the hook .* to its end'):
      session.run(worker.train)


def test_a_failed_exchange_is_an_error_of_its_step(cluster):
  worker = Worker(cluster, 'failed', on_nonfinite='raise')
  with pytest.raises(tf.errors.InvalidArgumentError, match='infinity.*table'):
    with worker.monitored(worker.hook) as session:
      session.run_step_fn(lambda step_context: step_context.session.run(
          worker.break_center))
      for step in range(PERIOD):
        session.run(worker.train)
        assert step < PERIOD - 1


def test_steps_inside_a_hook_end_after_a_failed_exchange(cluster):
  worker = Worker(cluster, 'failed.inside', on_nonfinite='raise')
  with pytest.raises(tf.errors.InvalidArgumentError, match='infinity.*table'):
    with worker.monitored(worker.hook) as session:
      session.run_step_fn(lambda step_context: [
          step_context.session.run(op) for op in (
              worker.break_center, *[worker.train] * 3 * PERIOD)])
      session.run(worker.step)


def test_the_limit_of_a_step_is_not_that_of_local_steps(cluster):
  """No run lasts longer than it but the one that waits for the next step."""
  worker = Worker(cluster, 'limit')
  config = tf1.ConfigProto(operation_timeout_in_ms=1500)
  with worker.monitored(worker.hook, config=config) as session:
    for _ in range(PERIOD):
      session.run(worker.train)
      time.sleep(1.0)
    assert session.run(worker.step) == 1


@pytest.mark.parametrize('settings', [
    {'communication_period': 1}, {'update_order': 'elastic_first'},
    {'moving_rate': 'tensor'}])
def test_these_stay_a_part_of_the_step(cluster, settings):
  assert not [run for run in Worker(cluster, 'stay', has_rate=False,
                                    **settings).runs]


def test_a_count_by_a_value_of_the_step_stays_a_part_of_it(chief):
  del chief

  def counting(features, labels, mode):
    spec = model_fn(features, labels, mode)
    with tf1.control_dependencies([spec.train_op]):
      return spec._replace(train_op=tf.group(
          tf1.train.get_global_step().assign_add(
              tf.identity(tf.constant(1, tf.int64)))))

  with tf.Graph().as_default():
    spec = _of_strategy(counting)
  assert not any(isinstance(hook, separate_run.ExchangeThreads)
                 for hook in spec.training_hooks)


def test_an_exchange_within_a_task_has_no_run():
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    local = elastic_graphs.variable(getter)
    optimizer = elastic_graphs.make_optimizer(
        getter, communication_period=PERIOD)
    optimizer.minimize(local * local)
    assert not optimizer.runs
