# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the summary hooks: their steps, their numbers, their refusals."""

import glob

import pytest
import tensorflow as tf

from tfplugin.hooks import summary_hooks
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1


class _StepHook(summary_hooks.SummaryWriterHook):

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
    hook = summary_hooks.StalenessSummaryHook(
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
    hook = summary_hooks.StalenessSummaryHook(optimizer, str(tmp_path))
    with pytest.raises(
        RuntimeError, match='staleness` from a branch.*outside.*TensorBoard'):
      hook.begin()


def test_event_file_holds_the_fraction_clipped(behavior, tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=[[3.0], [0.5], [0.1], [2.0]])
    optimizer = variable_clipping.VariableClippingOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), [(w, 1)], 1.0)
    train_op = optimizer.minimize(0.0 * tf.reduce_sum(w), global_step=step)
    hook = summary_hooks.ClippingSummaryHook(
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
    hook = summary_hooks.ClippingSummaryHook(optimizer, str(tmp_path))
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
    hook = summary_hooks.ClippingSummaryHook(clip, str(tmp_path))
    if clips_inside:
      with pytest.raises(RuntimeError, match='from a branch.*outside'):
        hook.begin()
      return
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(train_op)
      assert session.run(w).tolist() == [[1.0], [0.5]]


@pytest.mark.parametrize('hook', [
    summary_hooks.ClippingSummaryHook, summary_hooks.StalenessSummaryHook])
def test_another_optimizer_is_refused(hook):
  with pytest.raises(TypeError, match='`optimizer` must .*Received: '):
    hook(tf1.train.GradientDescentOptimizer(0.1), '')
