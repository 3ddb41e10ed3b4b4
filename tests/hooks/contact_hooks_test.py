# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the hook that misses tasks, with servers in this process."""

import json

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute.sessions import membership
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.hooks import contact_hooks
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import task_tables

tf1 = tf.compat.v1


def _hook(monkeypatch, cluster, task_type, time_limit_secs=0.2):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': 0}}))
  return contact_hooks.KeepContactHook(
      tf.estimator.RunConfig(), time_limit_secs)


def _train(hook):
  with tf.Graph().as_default():
    step = tf.constant(1)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      while not session.should_stop():
        session.run(step)


def test_a_worker_ends_when_its_chief_has_gone(behavior, monkeypatch):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, 'ps', 0)
  with pytest.raises(TimeoutError, match=(
      'worker:0 waited 0.2 s for a sign of chief:0 at .*counts as lost')):
    _train(_hook(monkeypatch, cluster, 'worker'))
  del server


@pytest.mark.parametrize('has_server', [False, True])
def test_a_task_that_started_no_server_is_told(
    monkeypatch, caplog, has_server):
  cluster = ports.make_cluster(1, 1)
  servers = [tf.distribute.Server(cluster, job, 0)
             for job in ('ps', *['chief'] * has_server)]
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    _hook(monkeypatch, cluster, 'chief').begin()
  assert ('chief:0 has no server at' in caplog.text) != has_server
  del servers


@pytest.mark.parametrize('task_type', ['chief', 'worker'])
def test_a_ps_that_stays_away_is_named(monkeypatch, task_type):
  cluster = ports.make_cluster(1, 2)
  server = tf.distribute.Server(cluster, 'ps', 0)
  with pytest.raises(TimeoutError, match=f'{task_type}:0 waited .* for ps:1'):
    _train(_hook(monkeypatch, cluster, task_type))
  del server


def test_it_waits_before_each_session_of_the_graph(monkeypatch):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, 'ps', 0)
  waits = []
  monkeypatch.setattr(contact_hooks.contact, 'wait_for_servers',
                      lambda *args: waits.append(args[1:3]))
  with tf.Graph().as_default():
    _hook(monkeypatch, cluster, 'worker', 7.0).begin()
    manager = tf1.train.SessionManager()
    manager.prepare_session('', init_op=tf.no_op()).close()
    manager.wait_for_session('').close()
  assert waits == [('worker:0', 7.0)] * 3
  del server


def test_the_chief_keeps_the_reports_for_a_ps_that_forgets(monkeypatch):
  cluster = ports.make_cluster(1, 1)
  spec = tf.train.ClusterSpec(cluster)
  server = tf.distribute.Server(cluster, 'ps', 0)
  hook = _hook(monkeypatch, cluster, 'chief')
  monkeypatch.setattr(contact_hooks, '_LOOK_SECS', 0.0)
  with tf.Graph().as_default():
    hook.begin()
    task_records.report_finished(spec, 'worker:0')
    hook.before_run(None)
    # As a ps that is started again.
    config = tf1.ConfigProto(device_filters=['/job:ps'])
    with tf1.Session(server.target, config=config) as session, (
        tf1.device('/job:ps')):
      session.run(tf.raw_ops.LookupTableRemoveV2(
          table_handle=tf.raw_ops.MutableHashTableV2(
              key_dtype=tf.string, value_dtype=tf.int64,
              shared_name=task_tables.MARKS), keys=['worker:0']))
    assert not task_records.TaskRecords(spec).keep()
    hook.before_run(None)
    assert task_records.TaskRecords(spec).keep() == {'worker:0'}
    hook.end(None)


def test_the_chief_writes_who_joins_and_leaves_and_counts(
    monkeypatch, tmp_path):
  cluster = ports.make_cluster(1, 1)
  spec = tf.train.ClusterSpec(cluster)
  server = tf.distribute.Server(cluster, 'ps', 0)
  monkeypatch.setattr(contact_hooks, '_LOOK_SECS', 0.0)
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': cluster, 'task': {'type': 'chief', 'index': 0},
      'max_workers': 3}))
  hook = contact_hooks.KeepContactHook(tf.estimator.RunConfig())
  numbers, board = [], task_records._board(spec, 0)
  with event_log.recording(str(tmp_path), 'chief:0'), tf.Graph().as_default(
      ) as graph, tf1.device('/job:ps/task:0'):
    number = membership.read_present(0)
    hook.begin()
    with tf1.Session(server.target, graph, tf1.ConfigProto(
        device_filters=['/job:ps'])) as session:
      for act in (lambda: None,
                  lambda: task_records.StepReport(spec, 'worker:7', True),
                  lambda: task_records.report_left(spec, 'worker:7'),
                  # A launcher has a place; its process has not begun.
                  lambda: board.claim('worker:8', 3)):
        act()
        hook.before_run(None)
        numbers.append(session.run(number))
    hook.end(None)
  assert numbers == [1, 2, 1, 1]
  assert [(event.name, event.details['worker'])
          for event in event_files.read_run(tmp_path).events
          if event.name in ('joined', 'left')] == [
              ('joined', 'worker:7'), ('left', 'worker:7')]


@pytest.mark.parametrize('task_type, num_ps', [('ps', 1), ('worker', 0)])
def test_others_need_nobody(monkeypatch, task_type, num_ps):
  hook = _hook(monkeypatch, ports.make_cluster(1, num_ps), task_type)
  with tf.Graph().as_default():
    hook.begin()
    hook.before_run(None)


def test_a_limit_has_to_be_positive():
  with pytest.raises(ValueError, match='`time_limit_secs` must be positive'):
    contact_hooks.KeepContactHook(tf.estimator.RunConfig(), 0.0)
  with pytest.raises(ValueError, match='`still_limit_secs` must be positive'):
    contact_hooks.KeepContactHook(
        tf.estimator.RunConfig(), None, still_limit_secs=0.0)
