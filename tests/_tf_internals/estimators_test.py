# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions, servers and clocks are replaced where TensorFlow has them."""

from __future__ import annotations

import time

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.report.reading import scalars

tf1 = tf.compat.v1


def test_the_first_end_comes_before_that_of_any_hook(tmp_path):
  ends = []

  class Hook(tf.compat.v1.train.SessionRunHook):

    def __init__(self, name):
      self._name = name

    def end(self, session):
      ends.append(self._name)

  def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    return tf.compat.v1.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=step,
        training_chief_hooks=[Hook('of the model')])

  with _tf_internals.first_of_ends(lambda session: ends.append('first')):
    tf.compat.v1.estimator.Estimator(model_fn, str(tmp_path)).train(
        lambda: tf.data.Dataset.from_tensors(1.0), [Hook('of the caller')])
  assert ends == ['first', 'of the model', 'first', 'of the caller']


@pytest.mark.parametrize('is_outer', [True, False])
def test_contexts_of_sessions_are_nested(tmp_path, is_outer):
  """Each sees the arguments of Estimator."""
  ends, received = [], []

  def change(config):
    received.append(config)
    return config

  def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=step)

  contexts = [_tf_internals.first_of_ends(lambda session: ends.append('first')),
              _tf_internals.session_config_through(change)]
  config = tf1.ConfigProto(inter_op_parallelism_threads=2)
  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path), tf.estimator.RunConfig(session_config=config))
  with contexts[is_outer], contexts[not is_outer]:
    estimator.train(lambda: tf.data.Dataset.from_tensors(1.0))
  assert ends and received == [config]


def test_a_timer_goes_on_when_the_hosts_clock_is_set_back(monkeypatch):
  timer = tf1.train.SecondOrStepTimer(every_secs=600)
  monkeypatch.setattr(time, 'time', lambda: 1e9)
  now = [1e9]
  with _tf_internals.timers_by(lambda: now[0]):
    timer.update_last_triggered_step(1)
    monkeypatch.setattr(time, 'time', lambda: 1e9 - 3600)
    now[0] += 599
    assert not timer.should_trigger_for_step(2)
    now[0] += 1
    assert timer.should_trigger_for_step(2)
  # Without it: not before an hour and ten minutes have gone.
  assert not timer.should_trigger_for_step(2)


@pytest.mark.parametrize('jump', [-3600.0, 3600.0])
def test_a_curve_goes_on_when_the_hosts_clock_is_set(
    tmp_path, monkeypatch, jump):
  monkeypatch.setattr(time, 'time', lambda: 1e9)
  now = [1e9]
  with tf.Graph().as_default(), _tf_internals.timers_by(lambda: now[0]):
    writer = tf1.summary.FileWriter(str(tmp_path), flush_secs=4)
    for step in (1, 2):
      writer.add_summary(tf1.Summary(value=[
          tf1.Summary.Value(tag='loss', simple_value=0.5)]), step)
      # Each is flushed, as the seconds have passed.
      deadline = time.monotonic() + 10
      while len(_times_of_losses(tmp_path)) < step and (
          time.monotonic() < deadline):
        time.sleep(0.01)
      monkeypatch.setattr(time, 'time', lambda: 1e9 + jump)
      now[0] += 5
    assert _times_of_losses(tmp_path) == [1e9, 1e9 + 5]
    writer.close()


def test_a_checkpoint_of_each_hour_is_kept_when_the_hosts_clock_is_set_back(
    tmp_path, monkeypatch):
  monkeypatch.setattr(time, 'time', lambda: 1e9)
  now = [1e9]
  with tf.Graph().as_default(), _tf_internals.timers_by(lambda: now[0]):
    v = tf1.get_variable('v', initializer=1.0)
    saver = tf1.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
    monkeypatch.setattr(time, 'time', lambda: 1e9 - 3600)
    with tf1.Session() as session:
      session.run(v.initializer)
      for step in (1, 2, 3):
        now[0] += 3000
        saver.save(session, str(tmp_path / 'm'), global_step=step)
  assert sorted(path.stem for path in tmp_path.glob('*.index')) == [
      'm-2', 'm-3']


def _times_of_losses(path):
  found = scalars.read_tree(path).get('', {}).get('loss')
  return found.times if found else []
