# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of choosing ports, and of the cluster made of them."""

import socket

import pytest
import tensorflow as tf

from tfplugin.bin import ports
from tfplugin.distribute import cluster_task


def test_a_cluster_has_a_port_of_its_own_for_each_task():
  cluster = ports.make_cluster(num_workers=3, num_ps=2)
  assert {job: len(a) for job, a in cluster.items()} == {
      'chief': 1, 'worker': 3, 'ps': 2}
  addresses = [a for job in cluster.values() for a in job]
  assert len(set(addresses)) == 6
  assert all(a.startswith('127.0.0.1:') for a in addresses)


def test_an_occupied_port_is_refused_and_its_task_named():
  with socket.create_server(('127.0.0.1', 0)) as server:
    address = f'127.0.0.1:{server.getsockname()[1]}'
    cluster = tf.train.ClusterSpec({'chief': [address]})
    chief = cluster_task.ClusterTask(cluster, 'chief')
    with pytest.raises(RuntimeError, match=f'port of chief:0.*{address}'):
      ports.check_own_port(chief)
    # The evaluator has no server.
    ports.check_own_port(cluster_task.ClusterTask(cluster, 'evaluator'))
  ports.check_own_port(chief)


def test_more_ports_than_there_are_is_an_error(monkeypatch):
  monkeypatch.setattr(ports, 'is_free', lambda port: port == 20005)
  assert ports.pick_free(1) == [20005]
  with pytest.raises(RuntimeError, match='2 free ports.*Received: 1'):
    ports.pick_free(2)
