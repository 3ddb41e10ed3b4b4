# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks wait for each other once; a later task does not wait."""

from __future__ import annotations

import json
import threading

import pytest
import tensorflow as tf

from tfplugin import events
from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import elastic_start
from tfplugin.events import event_log
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_PS = '/job:ps/task:0'


def test_nobody_passes_before_all_are_there(behavior):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  graphs, ops = [tf.Graph(), tf.Graph()], []
  for index, graph in enumerate(graphs):
    with graph.as_default():
      barrier = elastic_start.StartBarrier(2, _PS)
      ops.append((barrier.announce(index), barrier.wait(index, 60.0),
                  barrier.arrived()))
  first, second = [cluster.session(i, g) for i, g in enumerate(graphs)]
  first.run(ops[0][0])
  assert first.run(ops[0][2]).tolist() == [True, False]
  passed = threading.Event()
  waiting = threading.Thread(
      target=lambda: (first.run(ops[0][1]), passed.set()), daemon=True)
  waiting.start()
  assert not passed.is_set()
  second.run(ops[1][0])
  assert passed.wait(30)
  waiting.join(30)
  # A task that comes again, as often as it likes, finds the tokens.
  for _ in range(5):
    with cluster.session(1, graphs[1]) as again:
      again.run(ops[1][0])
      again.run(ops[1][1])
  first.close()
  second.close()


def test_limit_of_the_op_names_who_is_missing(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    barrier = elastic_start.StartBarrier(3, '')
    session.run(barrier.announce(1))
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match='task_index 1 waited 0.1 s') as error:
      session.run(barrier.wait(1, 0.1))
  assert 'task_index 0' in error.value.message
  assert 'task_index 2' in error.value.message


def test_the_op_says_for_whom_it_waits(behavior, monkeypatch, caplog):
  del behavior
  monkeypatch.setattr(time_limit, '_SAY_EVERY_SECS', 0.1)
  with tf.Graph().as_default(), tf1.Session() as session:
    barrier = elastic_start.StartBarrier(2, '')
    with pytest.raises(tf.errors.InvalidArgumentError):
      session.run(barrier.wait(1, 0.5))
  assert 'for the start of the worker with task_index 0.' in caplog.text


def test_limit_of_the_hook_names_who_is_missing():
  looks = [[False, True, False], [True, True, False]]
  with pytest.raises(TimeoutError, match='for the start of the worker with '
                     'task_index 2. See'):
    elastic_start.wait_until(
        lambda: looks.pop(0) if len(looks) > 1 else looks[0], 1, 0.05)
  elastic_start.wait_until(lambda: [True, True], 1, 0.0)


def _waits(model_dir):
  return [(e.name, e.kind, e.details.get('on'))
          for e in events.read_run(model_dir).events if e.name == 'waiting']


@pytest.fixture(name='cluster_of_3')
def fixture_cluster_of_3(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['a:1'], 'worker': ['b:1', 'c:1'], 'ps': ['d:1']},
      'task': {'type': 'worker', 'index': 0}}))


@pytest.mark.usefixtures('cluster_of_3')
def test_the_wait_of_a_hook_is_among_the_events(tmp_path):
  looks = [[False, True, False], [True, True, True]]
  with event_log.recording(tmp_path, 'worker:0'):
    elastic_start.wait_until(lambda: looks.pop(0), 1, 60.0)
    elastic_start.wait_until(lambda: [True, True, True], 1, 60.0)
  assert _waits(tmp_path) == [
      ('waiting', 'begin', ['chief:0', 'worker:1']), ('waiting', 'end', None)]


@pytest.mark.usefixtures('cluster_of_3')
def test_each_wait_of_the_op_is_among_the_events(behavior, tmp_path):
  del behavior
  with event_log.recording(tmp_path, 'worker:0'):
    with tf.Graph().as_default(), tf1.Session() as session:
      barrier = elastic_start.StartBarrier(3, '')
      wait = barrier.wait(1, 0.3)
      for index in (0, 2):
        with pytest.raises(tf.errors.InvalidArgumentError):
          session.run(wait)
        session.run(barrier.announce(index))
      session.run(wait)
  assert _waits(tmp_path) == [
      ('waiting', 'begin', ['chief:0', 'worker:1']), ('waiting', 'end', None),
      ('waiting', 'begin', ['worker:1']), ('waiting', 'end', None)]


def test_queues_have_their_old_names_on_the_parameter_server():
  with tf.Graph().as_default() as graph:
    elastic_start.StartBarrier(2, _PS)
    queues = [op for op in graph.get_operations() if 'Queue' in op.type]
  assert [op.get_attr('shared_name').decode() for op in queues] == [
      'variable_init_sync_queue0', 'variable_init_sync_queue1']
  assert all(op.device.startswith(_PS) for op in queues)
