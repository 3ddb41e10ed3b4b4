# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of whether tasks are there, with sockets that stand for them."""

import contextlib
import socket
import threading

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import time_limit
from tfplugin.hooks.shutdown import contact


def _listening(address):
  host, _, port = address.rpartition(':')
  return contextlib.closing(socket.create_server((host, int(port))))


@pytest.fixture
def cluster():
  return ports.make_cluster(1, 2)


def test_a_task_is_there_while_its_port_is_open(cluster):
  spec = tf.train.ClusterSpec(cluster)
  with _listening(cluster['ps'][1]):
    assert contact.unreachable(spec, ['ps:0', 'ps:1']) == [
        f'ps:0 at {cluster["ps"][0]}']
  assert len(contact.unreachable(spec, ['ps:0', 'ps:1'])) == 2


def test_a_host_that_nobody_knows_is_told():
  away, = contact.unreachable(
      tf.train.ClusterSpec({'ps': ['no-such-host.invalid:2222']}), ['ps:0'])
  assert away.startswith('ps:0 at no-such-host.invalid:2222 (')
  assert away.endswith(')')


def test_the_servers_that_stay_away_are_named(cluster, monkeypatch, caplog):
  monkeypatch.setattr(time_limit, '_SAY_EVERY_SECS', 0.1)
  with _listening(cluster['ps'][0]), pytest.raises(TimeoutError, match=(
      r'worker:0 waited 0\.5 s for ps:1 at \S+:\d+\. Restart the missing')):
    contact.wait_for_servers(tf.train.ClusterSpec(cluster), 'worker:0', 0.5)
  assert 's for ps:1 at ' in caplog.text
  assert 'waits 0.5 s at most' in caplog.text


def test_a_wait_ends_when_the_servers_are_there(cluster):
  with contextlib.ExitStack() as stack:
    stack.enter_context(_listening(cluster['ps'][0]))
    later = threading.Timer(0.5, lambda: stack.enter_context(
        _listening(cluster['ps'][1])))
    later.start()
    contact.wait_for_servers(tf.train.ClusterSpec(cluster), 'chief:0', 30.0)
    later.join()
  contact.wait_for_servers(
      tf.train.ClusterSpec({'chief': cluster['chief']}), 'chief:0', 0.1)


def test_a_limit_counts_from_the_last_contact(cluster, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(contact.time, 'monotonic', lambda: now[0])
  chief = contact.Contact(
      tf.train.ClusterSpec(cluster), 'chief:0', 'worker:0', 100.0)
  looks = [90.0, 300.0, 380.0]
  for now[0] in looks[:1]:
    chief.check()
  with _listening(cluster['chief'][0]):
    now[0] = looks[1]
    chief.check()  # Out of reach at 90, and here again.
  for now[0] in (looks[2], 470.0):
    chief.check()
  now[0] = 500.0
  with pytest.raises(TimeoutError, match=(
      'worker:0 waited 100 s for a sign of chief:0 at .*counts as lost')):
    chief.check()


def test_without_a_limit_nobody_is_looked_for(cluster):
  contact.Contact(tf.train.ClusterSpec(cluster), 'chief:0', 'ps:0',
                  None).check()
