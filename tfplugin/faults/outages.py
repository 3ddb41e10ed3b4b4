# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A disk without space, and a network that is cut, for some seconds.

Both are made by the kernel, for one process of this user, and undone: nothing
else on the machine has less space or network.
"""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Callable

from tfplugin import _socket_filters

# Of no packet is anything taken.
_NOTHING = _socket_filters.assembled((0x06, 0, 0, 0))


class Outage:
  """An outage that has begun; a call ends it.

  Attributes:
    timer: The thread that will end it by itself.
  """

  def __init__(self, secs: float, undo: Callable[[], None]):
    """Lets it last.

    Args:
      secs: How long.
      undo: Ends it.
    """
    self._undo = undo
    self.timer = threading.Timer(secs, undo)
    self.timer.daemon = True
    self.timer.start()

  def __call__(self) -> None:
    """Ends it now, if it has not ended."""
    self.timer.cancel()
    self._undo()


def begin(kind: str, pid: int, secs: float) -> Outage:
  """Begins an outage, which ends by itself if this process goes on.

  Args:
    kind: `fill` or `cut`.
    pid: The process that it meets; it may be this one.
    secs: How long.

  Raises:
    OSError: There is no such process, or the kernel does not allow it.
  """
  return Outage(secs, {'fill': _fill, 'cut': _cut}[kind](pid))


def _fill(pid: int) -> Callable[[], None]:
  """Lets no file grow that a process writes: `File too large`."""
  limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
  resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limits[1]))

  def undo():
    with contextlib.suppress(ProcessLookupError):
      resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

  return undo


def _cut(pid: int) -> Callable[[], None]:
  """Lets nothing reach the sockets of TCP that a process has."""
  known = {entry.inode for entry in _socket_filters.entries()}
  before = {}
  for inode, number in _socket_filters.numbers_of(pid).items():
    if inode in known and (filter_ := _silence(pid, number)) is not None:
      before[inode] = filter_
  if not before:
    raise OSError('A network can be cut where a process has connections. '
                  f'Received: process {pid}, which has none.')

  def undo():
    with contextlib.suppress(OSError):
      for inode, number in _socket_filters.numbers_of(pid).items():
        if inode in before:
          with contextlib.suppress(OSError), _socket_filters.opened(
              pid, number) as found:
            _socket_filters.attach(found, before[inode])

  return undo


def _silence(pid: int, number: int) -> bytes | None:
  """Lets nothing reach a socket of a process.

  Args:
    pid: The process.
    number: The socket's file descriptor there.

  Returns:
    The filter that it had; None if it was closed meanwhile.

  Raises:
    OSError: The kernel does not allow it.
  """
  try:
    with _socket_filters.opened(pid, number) as found:
      filter_ = _socket_filters.attached(found)
      _socket_filters.attach(found, _NOTHING)
      return filter_
  except PermissionError as e:
    raise OSError(
        'A network can be cut where the kernel lets a process set filters on '
        f'the sockets of another one. Received: {e}, for process {pid}. A '
        'sandbox may forbid it.') from e
  except OSError:
    return None
