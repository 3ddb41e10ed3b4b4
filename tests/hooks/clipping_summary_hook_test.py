# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the clipping summaries."""

import glob

import pytest
import tensorflow as tf

from tfplugin.hooks import clipping_summary_hook
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1


def test_event_file_holds_the_fraction(behavior, tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=[[3.0], [0.5], [0.1], [2.0]])
    optimizer = variable_clipping.VariableClippingOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), [(w, 1)], 1.0)
    train_op = optimizer.minimize(0.0 * tf.reduce_sum(w), global_step=step)
    hook = clipping_summary_hook.ClippingSummaryHook(
        optimizer, str(tmp_path), every_n_steps=1)
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      for _ in range(3):
        session.run(train_op)
  values = [
      value.simple_value
      for path in glob.glob(f'{tmp_path}/events.*')
      for event in tf1.train.summary_iterator(path)
      for value in event.summary.value
      if value.tag == 'clipping/fraction_clipped']
  # Two of four slices; then all are within.
  assert values[0] == 0.5
  assert set(values[1:]) == {0.0}


def test_before_an_update_there_is_nothing_to_show(tmp_path):
  with tf.Graph().as_default():
    tf1.train.get_or_create_global_step()
    optimizer = variable_clipping.VariableClippingOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), {'w': 1}, 1.0)
    hook = clipping_summary_hook.ClippingSummaryHook(optimizer, str(tmp_path))
    with pytest.raises(RuntimeError, match='Call `minimize'):
      hook.begin()


@pytest.mark.parametrize('clips_inside', [True, False])
def test_what_is_clipped_in_a_branch_is_refused(
    behavior, tmp_path, clips_inside):
  def drop(opt):
    return drop_stale_gradient.DropStaleGradientOptimizer(opt, 3)

  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=[[3.0], [0.5]])
    sgd = tf1.train.GradientDescentOptimizer(1.0)
    clip = variable_clipping.VariableClippingOptimizer(
        sgd if clips_inside else drop(sgd), [(w, 1)], 1.0, use_locking=True)
    train_op = (drop(clip) if clips_inside else clip).minimize(
        0.0 * tf.reduce_sum(w), global_step=step)
    hook = clipping_summary_hook.ClippingSummaryHook(clip, str(tmp_path))
    if clips_inside:
      with pytest.raises(RuntimeError, match='from a branch.*outside'):
        hook.begin()
      return
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(train_op)
      assert session.run(w).tolist() == [[1.0], [0.5]]


def test_another_optimizer_is_refused():
  with pytest.raises(TypeError, match='`optimizer` must .*Received: '):
    clipping_summary_hook.ClippingSummaryHook(
        tf1.train.GradientDescentOptimizer(0.1), '')
