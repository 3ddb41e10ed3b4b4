# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the start from the centre, and of who may start and wait."""

from __future__ import annotations

import contextlib
import gc
import math
import threading

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_start
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.testing import clusters

tf1 = tf.compat.v1


_FOURS = {'initializer': [4.0, 4.0]}


class _Worker:
  """A worker that trains f(x) = sum(x) from 4."""

  def __init__(self, cluster, index, time_limit_secs=30.0, rho=0.0,
               step_device='', initial=_FOURS, **kwargs):
    self.cluster, self.index, self.graph = cluster, index, tf.Graph()
    with self.graph.as_default(), tf1.device(cluster.device_setter(index)):
      getter = elastic_custom_getter.ElasticAverageCustomGetter(
          f'/job:worker/task:{index}')
      with getter.scope():
        self.x = tf1.get_variable('x', **initial)
        self.set_value = tf1.get_variable('set', initializer=1.0,
                                          trainable=False)
      with tf1.device(step_device):
        step = tf1.train.create_global_step()
      self.optimizer = elastic_average.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(1.0), 2, getter,
          communication_period=1, moving_rate=0.5, rho=rho, **kwargs)
      self.train = self.optimizer.minimize(tf.reduce_sum(self.x), step)
      self.center = getter.pairs[0].center
      self.view = getter.pairs[0].local_center
      self.set_to_2 = self.set_value.assign(2.0)
      self.init_op = self.optimizer.get_init_op(index, time_limit_secs=0.2)
      self.hook = self.optimizer.make_session_run_hook(
          index == 0, index, time_limit_secs=time_limit_secs)

  def session(self, has_hook=True):
    with self.graph.as_default():
      return tf1.train.MonitoredTrainingSession(
          self.cluster.target('worker', self.index),
          is_chief=self.index == 0, hooks=[self.hook] if has_hook else [],
          save_checkpoint_secs=None, save_summaries_steps=None,
          log_step_count_steps=None, max_wait_secs=30,
          config=tf1.ConfigProto(device_filters=[
              '/job:ps', f'/job:worker/task:{self.index}']))


def test_late_and_restarted_workers_start_from_the_center(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  chief = _Worker(cluster, 0)
  with chief.session() as session:
    for _ in range(2):
      session.run(chief.train)
    # 4: 3, d -.5: 3.5, 3.5;   3.5: 2.5, d -.5: 3, 3.
    np.testing.assert_array_equal(session.run(chief.center), [3.0, 3.0])
    for _ in range(2):  # Late, and then once more after it has gone.
      worker = _Worker(cluster, 1)
      with worker.session() as other:
        center, x = other.run([worker.center, worker.x])
        np.testing.assert_array_equal(x, center)
        assert x[0] <= 3.0
        other.run(worker.train)


def _with_monitored_session(worker):
  return worker.session(has_hook=False)


def _with_supervisor(worker):
  with worker.graph.as_default():
    supervisor = tf1.train.Supervisor(
        is_chief=worker.index == 0, saver=None, summary_op=None,
        recovery_wait_secs=1)
    return supervisor.prepare_or_wait_for_session(
        worker.cluster.target('worker', worker.index), tf1.ConfigProto(
            device_filters=['/job:ps', f'/job:worker/task:{worker.index}']))


@contextlib.contextmanager
def _with_session(worker):
  with worker.graph.as_default(), tf1.Session(
      worker.cluster.target('worker', worker.index)) as session:
    session.run([*[tf1.global_variables_initializer()] * (worker.index == 0),
                 tf1.local_variables_initializer(), tf1.tables_initializer()])
    yield session


@pytest.mark.parametrize('is_reference', [False, True],
                         ids=['resource', 'reference'])
@pytest.mark.parametrize('make_session', [
    _with_monitored_session, _with_supervisor, _with_session])
def test_without_the_hook_a_worker_starts_from_the_center_too(
    make_session, is_reference, behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  settings = {'rho': 0.5, 'initial': {
      'shape': [2], 'use_resource': not is_reference}}
  workers = [_Worker(cluster, i, **settings) for i in range(2)]
  with make_session(workers[0]) as chief, make_session(workers[1]) as other:
    started = [session.run([worker.x, worker.center])
               for worker, session in zip(workers, (chief, other))]
    np.testing.assert_array_equal(np.ravel(started[0]),
                                  np.ravel([started[0][1]] * 2))
    np.testing.assert_array_equal(started[1], started[0])
    assert len(set(started[0][0])) == 2  # Random ones.
    chief.run(workers[0].set_to_2)
    chief.run(workers[0].train)
    center = chief.run(workers[0].center)
    assert (center != started[0][0]).all()
    late = _Worker(cluster, 1, **settings)
    with make_session(late) as session:
      np.testing.assert_array_equal(session.run(late.x), center)
      np.testing.assert_array_equal(session.run(late.view), center)
      assert session.run(late.set_value) == 2.0
      session.run(late.train)
    chief.run(workers[0].train)
    assert chief.run(workers[0].set_value) == 2.0


def test_without_the_hook_a_training_continues_from_its_center(
    behavior, tmp_path):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=1, num_ps=1)
  seen = []
  for _ in range(2):
    worker = _Worker(cluster, 0, initial={'shape': [2]})
    with worker.graph.as_default(), tf1.train.MonitoredTrainingSession(
        cluster.target('worker', 0), checkpoint_dir=str(tmp_path),
        save_summaries_steps=None, log_step_count_steps=None) as session:
      seen.append(session.run([worker.x, worker.center]))
      session.run(worker.train)
      seen.append([session.run(worker.center)] * 2)
  np.testing.assert_array_equal(seen[2], seen[1])
  assert (seen[0][0] != seen[1][0]).all()


@pytest.mark.parametrize('device, where', [
    ('/job:worker/task:1', '/job:worker/task:1'), (None, 'no device')])
def test_a_step_that_nobody_initialises_is_refused(device, where, behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  with pytest.raises(ValueError, match=f'global_step, on {where}.*outside of'):
    _Worker(cluster, 1, step_device=device).session()


def test_an_op_that_nobody_runs_is_not_made(caplog):
  cluster = clusters.in_process_cluster(num_workers=1, num_ps=1)
  with _Worker(cluster, 0).session():
    pass
  gc.collect()
  assert 'Object was never used' not in caplog.text


def test_penalty_starts_at_the_center(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  chief, late = (_Worker(cluster, index, rho=1.0) for index in range(2))
  with chief.session() as session:
    session.run(chief.train)  # 4: 3, d -.5: 3.5, 3.5.
    with late.session() as late_session:
      local_center, = [v for v in late.optimizer.variables()
                       if v.op.name == 'local_center_variable/x']
      np.testing.assert_array_equal(
          late_session.run(local_center), [3.5, 3.5])


def test_synchronous_workers_start_together_and_late_ones_at_once(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  started = threading.Event()

  def run_chief():
    with _Worker(cluster, 0, synchronous=True).session():
      started.set()

  chief = threading.Thread(target=run_chief, daemon=True)
  chief.start()
  assert not started.wait(1.0)  # It cannot: the other one does not exist.
  with _Worker(cluster, 1, synchronous=True).session():
    assert started.wait(30)
  chief.join(30)
  # The other one has gone; a restarted worker does not wait for it.
  with _Worker(cluster, 1, time_limit_secs=0.1, synchronous=True).session():
    pass


def test_a_worker_starts_as_soon_as_the_chief_has_initialised(behavior):
  """TensorFlow would ask again after 30 s, the limit of these sessions."""
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  chief, worker = _Worker(cluster, 0), _Worker(cluster, 1)
  has_started, may_end = threading.Event(), threading.Event()

  def run_chief():
    assert not has_started.wait(1.0)
    with chief.session():
      may_end.wait(30)

  thread = threading.Thread(target=run_chief, daemon=True)
  thread.start()
  with worker.session() as session:
    has_started.set()
    session.run(worker.train)
  may_end.set()
  thread.join(30)
  assert not thread.is_alive()


def test_waiting_too_long_names_the_missing_task():
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  worker = _Worker(cluster, 0, time_limit_secs=0.1, synchronous=True)
  with pytest.raises(TimeoutError, match='start of the worker with task_index '
                     '1'):
    worker.session()


def test_init_op_of_the_old_api_waits_too(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  worker = _Worker(cluster, 0, synchronous=True)
  with worker.graph.as_default():
    init = [tf1.global_variables_initializer(),
            tf1.local_variables_initializer()]
  with cluster.session(0, worker.graph) as session:
    for op in init:
      session.run(op)
    with pytest.raises(tf.errors.InvalidArgumentError, match='task_index 1'):
      session.run(worker.init_op)


def test_limit_must_be_positive():
  cluster = clusters.in_process_cluster(num_workers=1, num_ps=1)
  with pytest.raises(ValueError, match='`time_limit_secs` must be positive'):
    _Worker(cluster, 0, time_limit_secs=0)
  optimizer = _Worker(cluster, 0, synchronous=True).optimizer
  with pytest.raises(ValueError, match='`time_limit_secs` must be positive'):
    optimizer.get_init_op(0, time_limit_secs=0)


def _init_from_checkpoint(source, vocabularies):
  del vocabularies
  tf1.train.init_from_checkpoint(source, {'m/': 'm/'})


def _warm_start(source, vocabularies):
  tf1.train.warm_start(source, var_name_to_vocab_info={
      'm/rows': tf1.train.VocabInfo(vocabularies['new'], 3, 0,
                                    vocabularies['old'])})


@pytest.mark.parametrize('warm_start, expected', [
    (_init_from_checkpoint, [5.0, 6.0, 7.0]),
    (_warm_start, [7.0, 0.0, 5.0])])  # The new c, d and a; d is unknown.
def test_a_warm_start_sets_the_center(behavior, warm_start, expected, tmp_path):
  del behavior
  vocabularies = {'old': 'a\nb\nc\n', 'new': 'c\nd\na\n'}
  for name, words in vocabularies.items():
    (tmp_path / name).write_text(words)
    vocabularies[name] = str(tmp_path / name)
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('m/rows', initializer=[[5.0], [6.0], [7.0]])
    session.run(tf1.global_variables_initializer())
    source = tf1.train.Saver().save(session, str(tmp_path / 'model'))
  with tf.Graph().as_default(), tf1.Session() as session:
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with tf1.variable_scope(
        'm', custom_getter=getter, partitioner=tf1.fixed_size_partitioner(2)):
      rows = tf1.get_variable('rows', [3, 1],
                              initializer=tf1.ones_initializer())
    warm_start(source, vocabularies)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, getter)
    optimizer.minimize(tf.reduce_sum(tf.convert_to_tensor(rows)))
    init = tf1.global_variables_initializer()
    start = optimizer.get_init_op(0)
    session.run(init)
    session.run(start)
    for variables in ([pair.center for pair in getter.pairs], list(rows)):
      values = np.concatenate(session.run(variables)).ravel()
      np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize('task_index', (0, 1, np.int64(1)))
@pytest.mark.parametrize('seconds', (.5, 600))
def test_arguments_that_are_fine(task_index, seconds):
  elastic_start.check_start(task_index, 2, seconds)


@pytest.mark.parametrize('task_index, seconds, error, words', (
    ('0', 1.0, TypeError, '`task_index` must be an integer'),
    (0.0, 1.0, TypeError, '`task_index` must be an integer'),
    (False, 1.0, TypeError, '`task_index` must be an integer'),
    (2, 1.0, ValueError, r'in \[0, `num_worker`\), here \[0, 2\)'),
    (-1, 1.0, ValueError, r'in \[0, `num_worker`\), here \[0, 2\)'),
    (0, 0, ValueError, '`time_limit_secs` must'),
    (0, math.inf, ValueError, '`time_limit_secs` must')))
def test_others_are_refused(task_index, seconds, error, words):
  with pytest.raises(error, match=words):
    elastic_start.check_start(task_index, 2, seconds)


def test_local_init_op_of_the_user_starts_what_was_added_too():
  with tf.Graph().as_default(), tf1.Session() as session:
    own = tf1.get_local_variable('own', initializer=1.0)
    added = tf1.get_local_variable('added', initializer=2.0)
    scaffold = tf1.train.Scaffold(local_init_op=own.initializer)
    merged = elastic_start.local_init_op(scaffold, [added])
    session.run(merged['local_init_op'])
    assert session.run([own, added]) == [1.0, 2.0]
    # Without an op of the user's, every local variable starts anyway.
    assert elastic_start.local_init_op(tf1.train.Scaffold(), [added]) == {}
    assert elastic_start.local_init_op(None, [added]) == {}
