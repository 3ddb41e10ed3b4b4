# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which task a process is, with and without a strategy."""

import json

import pytest
import tensorflow as tf

from tfplugin.distribute.staleness import drop_stale_gradient_strategy
from tfplugin.estimator import cluster_task

_CLUSTER = {'chief': ['a:1'], 'worker': ['b:2', 'c:3'], 'ps': ['d:4', 'e:5']}


def _task(monkeypatch, task_type, index, with_strategy):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': _CLUSTER, 'task': {'type': task_type, 'index': index}}))
  strategy = (drop_stale_gradient_strategy.DropStaleGradientStrategy(
      staleness=0) if with_strategy else None)
  return cluster_task.task_of(
      tf.estimator.RunConfig('unused', train_distribute=strategy))


@pytest.mark.parametrize('with_strategy', [False, True])
@pytest.mark.parametrize('task_type, index, master, training_index', [
    ('chief', 0, 'grpc://a:1', 0),
    ('worker', 1, 'grpc://c:3', 2),
    ('ps', 1, 'grpc://e:5', 0),
    ('evaluator', 0, '', 0),
])
def test_the_task_is_that_of_tf_config(
    monkeypatch, task_type, index, master, training_index, with_strategy):
  task = _task(monkeypatch, task_type, index, with_strategy)
  assert (task.task_type, task.task_id) == (task_type, index)
  assert task.master == master
  assert task.training_index == training_index
  if task_type != 'evaluator':
    assert task.cluster_spec.as_dict() == _CLUSTER
    assert task.num_ps_replicas == 2


def test_a_process_alone_has_no_cluster(monkeypatch):
  monkeypatch.delenv('TF_CONFIG', raising=False)
  task = cluster_task.task_of(tf.estimator.RunConfig('unused'))
  assert not task.cluster_spec.jobs
  assert (task.training_index, task.num_ps_replicas) == (0, 0)
