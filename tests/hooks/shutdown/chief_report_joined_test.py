# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a worker that joins a run which is over meanwhile."""

import json
import socket

import pytest
import tensorflow as tf

import tfplugin.estimator
from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import chief_report


@pytest.fixture(name='cluster')
def _cluster(monkeypatch):
  cluster = ports.make_cluster(1, 1)
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {**cluster, 'worker': {'3': cluster['worker'][0]}},
      'task': {'type': 'worker', 'index': 3}, 'max_workers': 4,
      'joins': True}))
  return cluster


def _train(model_dir):
  def refused(*unused):
    raise AssertionError('Nothing is left to train.')

  def model_fn(features, labels, mode):
    del features, labels
    w = tf.compat.v1.get_variable('w', initializer=0.0)
    return tf.estimator.EstimatorSpec(
        mode, loss=w, train_op=tf.py_function(refused, [], []))

  def input_fn():
    return tf.data.Dataset.from_tensors([1.0]).repeat()

  return tfplugin.estimator.train_and_evaluate(
      tf.estimator.Estimator(model_fn, model_dir),
      tf.estimator.TrainSpec(input_fn), tf.estimator.EvalSpec(input_fn))


def test_a_finished_run_leaves_nothing_to_do(cluster, tmp_path):
  del cluster
  chief_report.write(str(tmp_path))
  assert _train(str(tmp_path)) is None


def test_a_run_that_has_gone_without_a_report_is_an_error(
    cluster, tmp_path, monkeypatch):
  del cluster
  monkeypatch.setattr(chief_report, 'AWAY_SECS', 0.0)
  with pytest.raises(TimeoutError, match=(
      'worker:3 waited 0 s for a sign of .* ps:0, chief:0. The run has ended')):
    _train(str(tmp_path))


@pytest.mark.parametrize('job', ['ps', 'chief'])
def test_a_run_with_one_living_task_is_not_over(cluster, tmp_path, job):
  chief_report.write(str(tmp_path))
  host, _, port = cluster[job][0].rpartition(':')
  with socket.create_server((host, int(port))):
    assert chief_report.check_joined_run(
        cluster_task.from_environment(), str(tmp_path)) is None


def test_other_tasks_do_not_look(cluster, tmp_path, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': cluster, 'task': {'type': 'worker', 'index': 0},
      'max_workers': 4}))
  chief_report.write(str(tmp_path))
  chief_report.check_joined_run(cluster_task.from_environment(), str(tmp_path))
