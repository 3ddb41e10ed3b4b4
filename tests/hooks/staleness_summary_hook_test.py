# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the staleness summaries."""

import glob

import pytest
import tensorflow as tf

from tfplugin.hooks import staleness_summary_hook
from tfplugin.optimizers import drop_stale_gradient

tf1 = tf.compat.v1


def _events(directory):
  """What TensorBoard reads: tag -> [(step, value)]."""
  found = {}
  for path in sorted(glob.glob(f'{directory}/events.*')):
    for event in tf1.train.summary_iterator(path):
      for value in event.summary.value:
        found.setdefault(value.tag, []).append(
            (event.step, value.simple_value))
  return found


def test_event_file_holds_staleness_and_counters(behavior, tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    late = tf1.placeholder(tf.int64, [])
    # Others apply while this gradient is computed.
    read = w.read_value()
    with tf.control_dependencies([read]):
      others = tf1.assign_add(step, late)
    with tf.control_dependencies([others]):
      gradient = tf.constant(1.0) + 0.0 * read
    optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 2)
    train_op = optimizer.apply_gradients([(gradient, w)], global_step=step)
    hook = staleness_summary_hook.StalenessSummaryHook(
        optimizer, str(tmp_path), every_n_steps=1)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      for delay in (0, 3, 0, 5):
        session.run(train_op, {late: delay})
  events = _events(tmp_path)
  # A step that is read beside its update may look unchanged and be left out;
  # the last one is always written.
  values = [v for _, v in events['staleness/staleness']]
  assert (values[0], values[-1]) == (0, 5)
  assert set(values) <= {0, 3, 5}
  assert set(events) == {
      f'staleness/{name}' for name in (
          'staleness', 'dropped_fraction', 'num_dropped', 'num_applied',
          'stale_counter')}
  assert all(0 <= v <= 1 for _, v in events['staleness/dropped_fraction'])


def test_the_staleness_of_a_branch_is_refused(behavior, tmp_path):
  # Accumulated gradients, applied in each second step.
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 2)
    tf.cond(tf1.placeholder(tf.bool, []),
            lambda: optimizer.minimize(w * w, step), tf.no_op)
    hook = staleness_summary_hook.StalenessSummaryHook(optimizer, str(tmp_path))
    with pytest.raises(
        RuntimeError, match='staleness` from a branch.*outside.*TensorBoard'):
      hook.begin()


def test_another_optimizer_is_refused():
  with pytest.raises(TypeError, match='`optimizer` must .*Received: '):
    staleness_summary_hook.StalenessSummaryHook(
        tf1.train.GradientDescentOptimizer(0.1), '')
