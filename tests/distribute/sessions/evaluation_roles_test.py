# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the warnings about who evaluates: who is warned, and the remedy."""

import json

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import cluster_config
from tfplugin.distribute.sessions import evaluation_roles
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1

_RULES = {'w': []}
STRATEGIES = {
    'elastic': distribute.ElasticAverageStrategy,
    'drop_stale': lambda: distribute.DropStaleGradientStrategy(staleness=3),
    'packed': distribute.PackedParameterServerStrategy,
    'clip': lambda: distribute.VariableClippingStrategy(
        tf1.distribute.MirroredStrategy(['/cpu:0']), _RULES, 1.0),
    'tower': lambda: distribute.TowerStrategy(['/cpu:0']),
    'shards': lambda: distribute.CrossShardStrategy(['/cpu:0']),
}


def _model_fn(features, labels, mode):
  del features, labels
  w = tf1.get_variable('w', initializer=4.0)
  return tf.estimator.EstimatorSpec(
      mode, loss=tf.square(w),
      train_op=tf1.train.GradientDescentOptimizer(0.25).minimize(
          tf.square(w), tf1.train.get_global_step()))


def _run(train_and_evaluate, form, model_dir):
  def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()

  train_and_evaluate(
      tf.estimator.Estimator(_model_fn, str(model_dir), tf.estimator.RunConfig(
          train_distribute=STRATEGIES[form]())),
      tf.estimator.TrainSpec(input_fn, 2),
      tf.estimator.EvalSpec(input_fn, steps=1))
  return bool(list(model_dir.glob('eval/events*')))


@pytest.mark.parametrize('form', STRATEGIES)
def test_the_only_task_is_warned_that_it_evaluates(
    form, monkeypatch, tmp_path, caplog):
  value = json.dumps({'cluster': {'chief': ['a:1']},
                      'task': {'type': 'chief', 'index': 0}})
  monkeypatch.setenv('TF_CONFIG', value)
  assert _run(tf.estimator.train_and_evaluate, form, tmp_path / 'tensorflow')
  assert evaluation_roles.ONLY_TASK in caplog.text
  caplog.clear()
  # The remedy that the warning names.
  monkeypatch.setenv('TF_CONFIG', value)
  assert not _run(cluster_training.train_and_evaluate, form, tmp_path / 'own')
  assert evaluation_roles.ONLY_TASK not in caplog.text


@pytest.mark.parametrize('job, expected', [
    ('master', [evaluation_roles.MASTER]), ('chief', [])])
def test_a_master_of_several_tasks_is_warned(
    job, expected, monkeypatch, caplog):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: [f'of-{job}:1'], 'worker': ['b:1']},
      'task': {'type': job, 'index': 0}}))
  cluster_config.rewrite()
  with evaluation_roles.kept():
    evaluation_roles.warn()
  assert not caplog.messages
  evaluation_roles.warn()
  assert caplog.messages == expected


@pytest.mark.parametrize('value', [
    '', '{"cluster": {"master": ["a:1"]}, "task": {"type": "master"}}'])
def test_a_process_alone_is_not_warned(value, monkeypatch, caplog):
  monkeypatch.setenv('TF_CONFIG', value)
  evaluation_roles.warn()
  assert not caplog.messages
