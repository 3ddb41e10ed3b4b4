# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which worker a RunConfig says that a process is."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from tfplugin.estimator import elastic_worker


def _config(monkeypatch, cluster, task_type, index):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': index}}))
  return tf.estimator.RunConfig()


CLUSTER = {'chief': ['a:1'], 'worker': ['b:1', 'c:1'], 'ps': ['d:1']}


@pytest.mark.parametrize('task_type, index, expected', (
    ('chief', 0, elastic_worker.Worker(3, 0, '/job:chief/task:0', True)),
    ('worker', 1, elastic_worker.Worker(3, 2, '/job:worker/task:1', False))))
def test_worker_of_a_cluster(monkeypatch, task_type, index, expected):
  config = _config(monkeypatch, CLUSTER, task_type, index)
  assert elastic_worker.worker_of(config, None) == expected


def test_worker_without_a_cluster():
  alone = elastic_worker.Worker(1, 0, '', True)
  assert elastic_worker.worker_of(None, None) == alone
  assert elastic_worker.worker_of(tf.estimator.RunConfig(), None) == alone


def test_clusters_that_cannot_be_are_refused(monkeypatch):
  config = _config(monkeypatch, CLUSTER, 'worker', 0)
  with pytest.raises(ValueError, match='`num_worker` must be at least'):
    elastic_worker.worker_of(config, 2)
  config = _config(monkeypatch, {
      'chief': ['a:1'], 'worker': ['b:1']}, 'chief', 0)
  with pytest.raises(ValueError, match='needs a parameter server'):
    elastic_worker.worker_of(config, None)
