# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filters of the Linux kernel on the sockets of other processes.

A filter decides which packets a socket accepts (`man 7 socket`,
SO_ATTACH_FILTER). Most kernels let a user filter the sockets of the user's own
processes. Some allow it only to root.
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

# The same in Linux on every machine that TensorFlow supports.
_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
_PIDFD_GETFD = 438
_LISTENS, _ESTABLISHED = '0A', '01'
_TABLES = ('/proc/net/tcp', '/proc/net/tcp6')
# ::ffff:0:0/96, in this machine's order of bytes.
_IPV4_IN_IPV6 = '0' * 16 + format(socket.htonl(0xffff), '08X')
# The kernel accepts no longer program.
_MOST_INSTRUCTIONS = 4096

# An instruction: opcode, jump if true, jump if false, operand.
Instruction = tuple[int, int, int, int]
_FORMAT = 'HBBI'


class Entry(NamedTuple):
  """A TCP socket in the kernel's table, with both addresses of a connection.

  An address is `ADDRESS:PORT` in hexadecimal digits, as the kernel writes it.
  """

  inode: str
  local: str
  remote: str
  state: str

  @property
  def port(self) -> int:
    """Its own port."""
    return int(self.local.rpartition(':')[2], 16)

  @property
  def listens(self) -> bool:
    """True for a socket that waits for connections."""
    return self.state == _LISTENS

  @property
  def is_connected(self) -> bool:
    """True for an open connection that both ends have agreed on."""
    return self.state == _ESTABLISHED

  @property
  def host(self) -> str:
    """Its own address without the port, as people write it."""
    return _as_text(self.local).rpartition(':')[0]

  @property
  def other_address(self) -> str:
    """The address of the other end, as people write it."""
    return _as_text(self.remote)


def _as_text(address: str) -> str:
  digits, _, port = address.partition(':')
  # Words of 32 bits in this machine's order of bytes.
  numbers = b''.join(struct.pack('=I', int(digits[i:i + 8], 16))
                     for i in range(0, len(digits), 8))
  family = socket.AF_INET if len(numbers) == 4 else socket.AF_INET6
  return f'{socket.inet_ntop(family, numbers)}:{int(port, 16)}'


def entries() -> Iterator[Entry]:
  """Yields the TCP sockets of this machine."""
  for table in _TABLES:
    with contextlib.suppress(OSError):
      for line in pathlib.Path(table).read_text().splitlines()[1:]:
        fields = line.split()
        yield Entry(fields[9], _as_ipv4(fields[1]), _as_ipv4(fields[2]),
                    fields[3])


def _as_ipv4(address: str) -> str:
  """Returns an address; without what IPv6 puts before one of IPv4."""
  return address.removeprefix(_IPV4_IN_IPV6)


def numbers_of(pid: int) -> dict[str, int]:
  """Returns the file descriptors of a process's sockets, by inode."""
  found = {}
  for entry in list(pathlib.Path(f'/proc/{pid}/fd').iterdir()):
    with contextlib.suppress(FileNotFoundError):
      kind, _, inode = os.readlink(entry).partition(':')
      if kind == 'socket':
        found[inode.strip('[]')] = int(entry.name)
  return found


@contextlib.contextmanager
def opened(pid: int, number: int) -> Iterator[socket.socket]:
  """Opens the socket with file descriptor `number` of another process."""
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
  """Replaces the filter of a socket by `program`; b'' removes the filter."""
  if not program:
    with contextlib.suppress(FileNotFoundError):  # There is no filter.
      found.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
    return
  code = ctypes.create_string_buffer(program, len(program))
  # struct sock_fprog: the number of instructions and their address.
  found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack(
      'HP', len(program) // struct.calcsize(_FORMAT), ctypes.addressof(code)))


def attached(found: socket.socket) -> bytes:
  """Returns the filter of a socket; b'' if it has none."""
  size = struct.calcsize(_FORMAT)
  code = ctypes.create_string_buffer(_MOST_INSTRUCTIONS * size)
  # For this option the kernel counts instructions, not bytes.
  number = ctypes.c_uint32(_MOST_INSTRUCTIONS)
  if ctypes.CDLL(None, use_errno=True).getsockopt(
      found.fileno(), socket.SOL_SOCKET, _SO_ATTACH_FILTER, code,
      ctypes.byref(number)):
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))
  return code.raw[:number.value * size]


def assembled(*instructions: Instruction) -> bytes:
  """Returns a filter made of instructions of the kernel's packet filter."""
  return b''.join(struct.pack(_FORMAT, *each) for each in instructions)

