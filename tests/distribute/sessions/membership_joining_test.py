# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the server and sessions of a worker that joins."""

import json

import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import membership

tf1 = tf.compat.v1


def _joins(monkeypatch, cluster, address):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {**cluster, 'worker': {7: address}},
      'task': {'type': 'worker', 'index': 7}, 'max_workers': 3, 'joins': True}))
  return cluster_task.from_environment()


def test_other_tasks_get_a_copy_of_their_settings(monkeypatch):
  monkeypatch.delenv('TF_CONFIG', raising=False)
  given = tf1.ConfigProto(allow_soft_placement=True)
  task = cluster_task.ClusterTask()
  config = membership.session_config(task, given)
  assert config == given and config is not given
  assert membership.session_config(task) == tf1.ConfigProto()
  estimator = tf.estimator.Estimator(lambda features: None)
  with membership.joining(task, estimator):
    assert estimator.config.experimental_max_worker_delay_secs is None


def test_a_session_brings_the_servers_and_the_worker_along(monkeypatch):
  task = _joins(monkeypatch, {'ps': ['a:1', 'a:2'], 'chief': ['a:3']}, 'b:4')
  config = membership.session_config(
      task, tf1.ConfigProto(device_filters=['/job:ps']))
  assert tf.train.ClusterSpec(config.cluster_def).as_dict() == {
      'ps': ['a:1', 'a:2'], 'worker': {7: 'b:4'}}
  assert config.experimental.share_session_state_in_clusterspec_propagation
  assert list(config.device_filters) == ['/job:ps']


def test_it_reads_and_writes_the_variables_of_a_living_run(monkeypatch):
  cluster = ports.make_cluster(0, 1)
  own, = ports.pick_free(1)
  servers = [tf.distribute.Server(cluster, job_name=job, task_index=0)
             for job in ('ps', 'chief')]
  graph = tf.Graph()
  with graph.as_default(), tf1.device('/job:ps/task:0'):
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    add = w.assign_add(2.0)
    start = tf1.global_variables_initializer()
  with tf1.Session(servers[1].target, graph) as chief:
    chief.run(start)
    task = _joins(monkeypatch, cluster, f'127.0.0.1:{own}')
    boot = tf.distribute.Server({'boot': [f'127.0.0.1:{own}']}, job_name='boot',
                                task_index=0)
    config = membership.session_config(task)
    with tf1.Session(boot.target, graph, config) as late:
      assert late.run(w) == 1.0
      late.run(add)
    assert chief.run(w) == 3.0
