# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a run's Estimator and its input, in one process."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib
from tfplugin.bin.processes import task_states
from tfplugin.events import event_log
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1


def _options(model_dir, **kwargs):
  return options_lib.TrainOptions(model_dir=str(model_dir), workers=0, **kwargs)


def _batches(input_fn, count):
  return [[part.numpy() for part in batch] for batch in input_fn().take(count)]


def test_training_batches_are_whole_and_go_on_for_ever(tmp_path):
  _, train_spec, _ = experiment.make_experiment(
      _options(tmp_path, wrapper='none', batch_size=1000))
  batches = _batches(train_spec.input_fn, 4)
  assert [len(labels) for _, labels in batches] == [1000] * 4


def test_evaluation_sees_each_held_out_row_once(tmp_path):
  *_, eval_spec = experiment.make_experiment(
      _options(tmp_path, wrapper='none'))
  batches = _batches(eval_spec.input_fn, 99)
  data = experiment.load_data(_options(tmp_path, wrapper='none'))
  np.testing.assert_array_equal(np.concatenate([b[1] for b in batches]),
                                data.test.labels)


def test_no_worker_is_held_back(tmp_path):
  estimator, *_ = experiment.make_experiment(
      _options(tmp_path, wrapper='none'))
  assert estimator.config.experimental_max_worker_delay_secs == 0


def _read(path, task='chief:0'):
  states = task_states.TaskStates(path, [task], from_start=True)
  states.update()
  return states.states[task].status


def _hook(model_dir, *args):
  return telemetry_hook.TelemetryHook(experiment.StatusSink(
      event_log.EventLog(model_dir, 'chief:0'), *args), every_secs=0.5)


def test_the_hook_writes_the_first_and_the_last_step(tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    train_op = tf1.assign_add(step, 1)
    value = tf.cast(train_op, tf.float32)
    hook = _hook(tmp_path, value / 2, {'distance': value},
                 {'dropped': 10 * step})
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(train_op)
      first = _read(tmp_path)
      for _ in range(3):
        session.run(train_op)
  last = _read(tmp_path)
  assert (first.num_steps, last.num_steps) == (1, 4)
  assert first.time == first.first_time == last.first_time
  # The figures are of the last line but one, at most half a second old.
  assert (last.loss, last.counts) == (2.0, {'dropped': 40})
  assert list(last.figures) == ['distance']


def test_a_session_without_a_step_writes_no_line(tmp_path):
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    hook = _hook(tmp_path, tf.constant(1.0), {}, {})
    with tf1.train.SingularMonitoredSession(hooks=[hook]):
      pass
  assert _read(tmp_path) is None


def test_a_loss_that_is_not_finite_is_a_line_of_json(tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    hook = _hook(tmp_path, tf.constant(np.inf), {}, {})
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(step)
  line, _ = (tmp_path / 'events/chief-0.jsonl').read_text().splitlines()
  assert json.loads(line, parse_constant=pytest.fail)['loss'] is None
  assert math.isnan(_read(tmp_path).loss)
