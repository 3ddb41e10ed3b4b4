# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the chief's wait for the workers."""

import json

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import waits


def _config(monkeypatch, cluster, task_type='chief'):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': 0}}))
  return tf.estimator.RunConfig()


def test_the_chief_stays_until_the_workers_have_reported(monkeypatch):
  cluster = ports.make_cluster(2, 1)
  spec = tf.train.ClusterSpec(cluster)
  server = tf.distribute.Server(spec, job_name='ps', task_index=0)
  task = cluster_task.from_config(_config(monkeypatch, cluster))
  task_records.report_finished(spec, 'worker:0')
  with pytest.raises(TimeoutError, match=r'chief:0.*last step of worker:1\.'):
    waits.wait_for_workers(task, 0.3)
  task_records.report_finished(spec, 'worker:1')
  waits.wait_for_workers(task, 30.0)
  del server


def test_the_chief_warns_of_a_worker_that_has_gone_and_reports_for_it(
    monkeypatch, caplog):
  cluster = ports.make_cluster(2, 1)
  spec = tf.train.ClusterSpec(cluster)
  server = tf.distribute.Server(spec, job_name='ps', task_index=0)
  hook = waits.WaitForWorkersHook(
      _config(monkeypatch, cluster), time_limit_secs=0.3)
  task_records.report_finished(spec, 'worker:0')
  hook.end(None)
  assert 'last step of worker:1.' in caplog.text
  assert 'complete without' in caplog.text
  waits.wait_for_tasks(spec, ['worker:0', 'worker:1'], 'ps:0', 10.0, 0)
  del server


@pytest.mark.parametrize('task_type, num_workers, num_ps', [
    ('worker', 1, 1), ('chief', 0, 1), ('chief', 1, 0)])
def test_where_nobody_is_to_be_waited_for(monkeypatch, task_type, num_workers,
                                          num_ps):
  # Nothing listens on these ports: any look at a list would fail.
  config = _config(monkeypatch, ports.make_cluster(num_workers, num_ps),
                   task_type)
  waits.wait_for_workers(
      cluster_task.from_config(config), 0.1)


def test_a_limit_has_to_be_positive():
  with pytest.raises(ValueError, match='`time_limit_secs` must be positive'):
    waits.WaitForWorkersHook(tf.estimator.RunConfig(), 0)
