# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of disks without space and of networks that are cut."""

import os
import resource
import socket
import subprocess
import sys
import textwrap

import pytest

from tfplugin.faults import outages

_LIMIT = 60

# Adds a byte to a file for each line that it reads, and says what came of it.
_WRITER = textwrap.dedent('''
    import errno, os, sys
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in sys.stdin:
      try:
        print(os.write(file, b'x'), flush=True)
      except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
    ''')
# Sends back what it gets.
_ECHO = textwrap.dedent('''
    import socket
    listener = socket.create_server(('127.0.0.1', 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    while data := connection.recv(9):
      connection.sendall(data)
    ''')


@pytest.fixture(name='start')
def fixture_start():
  """Starts a process that runs some code, with pipes."""
  started = []

  def start(code, *arguments):
    started.append(subprocess.Popen(
        [sys.executable, '-c', code, *arguments], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, bufsize=1))
    return started[-1]

  yield start
  for process in started:
    process.kill()
    process.communicate()


def _write(process):
  process.stdin.write('\n')
  return process.stdout.readline().strip()


def test_no_file_of_a_full_disk_grows_until_there_is_space(start, tmp_path):
  full, other = start(_WRITER, str(tmp_path / 'full')), start(
      _WRITER, str(tmp_path / 'other'))
  assert _write(full) == '1'
  end = outages.begin('fill', full.pid, _LIMIT)
  assert _write(full) == 'EFBIG'
  assert _write(other) == '1'
  end()
  assert _write(full) == '1'
  assert (tmp_path / 'full').read_bytes() == b'xx'


def test_an_outage_ends_by_itself(start, tmp_path):
  full = start(_WRITER, str(tmp_path / 'full'))
  limits = resource.prlimit(full.pid, resource.RLIMIT_FSIZE)
  end = outages.begin('fill', full.pid, 0.1)
  end.timer.join(_LIMIT)
  assert resource.prlimit(full.pid, resource.RLIMIT_FSIZE) == limits
  end()  # Once is enough.


def test_nothing_arrives_where_the_network_is_cut(start, filters_allowed):
  echo = start(_ECHO)
  port = int(echo.stdout.readline())
  with socket.create_connection(('127.0.0.1', port), _LIMIT) as connection:
    connection.sendall(b'a')
    assert connection.recv(1) == b'a'
    end = outages.begin('cut', echo.pid, _LIMIT)
    connection.settimeout(0.2)
    connection.sendall(b'b')
    with pytest.raises(socket.timeout):
      connection.recv(1)
    with pytest.raises(socket.timeout):
      socket.create_connection(('127.0.0.1', port), 0.2)
    end()
    connection.settimeout(_LIMIT)
    assert connection.recv(1) == b'b'


def test_a_process_without_connections_cannot_be_cut(start):
  with pytest.raises(OSError, match='can be cut where a process has conn'):
    outages.begin('cut', start(_WRITER, os.devnull).pid, 1.0)


@pytest.mark.parametrize('kind', ['cut', 'fill'])
def test_a_process_that_ended_is_an_error_and_its_outage_is_over(start, kind):
  process = start('')
  process.wait(_LIMIT)
  with pytest.raises(OSError):
    outages.begin(kind, process.pid, 1.0)


def test_an_outage_of_a_process_that_ends_is_no_error(start, tmp_path):
  full = start(_WRITER, str(tmp_path / 'full'))
  end = outages.begin('fill', full.pid, _LIMIT)
  full.kill()
  full.wait(_LIMIT)
  end()
