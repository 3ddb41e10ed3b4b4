# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filters of Linux's kernel on the sockets of other processes.

A filter decides which of the packets that reach a socket it takes (`man 7
socket`, SO_ATTACH_FILTER). Most kernels let a user filter the sockets of the
user's own processes; some let root alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

# Of Linux, alike on every machine that TensorFlow runs on.
_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
_PIDFD_GETFD = 438
_LISTENS = '0A'
_TABLES = ('/proc/net/tcp', '/proc/net/tcp6')
# The kernel takes no longer program.
_MOST_INSTRUCTIONS = 4096

# An instruction: what to do, jumps if true and if false, a number.
Instruction = tuple[int, int, int, int]
_FORMAT = 'HBBI'


class Entry(NamedTuple):
  """A socket of TCP in the kernel's table.

  Attributes:
    inode: Its number.
    port: Its own port.
    listens: Whether it waits for connections.
  """

  inode: str
  port: int
  listens: bool


def entries() -> Iterator[Entry]:
  """Yields the sockets of TCP of this machine."""
  for table in _TABLES:
    with contextlib.suppress(OSError):
      for line in pathlib.Path(table).read_text().splitlines()[1:]:
        fields = line.split()
        yield Entry(fields[9], int(fields[1].rpartition(':')[2], 16),
                    fields[3] == _LISTENS)


def numbers_of(pid: int) -> dict[str, int]:
  """Returns the file descriptors of a process's sockets, by inode.

  Args:
    pid: The process.

  Raises:
    OSError: There is none, or it belongs to another user.
  """
  found = {}
  for entry in list(pathlib.Path(f'/proc/{pid}/fd').iterdir()):
    with contextlib.suppress(FileNotFoundError):
      kind, _, inode = os.readlink(entry).partition(':')
      if kind == 'socket':
        found[inode.strip('[]')] = int(entry.name)
  return found


@contextlib.contextmanager
def opened(pid: int, number: int) -> Iterator[socket.socket]:
  """Opens a socket of another process in this one.

  Args:
    pid: The process.
    number: The file descriptor there.

  Raises:
    OSError: The process has ended, or the kernel does not allow it.
  """
  libc = ctypes.CDLL(None, use_errno=True)
  process = os.pidfd_open(pid)
  try:
    copy = libc.syscall(_PIDFD_GETFD, process, number, 0)
  finally:
    os.close(process)
  if copy < 0:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))
  with socket.socket(fileno=copy) as found:
    yield found


def attach(found: socket.socket, program: bytes) -> None:
  """Gives a socket a filter in place of the one that it has.

  Args:
    found: The socket.
    program: Instructions, as `assembled` returns them; empty: no filter.
  """
  if not program:
    with contextlib.suppress(FileNotFoundError):  # It has none.
      found.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
    return
  code = ctypes.create_string_buffer(program, len(program))
  # struct sock_fprog: the number of instructions and where they are.
  found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack(
      'HP', len(program) // struct.calcsize(_FORMAT), ctypes.addressof(code)))


def attached(found: socket.socket) -> bytes:
  """Returns the filter of a socket; empty if it has none.

  Args:
    found: The socket.
  """
  size = struct.calcsize(_FORMAT)
  code = ctypes.create_string_buffer(_MOST_INSTRUCTIONS * size)
  # Here the kernel counts instructions and not bytes.
  number = ctypes.c_uint32(_MOST_INSTRUCTIONS)
  if ctypes.CDLL(None, use_errno=True).getsockopt(
      found.fileno(), socket.SOL_SOCKET, _SO_ATTACH_FILTER, code,
      ctypes.byref(number)):
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))
  return code.raw[:number.value * size]


def assembled(*instructions: Instruction) -> bytes:
  """Returns a filter.

  Args:
    *instructions: Of the kernel's packet filter.
  """
  return b''.join(struct.pack(_FORMAT, *each) for each in instructions)

