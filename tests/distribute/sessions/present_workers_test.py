# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of workers that train now."""

import json

import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.sessions import present_workers
from tfplugin.hooks.endings import task_tables
from tfplugin.testing import clusters


@pytest.fixture(scope='module', name='cluster')
def _cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=1)


@pytest.fixture(name='board')
def _board(cluster):
  board = task_tables.Board(cluster.cluster_spec.task_address('ps', 0))
  yield board
  board.close()


def test_the_number_changes_without_a_new_graph(cluster, board):
  with tf.Graph().as_default() as graph, tf.compat.v1.device('/job:worker'):
    number = present_workers.read(otherwise=7)
    assert number.device == '/job:ps/task:0'
    assert not tf.compat.v1.global_variables()
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
