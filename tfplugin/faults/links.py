# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults of the network between one process and all others.

The kernel's settings of a socket act on the bytes that it receives (a filter)
or sends (a rate). To act in both directions, the sockets at both ends of a
connection are changed: both must be on this machine, and be of this user. The
process is a host of its own here: its connections to itself stay as they are.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import socket
import struct
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

from tfplugin import _socket_filters

# The inode of a connection that no process has accepted yet.
_NOT_ACCEPTED = '0'
_ACCEPT_NOTHING = (0x06, 0, 0, 0)
_ACCEPT_ALL = (0x06, 0, 0, 0xffffffff)
# Loads a random number of 32 bits (SKF_AD_OFF + SKF_AD_RANDOM).
_LOAD_RANDOM = (0x20, 0, 0, 0xfffff000 + 56)
_JUMP_IF_LESS = 0x35  # Jumps to the second place unless A >= the operand.
# The same on every machine that TensorFlow supports; a value of 64 bits.
_SO_MAX_PACING_RATE = 47
_RATE = 'Q'


class Change(NamedTuple):
  """A change of sockets.

  `apply` changes a socket and returns its setting before; `restore` sets it
  again. `both_ends`: whether the other ends of connections are changed too.
  `listeners`: whether sockets that wait for connections are; a connection
  inherits their setting, and would keep it.
  """

  apply: Callable[[socket.socket], Any]
  restore: Callable[[socket.socket, Any], None]
  both_ends: bool
  listeners: bool


def cut() -> Change:
  """Returns the change after which a process receives nothing."""
  return Change(functools.partial(_filter, (_ACCEPT_NOTHING,)),
                _socket_filters.attach, both_ends=False, listeners=True)


def partition() -> Change:
  """Returns the change after which no process receives anything."""
  return cut()._replace(both_ends=True)


def lossy(percent: float) -> Change:
  """Returns the change after which a part of the packets is lost at random."""
  limit = min(round(percent / 100 * 2**32), 2**32 - 1)
  program = (_LOAD_RANDOM, (_JUMP_IF_LESS, 0, 1, limit), _ACCEPT_ALL,
             _ACCEPT_NOTHING)
  return Change(functools.partial(_filter, program), _socket_filters.attach,
                both_ends=True, listeners=False)


def slow(bytes_per_sec: float) -> Change:
  """Returns the change that limits the rate at which each socket sends."""
  rate = struct.pack(_RATE, max(1, round(bytes_per_sec)))
  return Change(functools.partial(_pace, rate), _restore_pace,
                both_ends=True, listeners=False)


def _filter(program: tuple[_socket_filters.Instruction, ...],
            found: socket.socket) -> bytes:
  before = _socket_filters.attached(found)
  _socket_filters.attach(found, _socket_filters.assembled(*program))
  return before


def _pace(rate: bytes, found: socket.socket) -> bytes:
  before = found.getsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, len(rate))
  _restore_pace(found, rate)
  return before


def _restore_pace(found: socket.socket, rate: bytes) -> None:
  found.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, rate)


class Links:
  """The sockets between a process and others, changed until `undo`."""

  def __init__(self, pid: int, change: Change):
    """Changes the sockets of a process; or raises OSError."""
    self._pid = pid
    self._change = change
    self._before: dict[tuple[int, str], Any] = {}
    self._done: set[str] = set()
    try:
      # What is closed meanwhile is not there the second time.
      out_of_reach = self._spread() and self._spread()
      if out_of_reach:
        raise OSError(
            'A fault of the network in both directions needs a task whose '
            'connections all end on this machine, in processes of this user. '
            f'Received: process {pid}, which is connected to '
            f'{", ".join(sorted(out_of_reach))}. Use `cut`, which acts on the '
            'messages that the task receives.')
    except OSError:
      self.undo()
      raise

  def renew(self) -> None:
    """Changes the connections opened meanwhile; ends elsewhere stay."""
    self._spread()

  def undo(self) -> None:
    """Gives the sockets their settings before the change."""
    numbers_of = functools.cache(_socket_filters.numbers_of)
    for pid, inode in list(self._before):
      with contextlib.suppress(OSError):  # The process has ended.
        self._restore(numbers_of(pid), pid, inode)

  def _restore(self, numbers: dict[str, int], pid: int, inode: str) -> None:
    before = self._before.pop((pid, inode), None)
    if before is not None and inode in numbers:
      with _socket_filters.opened(pid, numbers[inode]) as found:
        self._change.restore(found, before)

  def _spread(self) -> set[str]:
    """Changes what is not changed yet; returns the ends out of reach."""
    mine = _socket_filters.numbers_of(self._pid)
    entries = list(_socket_filters.entries())
    by_ends = {(entry.local, entry.remote): entry.inode for entry in entries}
    others = {}
    for entry in entries:
      if entry.inode not in mine or entry.inode in self._done or (
          entry.listens and not self._change.listeners):
        continue
      other = by_ends.get((entry.remote, entry.local), '')
      if other in mine:  # The process talks to itself.
        # It may have been changed before this process had accepted it.
        self._restore(mine, self._pid, entry.inode)
        self._done.add(entry.inode)
        continue
      self._apply(self._pid, mine[entry.inode], entry.inode)
      if self._change.both_ends and entry.is_connected:
        others[entry] = other
    places = _places_of(set(others.values())) if others else {}
    for entry, other in others.items():
      # What this process accepts at this moment is in `mine` the next time.
      if other in places and places[other][0] != self._pid and self._apply(
          *places[other], other):
        self._done.add(entry.inode)
    return {entry.other_address for entry, other in others.items()
            if other not in (_NOT_ACCEPTED, *places)}

  def _apply(self, pid: int, number: int, inode: str) -> bool:
    """Changes a socket once, by its descriptor; returns whether it is changed.

    It may be closed; or a process has it only between fork and exec.
    """
    if (pid, inode) in self._before:
      return True
    try:
      with _socket_filters.opened(pid, number) as found:
        self._before[pid, inode] = self._change.apply(found)
    except PermissionError as e:
      raise OSError(
          'A fault of the network needs a kernel that lets a process change '
          f'the sockets of another one. Received: {e}, for process {pid}. A '
          'sandbox may forbid it: start the run outside of it.') from e
    except OSError:
      return False
    return True


def _places_of(inodes: set[str]) -> dict[str, tuple[int, int]]:
  """Returns a process of this user with each socket, and its descriptor."""
  found = {}
  for directory in pathlib.Path('/proc').iterdir():
    if directory.name.isdigit():
      with contextlib.suppress(OSError):  # It has ended, or is another user's.
        pid = int(directory.name)
        found.update((inode, (pid, number)) for inode, number in
                     _socket_filters.numbers_of(pid).items() if inode in inodes)
  return found
