# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of choosing ports, and of the cluster made of them."""

import socket

import psutil
import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports

tf1 = tf.compat.v1


def test_a_cluster_has_a_port_of_its_own_for_each_task():
  cluster = ports.make_cluster(num_workers=3, num_ps=2)
  assert {job: len(a) for job, a in cluster.items()} == {
      'chief': 1, 'worker': 3, 'ps': 2}
  addresses = [a for job in cluster.values() for a in job]
  assert len(set(addresses)) == 6
  assert all(a.startswith('127.0.0.1:') for a in addresses)


@pytest.mark.parametrize('address', ['127.0.0.1', 'localhost', '127.0.0.2'])
def test_an_address_of_this_machine_may_be_bound_to(address):
  ports.check_bind(address)
  cluster = ports.make_cluster(1, 0, address)
  assert [a.rpartition(':')[0] for job in cluster.values() for a in job] == (
      [address] * 2)


# 192.0.2.1 is of the range that no machine has (RFC 5737).
@pytest.mark.parametrize('address, why', [
    ('192.0.2.1', 'Cannot assign'), ('no such name', ''), ('::1', ''),
    ('0.0.0.0', 'no address to connect to'), ('', 'no address to connect to')])
def test_another_address_may_not(address, why):
  with pytest.raises(ValueError, match=f'`bind` must be.*{why}.*`ip address`'):
    ports.check_bind(address)


def test_a_port_of_another_address_is_not_chosen(monkeypatch):
  with socket.create_server(('127.0.0.2', 0)) as server:
    port = server.getsockname()[1]
    monkeypatch.setattr(ports, '_PORTS', range(port, port + 1))
    with pytest.raises(RuntimeError, match='1 free ports'):
      ports.pick_free(1)
  assert ports.pick_free(1) == [port]


def test_a_picked_port_is_kept_for_its_server(monkeypatch):
  port, = ports.pick_free(1)
  monkeypatch.setattr(ports, '_PORTS', range(port, port + 1))
  with pytest.raises(RuntimeError, match='1 free ports.*Received: 0'):
    ports.pick_free(1)
  ports.check_free('worker:0', f'127.0.0.1:{port}', 'for a test')
  server = tf.distribute.Server({'worker': [f'127.0.0.1:{port}']})
  with tf1.Session(server.target, graph=tf.Graph()) as session:
    assert len(session.list_devices()) > 0
  with pytest.raises(RuntimeError, match='The port of worker:0 must be free'):
    ports.check_free('worker:0', f'127.0.0.1:{port}', 'for a test')


def test_few_sockets_are_kept():
  before = psutil.Process().num_fds()
  for _ in range(10):
    ports.pick_free(30)
  assert psutil.Process().num_fds() <= before + 64


def test_a_large_cluster_is_kept_whole(monkeypatch):
  picked = ports.pick_free(80)
  monkeypatch.setattr(ports, '_PORTS', range(min(picked), min(picked) + 1))
  with pytest.raises(RuntimeError, match='1 free ports.*Received: 0'):
    ports.pick_free(1)
