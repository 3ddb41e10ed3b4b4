# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the hook that reports the end of a task."""

import json

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.hooks.shutdown import shutdown_hooks
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import task_tables
from tfplugin.hooks.shutdown import waits

tf1 = tf.compat.v1


@pytest.fixture(name='serve')
def fixture_serve(monkeypatch):
  """Starts the server of a worker's cluster; `keys` are more of TF_CONFIG."""
  servers = []

  def serve(**keys):
    cluster = ports.make_cluster(1, 1)
    spec = tf.train.ClusterSpec(cluster)
    servers.append(tf.distribute.Server(spec, job_name='ps', task_index=0))
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': cluster, 'task': {'type': 'worker', 'index': 0}, **keys}))
    return spec

  yield serve


def test_the_task_is_on_the_list_after_its_last_step_not_before(serve):
  spec = serve()
  hook = shutdown_hooks.ReportFinishedHook(tf.estimator.RunConfig())
  with tf.Graph().as_default():
    step = tf.constant(1)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(step)
      with pytest.raises(TimeoutError, match='worker:0'):
        waits.wait_for_tasks(spec, ['worker:0'], 'ps:0', 0.1)
  waits.wait_for_tasks(spec, ['worker:0'], 'ps:0', 10.0)


def test_it_reports_after_all_hooks_and_not_of_a_failure(serve):
  spec = serve()
  hook = shutdown_hooks.ReportFinishedHook(tf.estimator.RunConfig())
  seen = []

  class Later(tf1.train.SessionRunHook):

    def end(self, session):
      seen.append(set(task_records.TaskRecords(spec).keep()))

  def train(step):
    with tf.Graph().as_default():
      op = step()
      with tf1.train.SingularMonitoredSession(hooks=[hook, Later()]) as session:
        session.run(op)

  with pytest.raises(tf.errors.InvalidArgumentError):
    train(lambda: tf.debugging.Assert(tf.constant(False), ['failed']))
  assert not task_records.TaskRecords(spec).keep() and not hook.has_reported
  train(tf.no_op)
  assert hook.has_reported
  assert seen == [set()]
  assert task_records.TaskRecords(spec).keep() == {'worker:0'}


@pytest.mark.parametrize('keys, states', [
    ({}, {}), ({'max_workers': 3}, {'worker:0': task_tables.LEFT})])
def test_after_a_signal_it_has_left_where_workers_may_join(
    serve, keys, states):
  spec = serve(**keys)
  hook = shutdown_hooks.ReportFinishedHook(
      tf.estimator.RunConfig(), unless=lambda: True)
  lists = task_records.TaskRecords(spec)
  with tf.Graph().as_default():
    op = tf.no_op()
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(op)
      lists.keep()
      assert lists.present == set(states)
  lists.keep()
  assert states == {name: task_tables.state_of(mark)
                    for name, mark in lists.marks.items()}
  assert not hook.has_reported
  lists.close()
