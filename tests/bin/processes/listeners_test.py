# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that servers of a run are reached at their own address alone."""

import os
import select
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from tfplugin.bin.processes import listeners

_LIMIT = 60

# Listens on every network, as TensorFlow's servers do, and greets who comes.
_SERVER = textwrap.dedent('''
    import socket
    listener = socket.create_server(
        ('', 0), family=socket.AF_INET6, dualstack_ipv6=True)
    print(listener.getsockname()[1], flush=True)
    while True:
      connection, _ = listener.accept()
      connection.sendall(b'welcome')
      connection.close()
    ''')


@pytest.fixture
def server():
  """A process whose server listens everywhere, and its port."""
  process = subprocess.Popen([sys.executable, '-c', _SERVER],
                             stdout=subprocess.PIPE)
  yield process, int(process.stdout.readline())
  process.kill()
  process.communicate()


def _greets(host, port):
  try:
    with socket.create_connection((host, port), timeout=0.5) as connection:
      return connection.recv(7) == b'welcome'
  except OSError:  # Nobody answers; or there is no IPv6.
    return False


def test_a_server_is_reached_at_its_own_address_alone(server, filters_allowed):
  process, port = server
  said = []
  fence = listeners.AddressFilter(said.append)
  assert _greets('127.0.0.1', port) and _greets('127.0.0.2', port)
  for _ in range(2):  # The second look finds nothing new.
    fence.look([f'localhost:{port}'], lambda: [process.pid])
    assert _greets('127.0.0.1', port)
    assert not _greets('127.0.0.2', port)
    assert not _greets('::1', port)
  assert said == []


def test_a_connection_of_before_to_another_address_is_ended(filters_allowed):
  code = _SERVER.partition('while')[0] + 'a = [listener.accept() for _ in "12"]'
  process = subprocess.Popen(
      [sys.executable, '-c', f'{code}; import time; time.sleep(99)'],
      stdout=subprocess.PIPE)
  port = int(process.stdout.readline())
  fence = listeners.AddressFilter(pytest.fail)
  with socket.create_connection(('127.0.0.1', port)) as own, \
      socket.create_connection(('127.0.0.2', port)) as other:
    deadline = time.monotonic() + _LIMIT
    while not select.select([other], [], [], 0)[0]:
      fence.look([f'127.0.0.1:{port}'], lambda: [process.pid])
      assert time.monotonic() < deadline
      time.sleep(0.01)
    assert other.recv(1) == b''
    assert not select.select([own], [], [], 0)[0]
  process.kill()
  process.communicate()


def test_other_processes_and_other_ports_are_left_alone(server):
  process, port = server
  fence = listeners.AddressFilter(pytest.fail)
  fence.look([f'127.0.0.1:{port}'], lambda: [os.getpid()])
  fence.look(['127.0.0.1:1'], lambda: [process.pid])
  assert _greets('127.0.0.2', port)


def test_a_process_that_has_ended_is_no_failure(server):
  process, port = server
  ended = subprocess.Popen([sys.executable, '-c', ''])
  ended.wait()
  fence = listeners.AddressFilter(pytest.fail)
  fence.look([f'127.0.0.1:{port}'], lambda: [ended.pid])


def test_what_is_not_possible_is_said_once(server, monkeypatch):
  process, port = server

  def refuse(pid):
    raise PermissionError(1, 'Operation not permitted')

  monkeypatch.setattr(os, 'pidfd_open', refuse, raising=False)
  said = []
  fence = listeners.AddressFilter(said.append)
  for _ in range(2):
    fence.look([f'127.0.0.1:{port}'], lambda: [process.pid])
  assert len(said) == 1
  assert 'from every network of this machine ([Errno 1]' in said[0]
  assert 'private network' in said[0]


def test_the_filter_has_the_address_in_the_order_of_the_network():
  program = listeners.only_to('10.1.2.3')
  assert len(program) == 7 * 8
  # The fifth instruction compares: its operand is 10 * 2**24 + ... + 3.
  assert int.from_bytes(program[4 * 8 + 4:5 * 8], sys.byteorder) == (
      10 * 2**24 + 1 * 2**16 + 2 * 2**8 + 3)
