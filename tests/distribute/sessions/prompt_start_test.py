# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the op that waits until it need not, and says for whom."""

import time
from concurrent import futures

import pytest
import tensorflow as tf

from tfplugin import events
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import prompt_start
from tfplugin.events import event_log

tf1 = tf.compat.v1


def _poll(looks, time_limit_secs=60.0):
  """An op that sees the values of `looks` one after the other, to the last."""
  count = tf1.get_variable('count', shape=[], dtype=tf.int32,
                           initializer=tf1.zeros_initializer())

  def look():
    return tf.gather(looks, tf.minimum(count.assign_add(1),
                                       len(looks)) - 1)

  return prompt_start.poll_while(
      look, lambda seen: seen > 0, time_limit_secs, who='worker:0',
      whom=lambda seen: f'{seen} others',
      tasks=lambda seen: [f'worker:{i + 1}' for i in range(seen)])


def _run(op, times=1):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    return [session.run(op) for _ in range(times)]


def _waits(model_dir):
  return [(e.kind, e.details.get('on'))
          for e in events.read_run(model_dir).events if e.name == 'waiting']


def test_an_op_looks_until_it_need_not_wait(behavior):
  del behavior
  with tf.Graph().as_default():
    assert _run(_poll([2, 1, 0, 7])) == [0]


def test_at_the_limit_an_op_returns_what_it_saw_last(behavior):
  del behavior
  with tf.Graph().as_default():
    assert _run(_poll([2, 1], time_limit_secs=0.3)) == [1]


@pytest.mark.parametrize('jump', [-3600.0, 3600.0])
@pytest.mark.timeout(60)
def test_the_hosts_clock_may_be_set_during_a_wait(jump, behavior, monkeypatch):
  """Set forward it ends no wait, and set back it prolongs none."""
  del behavior
  hosts = [1e9, *[1e9 + jump] * 9]
  monkeypatch.setattr(tf, 'timestamp', lambda: tf.numpy_function(
      lambda: hosts.pop(0) if len(hosts) > 1 else hosts[0], [], tf.float64))
  with tf.Graph().as_default():
    assert _run(_poll([2, 1, 0])) == [0]
  with tf.Graph().as_default():
    assert _run(_poll([2, 1], time_limit_secs=0.3)) == [1]


def test_an_op_says_for_whom_it_waits(behavior, monkeypatch, caplog):
  del behavior
  monkeypatch.setattr(time_limit, '_SAY_EVERY_SECS', 0.0)
  with tf.Graph().as_default():
    _run(_poll([2, 0]))
  assert 'worker:0 has waited 0 s for 2 others.' in caplog.text


def test_each_wait_of_an_op_is_among_the_events_and_no_look_without_one(
    behavior, tmp_path):
  del behavior
  with event_log.recording(tmp_path, 'worker:0'), tf.Graph().as_default():
    # The second run finds nothing to wait for, the third waits once more.
    assert _run(_poll([2, 1, 0, 0, 1, 0]), times=3) == [0, 0, 0]
  assert _waits(tmp_path) == [
      ('begin', ['worker:1', 'worker:2']), ('end', None),
      ('begin', ['worker:1']), ('end', None)]


def test_a_task_that_tells_no_events_waits_as_well(behavior):
  del behavior
  with tf.Graph().as_default():
    assert _run(_poll([1, 0]), times=1) == [0]


@pytest.mark.parametrize('use_resource', [True, False])
def test_a_worker_waits_for_the_chief_by_name(tmp_path, behavior, use_resource):
  del behavior
  with event_log.recording(tmp_path, 'worker:0'), tf.Graph().as_default():
    variable = tf1.get_variable('v', shape=[2, 3], use_resource=use_resource)
    prompt_start.add_ready_op('chief:0')
    ready, = tf1.get_collection(tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP)
    with tf1.Session() as session, futures.ThreadPoolExecutor() as pool:
      missing = pool.submit(session.run, ready)
      while not (missing.done() or _waits(tmp_path)):
        time.sleep(0.01)
      session.run(variable.initializer)
      assert missing.result().size == 0
  assert _waits(tmp_path) == [('begin', ['chief:0']), ('end', None)]
