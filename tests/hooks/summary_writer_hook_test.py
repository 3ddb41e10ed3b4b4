# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the steps at which summaries are written."""

import glob

import pytest
import tensorflow as tf

from tfplugin.hooks import summary_writer_hook

tf1 = tf.compat.v1


class _StepHook(summary_writer_hook.SummaryWriterHook):

  optimizer_class = object

  def scalars(self):
    return {'constant': tf.constant(7.0)}


def test_writes_every_n_steps_and_at_the_end(behavior, tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    advance = tf1.assign_add(step, 1)
    hook = _StepHook(None, str(tmp_path), every_n_steps=4)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      for _ in range(6):
        session.run(advance)
        # Beside the update the hook may see the step before or after it.
        session.run(step)
  events = [(event.step, value.simple_value)
            for path in glob.glob(f'{tmp_path}/events.*')
            for event in tf1.train.summary_iterator(path)
            for value in event.summary.value]
  # The first, the one 4 steps later, the last.
  assert [value for _, value in events] == [7.0] * 3
  assert events[1][0] - events[0][0] == 4


def test_a_directory_that_cannot_be_written_ends_no_training(tmp_path, caplog):
  (tmp_path / 'file').touch()
  with tf.Graph().as_default():
    advance = tf1.assign_add(tf1.train.get_or_create_global_step(), 1)
    hook = _StepHook(None, str(tmp_path / 'file/x'), every_n_steps=1)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      for _ in range(3):
        session.run(advance)
  assert caplog.text.count('The curves of TensorBoard cannot be written') == 1


def test_no_global_step_is_a_clear_error(tmp_path):
  with tf.Graph().as_default():
    with pytest.raises(RuntimeError, match='global step'):
      _StepHook(None, str(tmp_path)).begin()


def test_a_period_below_one_is_refused():
  with pytest.raises(ValueError, match='`every_n_steps` must .*Received: 0'):
    _StepHook(None, '', every_n_steps=0)


@pytest.mark.parametrize('period', [None, 1.5, '3', True])
def test_a_period_is_an_integer(period):
  with pytest.raises(TypeError, match='`every_n_steps` must be an integer'):
    _StepHook(None, '', every_n_steps=period)
