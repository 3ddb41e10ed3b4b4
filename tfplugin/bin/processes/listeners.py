# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filters that restrict the servers of a run to their addresses.

TensorFlow's servers listen on every network of the machine, whichever address
TF_CONFIG gives them, and have no authentication. Each server gets a filter of
the kernel (`man 7 socket`, SO_ATTACH_FILTER) that drops every packet to another
address. The server then behaves as if it were bound to its address alone. This
needs no privilege and no change of the program. The filter is attached from
outside, a moment after the server began to listen. A connection of that moment
to another address is ended.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from tfplugin import _socket_filters


class AddressFilter:
  """Watcher that restricts each new server of a run to its address."""

  def __init__(self, say: Callable[[str], None]):
    """Starts without a restricted server; `say` shows a line."""
    self._say = say
    self._restricted: set[str] = set()
    # The address of the server at a port.
    self._addresses: dict[int, str] = {}
    self._has_failed = False

  def look(self, addresses: Iterable[str],
           processes: Callable[[], Iterable[int]]) -> None:
    """Restricts the servers that began to listen since the last call.

    Each of `addresses` is `host:port`; `processes` returns the ids of the run's
    processes. An error is reported once, and the run continues unrestricted.
    """
    if self._has_failed:
      return
    hosts = {int(port): host for host, _, port in (
        address.rpartition(':') for address in addresses)}
    entries = list(_socket_filters.entries())
    ports = {entry.inode: entry.port for entry in entries
             if entry.listens and entry.port in hosts and
             entry.inode not in self._restricted}
    # A new server may have another address than the one before.
    for port in ports.values():
      self._addresses.pop(port, None)
    strangers = {entry.inode for entry in entries if entry.is_connected and
                 entry.host != self._addresses.get(entry.port, entry.host)}
    try:
      for inode, pid, number in _owners({*ports, *strangers}, processes):
        with _socket_filters.opened(pid, number) as found:
          if inode in strangers:
            with contextlib.suppress(OSError):  # It has ended meanwhile.
              found.shutdown(socket.SHUT_RDWR)
            continue
          address = socket.gethostbyname(hosts[ports[inode]])
          _socket_filters.attach(found, only_to(address))
        self._restricted.add(inode)
        self._addresses[ports[inode]] = address
    except (FileNotFoundError, ProcessLookupError):
      pass  # The process has ended.
    except (OSError, AttributeError) as e:
      self._has_failed = True
      self._say('The servers of this run can be reached from every network of '
                f'this machine ({e}), and TensorFlow has no authentication. '
                'Run it only on a private network.')


def _owners(inodes: Iterable[str], processes: Callable[[], Iterable[int]]
           ) -> Iterator[tuple[str, int, int]]:
  """Yields inode, process id and file descriptor of the run's own sockets."""
  wanted = set(inodes)
  for pid in processes() if wanted else ():
    for inode, number in _socket_filters.numbers_of(pid).items():
      if inode in wanted:
        wanted.remove(inode)
        yield inode, pid, number


def only_to(address: str) -> bytes:
  """Returns the filter that accepts packets to one IPv4 address alone."""
  header = 0xfff00000  # Where the packet's network header begins.
  wanted, = struct.unpack('!I', socket.inet_aton(address))
  return _socket_filters.assembled(
      (0x30, 0, 0, header),       # A = the first byte of the header
      (0x74, 0, 0, 4),            # A >>= 4: the version
      (0x15, 0, 3, 4),            # not 4: to the last line
      (0x20, 0, 0, header + 16),  # A = the destination
      (0x15, 0, 1, wanted),       # not the wanted one: to the last line
      (0x06, 0, 0, 0xffffffff),   # accept the whole packet
      (0x06, 0, 0, 0))            # drop the packet
