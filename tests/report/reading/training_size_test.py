# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the sizes and the rate of a run; plan_test has the numbers."""

import pytest
import tensorflow as tf

from tfplugin.events import event_log
from tfplugin.report.reading import training_size

tf1 = tf.compat.v1


def _write_events(run_dir, rate):
  with event_log.recording(str(run_dir), 'chief:0'):
    event_log.write('training', step=1, num_steps=1, steps_per_sec=rate)


def test_a_run_without_a_rate_is_named(tmp_path):
  _write_events(tmp_path, 0.0)
  with pytest.raises(ValueError, match='steps per second.*--step_ms'):
    training_size.read(tmp_path)


def test_a_run_without_a_graph_is_named(tmp_path):
  _write_events(tmp_path, 1.0)
  with pytest.raises(ValueError, match=r'no checkpoint.*--model_mb'):
    training_size.read(tmp_path)


def test_a_graph_without_trained_variables_is_named(tmp_path):
  _write_events(tmp_path, 1.0)
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('state', [7], trainable=False)
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 10)
  with pytest.raises(ValueError, match='no trained variable'):
    training_size.read(tmp_path)
