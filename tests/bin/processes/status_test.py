# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the samples that a role writes."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.report import hand_written
from tfplugin.bin.processes import status
from tfplugin.bin.processes import task_states
from tfplugin.events import event_log
from tfplugin.events import record

tf1 = tf.compat.v1


def _status(time, **kwargs):
  return record.Sample(**{
      'time': time, 'step': 5, 'loss': 0.5, 'figures': {}, 'num_steps': 3,
      'counts': {}, **kwargs})


def _read(path, task='chief:0'):
  states = task_states.TaskStates(path, [task], from_start=True)
  states.update()
  return states.states[task].status


def test_the_hook_writes_the_first_and_the_last_step(tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    train_op = tf1.assign_add(step, 1)
    value = tf.cast(train_op, tf.float32)
    hook = status.make_hook(event_log.EventLog(tmp_path, 'chief:0'), value / 2,
                            {'distance': value}, {'dropped': 10 * step})
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(train_op)
      first = _read(tmp_path)
      for _ in range(3):
        session.run(train_op)
  last = _read(tmp_path)
  assert (first.num_steps, last.num_steps) == (1, 4)
  assert first.time == first.first_time == last.first_time
  # Figures are those of the last line but one, at most half a second old.
  assert (last.loss, last.counts) == (2.0, {'dropped': 40})
  assert list(last.figures) == ['distance']


def test_a_session_without_a_step_writes_no_line(tmp_path):
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    hook = status.make_hook(event_log.EventLog(tmp_path, 'chief:0'),
                            tf.constant(1.0), {}, {})
    with tf1.train.SingularMonitoredSession(hooks=[hook]):
      pass
  assert _read(tmp_path) is None


def test_a_loss_that_is_not_finite_is_a_line_of_json(tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    hook = status.make_hook(event_log.EventLog(tmp_path, 'chief:0'),
                            tf.constant(np.inf), {}, {})
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(step)
  line, _ = (tmp_path / 'events/chief-0.jsonl').read_text().splitlines()
  assert json.loads(line, parse_constant=pytest.fail)['loss'] is None
  assert math.isnan(_read(tmp_path).loss)


def _sample(secs, steps, dropped, pid=1, session=1):
  return hand_written.event(
      secs, 'chief:0', 'sampling', pid=pid, step=100, num_steps=steps, loss=1.0,
      figures={}, counts={'dropped': dropped})._replace(session=session)


def test_the_processes_of_a_session_add_up(tmp_path):
  samples = status.StatusOfTask()
  told = []
  for sample in (_sample(1, 1, 0), _sample(2, 50, 4),
                 # It was killed, and started again twice.
                 _sample(9, 1, 1, pid=2), _sample(10, 30, 2, pid=2),
                 _sample(20, 5, 1, pid=3)):
    samples.take(sample)
    told.append((samples.status.num_steps, samples.status.counts['dropped']))
  assert told == [(1, 0), (50, 4), (51, 5), (80, 6), (85, 7)]
  assert samples.status.first_time == hand_written.START + 1


def test_a_container_has_the_pid_of_the_one_before(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'),
      _sample(1, 3, 2), hand_written.event(
          9, 'chief:0', 'coming_back', what='process'), _sample(9, 5, 4))
  assert (_read(tmp_path).num_steps, _read(tmp_path).counts) == (
      8, {'dropped': 6})


def test_counts_of_a_session_that_was_lost_add_up():
  """The process goes on: it counts its steps on, and what it drops anew."""
  samples = status.StatusOfTask()
  for sample in (_sample(1, 10, 4), _sample(2, 50, 9), _sample(5, 60, 2),
                 _sample(6, 70, 3)):
    samples.take(sample)
  assert samples.status.num_steps == 70
  assert samples.status.counts == {'dropped': 12}


def test_a_new_session_begins_at_nought(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'),
      _sample(1, 50, 4), hand_written.event(2, 'chief:0', 'ended'))
  assert _read(tmp_path).num_steps == 50
  hand_written.write_events(tmp_path, hand_written.event(
      9, 'chief:0', 'starting', 'begin', pid=2)._replace(session=2))
  assert _read(tmp_path) is None
  hand_written.write_events(tmp_path, _sample(10, 3, 1, pid=2, session=2))
  assert (_read(tmp_path).num_steps, _read(tmp_path).counts) == (
      3, {'dropped': 1})


def test_counts_add_up_and_figures_are_the_newest():
  combined = status.combine([
      _status(3.0, figures={'distance': 0.3}, counts={'dropped': 2}),
      _status(9.0, figures={'distance': 0.9}, counts={'dropped': 5}),
      _status(6.0, figures={'distance': 0.6}, counts={'dropped': 1})])
  assert combined == {'distance': 0.9, 'dropped': 8}
  assert status.combine([]) == {}
