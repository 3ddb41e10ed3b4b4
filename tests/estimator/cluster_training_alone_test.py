# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the only task of a cluster: who evaluates and exports.

Errors and warnings before a task begins are tested, too.
"""

import json
import tempfile

import pytest
import tensorflow as tf

from tests.helpers import readonly
from tfplugin import distribute
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1


class _Listener(tf1.train.CheckpointSaverListener):
  """Collects the steps of checkpoints."""

  def __init__(self):
    self.steps = []

  def after_save(self, session, global_step_value):
    self.steps.append(int(global_step_value))


def _model_fn(features, labels, mode):
  del features, labels
  weight = tf1.get_variable('weight', initializer=4.0)
  loss = tf.square(weight)
  train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
      loss, global_step=tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _input_fn():
  return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()


# Each step takes .25 * 2 * w away: w = 4, 2, 1, 1/2. With a rate of 1 copy and
# centre swap: 4 and 2, 2 and 2, 2 and 1.
@pytest.mark.parametrize('make_strategy, weight', [
    (lambda: distribute.TowerStrategy(['/cpu:0']), 0.5),
    (lambda: distribute.ElasticAverageStrategy(
        communication_period=1, moving_rate=1.0), 1.0)],
                         ids=['tower', 'elastic'])
@pytest.mark.parametrize('job, evaluates', [
    ('chief', False), ('worker', False), ('master', True), (None, True)])
def test_the_only_task_evaluates_where_it_does_with_tensorflow(
    job, evaluates, make_strategy, weight, monkeypatch, tmp_path):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['a:1']}, 'task': {'type': job, 'index': 0}}
      if job else {}))
  listener = _Listener()
  config = tf.estimator.RunConfig(
      str(tmp_path), train_distribute=make_strategy())
  result = cluster_training.train_and_evaluate(
      tf.estimator.Estimator(_model_fn, config=config),
      tf.estimator.TrainSpec(_input_fn, 3, saving_listeners=[listener]),
      tf.estimator.EvalSpec(_input_fn, steps=1))
  assert (result is not None) == evaluates
  assert bool(list(tmp_path.glob('eval/events*'))) == evaluates
  assert listener.steps == [0, 3]
  reader = tf.train.load_checkpoint(str(tmp_path))
  assert reader.get_tensor('weight') == pytest.approx(weight)


@pytest.mark.parametrize('job', ['chief', None])
def test_a_start_waits_while_the_directory_is_read_only(
    job, monkeypatch, tmp_path, caplog):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['a:1']}, 'task': {'type': job, 'index': 0}}
      if job else {}))

  def train(steps):
    cluster_training.train_and_evaluate(
        tf.estimator.Estimator(_model_fn, str(tmp_path)),
        tf.estimator.TrainSpec(_input_fn, steps),
        tf.estimator.EvalSpec(_input_fn, steps=1))

  train(1)
  readonly.make(tmp_path, 3.0)
  train(3)
  assert f'chief:0 waits to write in {tmp_path}' in caplog.text.replace(
      'worker:0', 'chief:0')
  assert tf.train.load_checkpoint(str(tmp_path)).get_tensor('weight') == (
      pytest.approx(0.5))


def _run(model_dir, **limits):
  return cluster_training.train_and_evaluate(
      tf.estimator.Estimator(_model_fn, model_dir),
      tf.estimator.TrainSpec(_input_fn, 1),
      tf.estimator.EvalSpec(_input_fn, steps=1, start_delay_secs=0,
                            throttle_secs=0), **limits)


@pytest.mark.parametrize('value, error', [
    (-1.0, ValueError), (0, ValueError), (float('nan'), ValueError),
    ('60', TypeError), (True, TypeError)])
@pytest.mark.parametrize('argument', [
    'start_limit_secs', 'finish_limit_secs', 'contact_limit_secs'])
def test_a_wrong_limit_is_named(argument, value, error, tmp_path):
  with pytest.raises(error, match=f'`{argument}` must be .*Received: {value}'
                     if value != '60' else f'`{argument}` .*Received: \'60'):
    _run(str(tmp_path), **{argument: value})
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('jobs, warns', [
    (('evaluator', 'chief'), True), (('chief',), True), ((), False)])
def test_a_task_of_a_cluster_without_a_model_dir_is_warned(
    jobs, warns, monkeypatch, tmp_path, caplog):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['127.0.0.1:1'] for job in jobs},
      'task': {'type': jobs[0], 'index': 0}} if jobs else {}))
  if jobs[:1] == ('evaluator',):
    with pytest.raises(TimeoutError, match='There is no checkpoint'):
      _run(None, contact_limit_secs=0.2)
  else:
    _run(None)
  assert ('The tasks of a cluster must have one `model_dir`. Received: '
          f"'{tmp_path}/tmp" in caplog.text) == warns


def test_a_model_dir_of_a_cluster_is_accepted(monkeypatch, tmp_path, caplog):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['a:1']}, 'task': {'type': 'chief', 'index': 0}}))
  _run(str(tmp_path))
  assert 'must have one `model_dir`' not in caplog.text
