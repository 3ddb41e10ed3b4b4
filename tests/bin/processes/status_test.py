# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the status lines that a role prints."""

import json

import tensorflow as tf

from tfplugin.bin.processes import status

tf1 = tf.compat.v1


def _status(time, **kwargs):
  return status.Status(**{
      'time': time, 'first_step_time': 1.0, 'global_step': 5, 'local_steps': 3,
      'loss': 0.5, 'figures': {}, 'counts': {}, **kwargs})


def test_the_hook_writes_the_first_and_the_last_step(tmp_path):
  path = tmp_path / 'chief-0.jsonl'
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    train_op = tf1.assign_add(step, 1)
    value = tf.cast(train_op, tf.float32)
    hook = status.StatusHook(path, value / 2, {'distance': value},
                             {'dropped': 10 * step})
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(train_op)
      first = status.read_last(path)
      for _ in range(3):
        session.run(train_op)
  last = status.read_last(path)
  assert (first.local_steps, last.local_steps) == (1, 4)
  assert first.time == first.first_step_time == last.first_step_time
  # Figures are those of the last line but one, at most half a second old.
  assert (last.loss, last.counts) == (2.0, {'dropped': 40})
  assert list(last.figures) == ['distance']


def test_a_session_without_a_step_writes_no_line(tmp_path):
  path = tmp_path / 'worker-0.jsonl'
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    hook = status.StatusHook(path, tf.constant(1.0), {}, {})
    with tf1.train.SingularMonitoredSession(hooks=[hook]):
      pass
  assert status.read_last(path) is None


def test_a_line_that_is_being_written_does_not_count(tmp_path):
  path = tmp_path / 's.jsonl'
  assert status.read_last(path) is None
  path.write_text('{"time": 1')
  assert status.read_last(path) is None


def test_the_last_line_of_a_long_file_is_found(tmp_path):
  path = tmp_path / 's.jsonl'
  lines = [json.dumps(_status(float(time))._asdict()) for time in range(2000)]
  path.write_text('\n'.join(lines) + '\n' + lines[0][:9])
  assert path.stat().st_size > 3 << 16
  assert status.read_last(path).time == 1999.0


def test_counts_add_up_and_figures_are_the_newest():
  combined = status.combine([
      _status(3.0, figures={'distance': 0.3}, counts={'dropped': 2}),
      _status(9.0, figures={'distance': 0.9}, counts={'dropped': 5}),
      _status(6.0, figures={'distance': 0.6}, counts={'dropped': 1})])
  assert combined == {'distance': 0.9, 'dropped': 8}
  assert status.combine([]) == {}
