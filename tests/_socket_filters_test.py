# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of filters on sockets."""

import os
import socket

import pytest

from tfplugin import _socket_filters

_NOTHING = _socket_filters.assembled((0x06, 0, 0, 0))
_ALL = _socket_filters.assembled((0x06, 0, 0, 0xffffffff))


@pytest.fixture(name='pair')
def fixture_pair(filters_allowed):
  """Two connected sockets, of TCP; the second waits 0.2 s for what comes."""
  with socket.create_server(('127.0.0.1', 0)) as listener:
    first = socket.create_connection(listener.getsockname())
    second, _ = listener.accept()
  second.settimeout(0.2)
  with first, second:
    yield first, second


def test_a_filter_decides_what_arrives_and_can_be_taken_away(pair):
  first, second = pair
  _socket_filters.attach(second, _NOTHING)
  first.sendall(b'a')
  with pytest.raises(socket.timeout):
    second.recv(1)
  _socket_filters.attach(second, b'')
  second.settimeout(60)
  assert second.recv(1) == b'a'


def test_the_filter_of_a_socket_can_be_read(pair):
  _, second = pair
  assert _socket_filters.attached(second) == b''
  for program in (_NOTHING, _ALL + _NOTHING):
    _socket_filters.attach(second, program)
    assert _socket_filters.attached(second) == program
  for _ in range(2):  # None to take away is no error.
    _socket_filters.attach(second, b'')
    assert _socket_filters.attached(second) == b''


def test_sockets_are_found_by_their_process():
  with socket.create_server(('127.0.0.1', 0)) as listener:
    port = listener.getsockname()[1]
    entry, = (entry for entry in _socket_filters.entries()
              if entry.listens and entry.port == port)
    numbers = _socket_filters.numbers_of(os.getpid())
    assert numbers[entry.inode] == listener.fileno()
    with _socket_filters.opened(os.getpid(), listener.fileno()) as copy:
      assert copy.fileno() != listener.fileno()
      assert copy.getsockname() == listener.getsockname()
    with pytest.raises(OSError):
      with _socket_filters.opened(os.getpid(), 10**6):
        pass
