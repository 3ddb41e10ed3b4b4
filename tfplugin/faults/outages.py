# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outages of disk space and of the network of a process, for some seconds.

The kernel makes them for one process of this user, and undoes them. No other
process on the machine has less space or network.
"""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Callable

from tfplugin.faults import socket_filters

# A filter that accepts no byte of a packet.
_NOTHING = socket_filters.assembled((0x06, 0, 0, 0))


class Outage:
  """An outage that has begun; a call ends it.

  `timer` is the thread that ends it otherwise.
  """

  def __init__(self, secs: float, undo: Callable[[], None]):
    """Starts a timer that ends the outage by `undo`."""
    self._undo = undo
    self.timer = threading.Timer(secs, undo)
    self.timer.daemon = True
    self.timer.start()

  def __call__(self) -> None:
    """Ends the outage now, if it has not ended."""
    self.timer.cancel()
    self._undo()


def begin(kind: str, pid: int, secs: float) -> Outage:
  """Begins an outage, `fill` or `cut`, for some seconds.

  It ends only if this process lives until then. `pid` may be this process.
  Raises OSError if there is no such process, or if the kernel refuses.
  """
  return Outage(secs, {'fill': _fill, 'cut': _cut}[kind](pid))


def _fill(pid: int) -> Callable[[], None]:
  """Keeps the files of a process from growing: `File too large`."""
  limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
  resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limits[1]))

  def undo():
    with contextlib.suppress(ProcessLookupError):
      resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

  return undo


def _cut(pid: int) -> Callable[[], None]:
  """Blocks incoming packets of the TCP sockets of a process."""
  known = {entry.inode for entry in socket_filters.entries()}
  before = {}
  for inode, number in socket_filters.numbers_of(pid).items():
    if inode in known and (filter_ := _silence(pid, number)) is not None:
      before[inode] = filter_
  if not before:
    raise OSError('A network can be cut where a process has connections. '
                  f'Received: process {pid}, which has none.')

  def undo():
    with contextlib.suppress(OSError):
      for inode, number in socket_filters.numbers_of(pid).items():
        if inode in before:
          with contextlib.suppress(OSError), socket_filters.opened(
              pid, number) as found:
            socket_filters.attach(found, before[inode])

  return undo


def _silence(pid: int, number: int) -> bytes | None:
  """Blocks a socket, given by its descriptor in a process.

  The result is its previous filter; None if it was closed meanwhile. Raises
  OSError if the kernel refuses.
  """
  try:
    with socket_filters.opened(pid, number) as found:
      filter_ = socket_filters.attached(found)
      socket_filters.attach(found, _NOTHING)
      return filter_
  except PermissionError as e:
    raise OSError(
        'A network can be cut where the kernel lets a process set filters on '
        f'the sockets of another one. Received: {e}, for process {pid}. A '
        'sandbox may forbid it.') from e
  except OSError:
    return None
