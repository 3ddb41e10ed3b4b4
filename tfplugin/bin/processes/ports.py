# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Free ports of this machine, and a cluster whose servers listen on them."""

from __future__ import annotations

import collections
import contextlib
import random
import socket

# Below the range from which Linux takes ports for outgoing connections. No such
# connection can take a port between its choice and the server's start.
_PORTS = range(20000, 32000)
LOOPBACK = '127.0.0.1'
_EVERY_NETWORK = '0.0.0.0'
# Sockets at the ports that this process has picked, the newest last. Nobody
# else picks them; and a server can still start there, as none listens.
_held: collections.deque[socket.socket] = collections.deque()
_MAX_HELD = 64


def check_bind(address: str) -> None:
  """Raises `ValueError` unless servers of this machine can use `address`.

  It is an IPv4 address of this machine, or a name of one. An address that
  stands for all of them is refused, because no client can connect to it.
  """
  why = 'which is no address to connect to'
  with contextlib.closing(socket.socket()) as probe:
    try:
      probe.bind((address, 0))
      if address and probe.getsockname()[0] != _EVERY_NETWORK:
        return
    except OSError as e:
      why = e.strerror or str(e)
  raise ValueError(
      '`bind` must be an IPv4 address of this machine, or a name of one. '
      f'Received: {address!r} ({why}). Choose one that `ip address` shows, or '
      f'leave it out: {LOOPBACK} can be reached only from this machine.')


def is_free(port: int) -> bool:
  """Returns whether a server could listen on every address of this machine.

  TensorFlow's servers do, with any address in the cluster.
  """
  with contextlib.closing(socket.socket()) as probe:
    # A port whose last connections are only waiting to expire is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('', port))
    except OSError:
      return False
  return True


def pick_free(count: int) -> list[int]:
  """Returns `count` ports without a listener; or raises `RuntimeError`.

  No other process picks them while this one lives, or until it has picked many
  others. So servers have time to start.
  """
  # Not the generator that programs may seed, alike in several processes.
  shuffled = random.SystemRandom().sample(_PORTS, len(_PORTS))
  picked = []
  for port in shuffled:
    if len(picked) == count:
      break
    if held := _hold(port):
      picked.append(held)
  _held.extend(picked)
  ports = [held.getsockname()[1] for held in picked]
  while len(_held) > max(count, _MAX_HELD):
    _held.popleft().close()
  if len(ports) < count:
    raise RuntimeError(f'{count} free ports are needed between {_PORTS.start} '
                       f'and {_PORTS.stop}. Received: {len(ports)}. Stop the '
                       'servers that use them.')
  return ports


def _hold(port: int) -> socket.socket | None:
  """Returns a socket that keeps `port` from others; or None if one has it."""
  held = socket.socket()
  try:
    held.bind(('', port))
  except OSError:
    held.close()
    return None
  # Only now: with it, `bind` would succeed beside a socket that holds the port.
  # A server sets it too, and so can listen at a port that is held.
  held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  return held


def make_cluster(num_workers: int, num_ps: int,
                 address: str = LOOPBACK) -> dict[str, list[str]]:
  """Returns a cluster of one chief, workers and ps, all at `address`."""
  sizes = {'chief': 1, 'worker': num_workers, 'ps': num_ps}
  ports = iter(pick_free(sum(sizes.values())))
  return {
      job: [f'{address}:{next(ports)}' for _ in range(size)]
      for job, size in sizes.items() if size
  }


def check_free(name: str, address: str, remedy: str) -> None:
  """Raises `RuntimeError` if the port of the task `name` is occupied."""
  if not is_free(int(address.rpartition(':')[2])):
    raise RuntimeError(
        f'The port of {name} must be free. Received: {address!r}, where '
        f'another process listens. End that process, {remedy}.')
