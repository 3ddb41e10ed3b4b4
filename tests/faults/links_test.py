# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of faults of the network around a process."""

import contextlib
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from tfplugin import _socket_filters
from tfplugin.faults import acts
from tfplugin.faults import links

_LIMIT = 60

# A task that talks to itself too, and sends back what it gets. It answers each
# line of its input. For a port it connects there, for others it says `m` there.
# A `late` one accepts no connection before the first line.
_TASK = textwrap.dedent('''
    import socket, sys, threading

    def answer(listener):
      while True:
        threading.Thread(target=echo, args=listener.accept()[:1],
                         daemon=True).start()

    def echo(connection):
      while data := connection.recv(1 << 16):
        connection.sendall(data)

    listener = socket.create_server(('127.0.0.1', 0))
    own = socket.create_connection(listener.getsockname())
    answering = threading.Thread(target=answer, args=(listener,), daemon=True)
    if sys.argv[1:] != ['late']:
      answering.start()
    print(listener.getsockname()[1], flush=True)
    opened = []
    for line in sys.stdin:
      if line.strip():
        opened.append(socket.create_connection(('127.0.0.1', int(line)), 60))
      if not answering.ident:
        answering.start()
      for connection in opened:
        connection.sendall(b'm')
      own.sendall(b'o')
      print(own.recv(1).decode(), flush=True)
    ''')


@pytest.fixture(name='task')
def fixture_task(filters_allowed, request):
  with subprocess.Popen(
      [sys.executable, '-c', _TASK, *getattr(request, 'param', ())],
      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
      bufsize=1) as task:
    task.port = int(task.stdout.readline())
    yield task
    task.kill()


@pytest.fixture(name='connection')
def fixture_connection(task):
  with socket.create_connection(('127.0.0.1', task.port), _LIMIT) as connection:
    connection.sendall(b'a')
    assert connection.recv(1) == b'a'
    yield connection


def _tell(task, line=''):
  task.stdin.write(f'{line}\n')
  return task.stdout.readline().strip()


def _is_silent(connection):
  connection.settimeout(0.2)
  with contextlib.suppress(socket.timeout):
    connection.recv(1)
    return False
  return True


@pytest.mark.parametrize('kind', ['cut', 'partition'])
def test_nothing_arrives_until_the_outage_ends(task, connection, kind):
  end = acts.begin_outage(kind, task.pid, _LIMIT)
  connection.sendall(b'b')
  assert _is_silent(connection)
  with pytest.raises(socket.timeout):
    socket.create_connection(('127.0.0.1', task.port), 0.2)
  assert _tell(task) == 'o'  # It is a host of its own.
  end()
  connection.settimeout(_LIMIT)
  assert connection.recv(1) == b'b'


@pytest.mark.parametrize('task', [['late']], indirect=True)
@pytest.mark.parametrize('kind', ['cut', 'partition'])
def test_a_task_that_has_not_accepted_itself_talks_to_itself(task, kind):
  end = acts.begin_outage(kind, task.pid, _LIMIT)
  start = time.monotonic()
  assert _tell(task) == 'o'
  assert time.monotonic() - start < _LIMIT / 2  # It was not the end of it.
  end()


@pytest.mark.parametrize('kind', ['cut', 'partition'])
def test_what_a_task_sends_arrives_unless_there_is_a_partition(task, kind):
  with socket.create_server(('127.0.0.1', 0)) as listener:
    _tell(task, listener.getsockname()[1])
    with listener.accept()[0] as connection:
      assert connection.recv(1) == b'm'
      end = acts.begin_outage(kind, task.pid, _LIMIT)
      assert _tell(task) == 'o'
      assert _is_silent(connection) is (kind == 'partition')
      end()
      if kind == 'partition':
        connection.settimeout(_LIMIT)
        assert connection.recv(1) == b'm'


def test_what_is_opened_meanwhile_is_parted_too(task):
  with socket.create_server(('127.0.0.1', 0)) as listener:
    end = acts.begin_outage('partition', task.pid, _LIMIT)
    _tell(task, listener.getsockname()[1])
    with listener.accept()[0] as opened:
      deadline = time.monotonic() + _LIMIT
      while not _is_silent(opened):
        assert time.monotonic() < deadline
        _tell(task)
      end()


@pytest.mark.parametrize('owner, member, error', [
    (_socket_filters, 'opened', OSError(9, 'Bad file descriptor')),
    (_socket_filters, 'numbers_of', ProcessLookupError())])
def test_what_cannot_be_parted_at_once_is_parted_later(
    task, monkeypatch, owner, member, error):
  """As when another process has the socket between fork and exec."""
  original, left = getattr(owner, member), [error] * 3

  def failing(pid, *args):
    if left and (pid != task.pid or member == 'numbers_of'):
      raise left.pop()
    return original(pid, *args)

  with socket.create_server(('127.0.0.1', 0)) as listener:
    end = acts.begin_outage('partition', task.pid, _LIMIT)
    monkeypatch.setattr(owner, member, failing)
    _tell(task, listener.getsockname()[1])
    with listener.accept()[0] as opened:
      deadline = time.monotonic() + _LIMIT / 6
      while not _is_silent(opened):
        assert time.monotonic() < deadline
        _tell(task)
      opened.sendall(b'x')
      assert not left
    end()


def test_other_processes_still_talk(task, connection):
  del connection
  with socket.create_server(('127.0.0.1', 0)) as listener:
    _tell(task, listener.getsockname()[1])
    with listener.accept()[0], socket.create_connection(
        listener.getsockname(), _LIMIT) as third:
      end = acts.begin_outage('partition', task.pid, _LIMIT)
      with listener.accept()[0] as ours:
        ours.sendall(b't')
        assert third.recv(1) == b't'
      end()


def _secs_of_an_echo(connection, size):
  connection.settimeout(_LIMIT)
  start = time.monotonic()
  connection.sendall(b'x' * size)
  while size:
    size -= len(connection.recv(size))
  return time.monotonic() - start


def test_a_slow_link_carries_what_its_rate_allows(task, connection):
  end = acts.begin_outage('slow_link', task.pid, _LIMIT, 100.0)
  for _ in range(20):  # The kernel counts after 10 packets.
    _secs_of_an_echo(connection, 1)
  # A packet waits until the rate has carried the one before it.
  assert _secs_of_an_echo(connection, 50_000) + (
      _secs_of_an_echo(connection, 1)) > 0.4
  opened = socket.create_connection(('127.0.0.1', task.port), _LIMIT)
  with opened:
    deadline = time.monotonic() + _LIMIT
    while _rate(opened) != 100_000:
      assert time.monotonic() < deadline
    end()
    for _ in range(20):
      _secs_of_an_echo(opened, 1)
    # Neither end keeps the rate.
    assert _secs_of_an_echo(opened, 500_000) + _secs_of_an_echo(opened, 1) < 4
    assert _rate(opened) == _rate(connection) == 2**64 - 1


def _rate(connection):
  # SO_MAX_PACING_RATE
  return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8),
                        sys.byteorder)


@pytest.mark.parametrize('percent, arrive', [(100.0, False), (0.0, True)])
def test_a_lossy_link_loses_a_part(task, connection, percent, arrive):
  end = acts.begin_outage('lossy_link', task.pid, _LIMIT, percent)
  connection.sendall(b'b')
  assert _is_silent(connection) is not arrive
  end()
  _secs_of_an_echo(connection, 1)


def test_a_lossy_link_repeats_packets(task, connection):
  # tcpi_total_retrans, the 18th of the numbers behind 8 bytes (man 7 tcp).
  def repeated():
    return int.from_bytes(connection.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 104)[100:], sys.byteorder)

  end = acts.begin_outage('lossy_link', task.pid, _LIMIT, 50.0)
  deadline = time.monotonic() + _LIMIT
  while not repeated():
    assert time.monotonic() < deadline
    _secs_of_an_echo(connection, 10)
  end()


def test_an_end_out_of_reach_is_named_and_nothing_is_changed(
    task, connection, monkeypatch):
  # As if the other end were another user's, or on another machine.
  monkeypatch.setattr(links, '_places_of', lambda inodes: {})
  host, port = connection.getsockname()
  with pytest.raises(OSError, match=f'connected to {host}:{port}. Use `cut`'):
    links.Links(task.pid, links.partition())
  assert _secs_of_an_echo(connection, 1) < _LIMIT
