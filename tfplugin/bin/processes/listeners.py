# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps connections from elsewhere away from the servers of a run.

TensorFlow's servers listen on every network of the machine, whatever address
TF_CONFIG gives them, and ask nobody who he is. Here each one gets a filter of
the kernel (`man 7 socket`, SO_ATTACH_FILTER) that passes over whatever was not
sent to its own address, as if it were bound to that address alone. That needs
no right and nothing of the program; it is done from outside, a moment after the
server began to listen.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from tfplugin import _socket_filters


class Fence:
  """Restricts the servers of some addresses to these, once each has begun."""

  def __init__(self, say: Callable[[str], None]):
    """Restricts nobody yet.

    Args:
      say: Shows a line.
    """
    self._say = say
    self._restricted: set[str] = set()
    self._has_failed = False

  def look(self, addresses: Iterable[str],
           processes: Callable[[], Iterable[int]]) -> None:
    """Restricts the servers that have begun since the last look.

    Where that is not possible it is said, once, and the run goes on.

    Args:
      addresses: Where the run's servers listen, each as `host:port`.
      processes: Returns the ids of the run's processes.
    """
    if self._has_failed:
      return
    hosts = {int(port): host for host, _, port in (
        address.rpartition(':') for address in addresses)}
    found = {entry.inode: hosts[entry.port]
             for entry in _socket_filters.entries()
             if entry.listens and entry.port in hosts and
             entry.inode not in self._restricted}
    try:
      for inode, pid, number in _owners(found, processes):
        with _socket_filters.opened(pid, number) as listener:
          _socket_filters.attach(
              listener, only_to(socket.gethostbyname(found[inode])))
        self._restricted.add(inode)
    except (FileNotFoundError, ProcessLookupError):
      pass  # It ended meanwhile.
    except (OSError, AttributeError) as e:
      self._has_failed = True
      self._say('The servers of this run can be reached from every network of '
                f'this machine ({e}), and TensorFlow asks nobody who he is. '
                'Keep the machine in a private network.')


def _owners(inodes: Iterable[str], processes: Callable[[], Iterable[int]]
           ) -> Iterator[tuple[str, int, int]]:
  """Yields inode, process and file descriptor of those that are ours."""
  wanted = set(inodes)
  for pid in processes() if wanted else ():
    for inode, number in _socket_filters.numbers_of(pid).items():
      if inode in wanted:
        wanted.remove(inode)
        yield inode, pid, number


def only_to(address: str) -> bytes:
  """Returns the filter that lets pass what was sent to an address of IPv4.

  Args:
    address: E.g. '127.0.0.1'.

  Returns:
    Instructions of the kernel's packet filter, 8 bytes each.
  """
  header = 0xfff00000  # Where the packet's network header begins.
  wanted, = struct.unpack('!I', socket.inet_aton(address))
  return _socket_filters.assembled(
      (0x30, 0, 0, header),       # A = the first byte of the header
      (0x74, 0, 0, 4),            # A >>= 4: the version
      (0x15, 0, 3, 4),            # not 4: to the last line
      (0x20, 0, 0, header + 16),  # A = the destination
      (0x15, 0, 1, wanted),       # not the wanted one: to the last line
      (0x06, 0, 0, 0xffffffff),   # the whole packet passes
      (0x06, 0, 0, 0))            # nothing of it does
