# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what ends a worker of a group that has lost another one."""

import errno
import os
import subprocess
import sys
import threading

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.checkpoints import refused_writes
from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import lost_peers

tf1 = tf.compat.v1


@pytest.fixture
def task():
  (chief,), workers = (ports.make_cluster(2, 0)[job]
                       for job in ('chief', 'worker'))
  return cluster_task.ClusterTask(
      tf.train.ClusterSpec({'worker': [chief, *workers]}), 'worker', 1)


def test_a_session_that_fails_is_not_made_anew(behavior, task):
  calls = []

  def step():
    calls.append(None)
    raise tf.errors.UnavailableError(None, None, 'Connection reset by peer')

  with tf.Graph().as_default():
    hook = lost_peers.LostPeersHook(task, 60.0, 60.0)
    with pytest.raises(lost_peers.LostPeerError, match=(
        r'worker:1 lost worker:0 at \S+, worker:2 at .*together')) as error:
      with tf1.train.MonitoredSession(
          tf1.train.ChiefSessionCreator(), hooks=[hook]) as session:
        session.run_step_fn(lambda step_context: step())
  assert error.value.exit_status == 75
  assert len(calls) == 1


@pytest.mark.parametrize('limits, what', [
    ((0.1, 60.0), 'the first step'), ((60.0, 0.1), 'a step')])
def test_a_step_that_waits_ends_the_process(monkeypatch, task, caplog, limits,
                                            what):
  ends, is_over = [], threading.Event()

  def end(status):
    ends.append(status)
    is_over.set()
    hook.end(None)

  monkeypatch.setattr(lost_peers.os, '_exit', end)
  with tf.Graph().as_default():
    hook = lost_peers.LostPeersHook(task, *limits)
    hook.begin()
    hook.before_run(None)
    if what == 'a step':
      hook.after_run(None, None)
      hook.before_run(None)
    assert is_over.wait(30.0)
  assert set(ends) == {75}
  assert f'worker:1 waited in {what} up to its limit for wor' in caplog.text


@pytest.mark.parametrize('is_seen', [True, False], ids=['seen', 'never seen'])
def test_a_step_that_waits_for_a_worker_that_has_ended(
    monkeypatch, task, caplog, is_seen):
  """Others are left alone: Horovod's processes open no port of the cluster."""
  ends, is_over = [], threading.Event()

  def end(status):
    ends.append(status)
    is_over.set()
    hook.end(None)

  monkeypatch.setattr(lost_peers.os, '_exit', end)
  monkeypatch.setattr(lost_peers, '_LOOK_SECS', 0.0)
  looks = []

  def unreachable(cluster_spec, names):
    del cluster_spec
    looks.extend(names)
    is_open = names == ['worker:0'] and is_seen and len(looks) < 4
    return [] if is_open else [f'{name} at h:1' for name in names]

  monkeypatch.setattr(lost_peers.contact, 'unreachable', unreachable)
  hook = lost_peers.LostPeersHook(task, 60.0, 60.0)
  with tf.Graph().as_default():
    hook.begin()
    hook.before_run(None)
    hook.after_run(None, None)
    hook.before_run(None)
    assert is_over.wait(30.0 if is_seen else 2.0) == is_seen
  hook.end(None)
  assert looks and set(ends) == ({75} if is_seen else set())
  assert ('worker:1 waits in a step for worker:0 at h:1, where no task listens '
          'any more' in caplog.text) == is_seen


def test_an_error_of_a_sum_is_explained(task):
  hook = lost_peers.LostPeersHook(task, 60.0, 60.0)
  hook.explain(None, tf.errors.InternalError(None, None, 'another'), None)
  with pytest.raises(lost_peers.LostPeerError, match='same number of batches'):
    hook.explain(None, tf.errors.InternalError(
        None, None, 'Collective ops is aborted by: ...'), None)


def test_steps_and_an_end_in_time_are_left_alone(monkeypatch, task):
  monkeypatch.setattr(lost_peers.os, '_exit', lambda status: 1 / 0)
  with tf.Graph().as_default():
    hook = lost_peers.LostPeersHook(task, 60.0, None)
    step = tf.constant(1)
    with tf1.train.MonitoredSession(hooks=[hook]) as session:
      for _ in range(3):
        session.run(step)


_ENOSPC = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize('error, status', [
    (tf.errors.UnavailableError(None, None, 'failed to connect'), 75),
    (tf.errors.AbortedError(None, None, 'The session is not found.'), 75),
    (tf.errors.PermissionDeniedError(
        None, None, '/m/graph.pbtxt.tmp1; Read-only file system'), 75),
    (_ENOSPC, 75),
    (refused_writes.WriteTimeoutError('chief:0 waited 300 s for space'), 75),
    (OSError('model_dir must be a directory that chief:0 can write to.'), 1),
    (tf.errors.InvalidArgumentError(None, None, 'Shapes differ.'), 1),
    (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), 1),
    (ValueError('A mistake of the program.'), 1)],
                         ids=lambda value: type(value).__name__)
def test_another_start_may_mend_what_is_not_the_program(
    monkeypatch, error, status):
  ends = []
  monkeypatch.setattr(lost_peers.sys, 'excepthook', lambda *told: None)
  monkeypatch.setattr(lost_peers.os, '_exit', ends.append)
  with pytest.raises(type(error)) as told:
    with lost_peers.exit_status_set():
      raise error
  lost_peers.sys.excepthook(type(error), told.value, None)
  assert ends == ([75] if status == 75 else [])
  assert getattr(told.value, 'exit_status', 1) == status


def test_a_process_ends_with_the_status():
  ended = subprocess.run(
      [sys.executable, '-c',
       'from tfplugin.hooks.shutdown import lost_peers\n'
       'with lost_peers.exit_status_set():\n'
       '  raise OSError(30, "Read-only file system")\n'],
      capture_output=True, text=True, check=False, timeout=100)
  assert ended.returncode == 75
  assert 'OSError: [Errno 30] Read-only file system' in ended.stderr
