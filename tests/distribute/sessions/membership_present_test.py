# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of workers that train now."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.sessions import membership
from tfplugin.hooks.shutdown import task_tables
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.fixture(scope='module', name='cluster')
def _cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=1)


@pytest.fixture(name='board')
def _board(cluster):
  board = task_tables.Board(cluster.cluster_spec.task_address('ps', 0))
  yield board
  board.close()


def test_the_number_changes_without_a_new_graph(cluster, board):
  with tf.Graph().as_default() as graph, tf1.device('/job:worker'):
    number = membership.read_present(otherwise=7)
    assert number.device == '/job:ps/task:0'
    assert not tf1.global_variables()
    with cluster.session(0, graph) as session:
      assert session.run(number) == 7
      for present in (3, 1):
        assert board.count_present(present)
        assert session.run(number) == present


def test_the_default_moving_rate_follows_it_where_workers_may_join(
    cluster, board, monkeypatch):
  settings = elastic_settings.ElasticSettings(communication_period=10)
  monkeypatch.delenv('TF_CONFIG', raising=False)
  # A fixed cluster: the number itself, as ever.
  assert settings.rate(3) == 0.9 / 10 / 3
  monkeypatch.setenv('TF_CONFIG', json.dumps({'max_workers': 8}))
  assert elastic_settings.ElasticSettings(moving_rate=0.5).rate(3) == 0.5
  assert elastic_settings.ElasticSettings(num_worker=2).rate(3) == 0.9 / 10 / 2
  with tf.Graph().as_default() as graph:
    rate = settings.rate(3)
    with cluster.session(0, graph) as session:
      for present in (5, 2):
        board.count_present(present)
        assert session.run(rate) == 0.9 / 10 / present


def test_exchanges_of_one_graph_use_the_number_of_each_time(
    cluster, board, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': cluster.cluster_spec.as_dict(),
      'task': {'type': 'worker', 'index': 0}, 'max_workers': 8}))
  strategy = distribute.ElasticAverageStrategy(
      communication_period=1, count_steps='local')
  with tf.Graph().as_default() as graph, strategy.scope():
    def step():
      w = tf1.get_variable('w', initializer=0.0)
      return w, tf1.train.GradientDescentOptimizer(1.0).minimize(-w)

    w, train_op = strategy.extended.call_for_each_replica(step)
    center = w.center
    assert [v.op.name for v in tf1.global_variables()] == ['w']
    with cluster.session(0, graph) as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      local = expected = 0.0
      for present in (1, 2, 4, 2):
        board.count_present(present)
        session.run(train_op)
        # The gradient step adds 1; d = .9 / 1 / workers * (local - centre).
        local += 1.0
        d = np.float32(0.9 / present) * (local - expected)
        local, expected = local - d, expected + d
        np.testing.assert_allclose(session.run([w.value(), center]),
                                   [local, expected], rtol=1e-6)
