# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hosts on this machine: namespaces of the network, with shaped links.

  h0, h1, h2   each a namespace with an address 10.77.n.2 and a link of its own
  r            a namespace that all links lead to, and that routes between them

Nothing of the machine's own network changes. A link is shaped at both ends, so
that it carries its rate in each direction, and is shared alike by the hosts at
the other end that send at the same time, as a queue for each flow does.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence

# With the process that made it: what a killed one has left can be told.
_PREFIX = 'tfplugin-net-'
_NAMESPACES = pathlib.Path('/var/run/netns')
# What a namespace has instead of files of /etc: `ip netns` mounts it.
_ETC = pathlib.Path('/etc/netns')
# What a link may carry at once after a pause, and of one host before it is the
# turn of the next: the kernel's own segments have 64 KB.
_BURST, _TURN = '128kb', '65536'
# Packets of less than 128 bytes, by the length in their header, and the part of
# the rate that is kept for them.
_SMALL_MASK, _SMALL_PART = '0xff80', 0.05
_DEVICE = 'e0'


def missing() -> str | None:
  """Returns why there can be no hosts here, or None."""
  if not sys.platform.startswith('linux'):
    return f'network namespaces need Linux, and this is {sys.platform}'
  if os.geteuid() != 0:
    return 'network namespaces need root: run it with sudo'
  absent = [name for name in ('ip', 'tc') if shutil.which(name) is None]
  if absent:
    return f'{" and ".join(absent)} must be installed: the package iproute2'
  return None


class Hosts:
  """Hosts with a link each, while a `with` lasts."""

  def __init__(self, count: int = 3):
    """Says how many.

    Args:
      count: Of hosts.
    """
    self._own = f'{_PREFIX}{os.getpid()}-'
    self.addresses = [f'10.77.{n}.2' for n in range(1, count + 1)]

  def __enter__(self) -> Hosts:
    _remove_left_behind()
    try:
      self._make()
    except BaseException:
      self._remove()
      raise
    return self

  def __exit__(self, *error) -> None:
    self._remove()

  def command(self, host: int, argv: Sequence[str]) -> list[str]:
    """Returns `argv` as a command that a host runs.

    Args:
      host: Its number, from 0.
      argv: A command of this machine.
    """
    return ['ip', 'netns', 'exec', self._name(host), *argv]

  def shape(self, mbit: int | None) -> None:
    """Gives all links a rate.

    Args:
      mbit: In 10^6 bits a second; None takes it away.
    """
    for host in range(len(self.addresses)):
      for name, device, end in ((self._name(host), _DEVICE, 'dst'),
                                (self._router, f'r{host}', 'src')):
        # There is nothing to delete at first.
        _in(name, 'tc', 'qdisc', 'del', 'dev', device, 'root', check=False)
        if mbit is not None:
          self._share(name, device, host, end, mbit)

  def _share(self, namespace, device, host, end, mbit):
    """Shapes an end of the link of `host`: a class for each other host."""

    def add(what, *settings):
      _in(namespace, 'tc', what, 'add', 'dev', device, *settings)

    def rate(classid, parent, part):
      add('class', 'parent', parent, 'classid', classid, 'htb', 'rate',
          f'{part:.0f}kbit', 'ceil', f'{mbit}mbit', 'burst', _BURST, 'cburst',
          _BURST, 'quantum', _TURN)

    def into(classid, prio, *match):
      add('filter', 'parent', '1:', 'protocol', 'ip', 'prio', prio, 'u32',
          'match', *match, 'flowid', classid)

    add('qdisc', 'root', 'handle', '1:', 'htb')
    rate('1:1', '1:', 1000 * mbit)
    # Acknowledgements do not wait behind what is sent the same way.
    rate('1:2', '1:1', 1000 * mbit * _SMALL_PART)
    into('1:2', '1', 'u16', '0', _SMALL_MASK, 'at', '2')
    others = [n for n in range(len(self.addresses)) if n != host]
    for other in others:
      rate(f'1:1{other}', '1:1', 1000 * mbit * (1 - _SMALL_PART) / len(others))
      into(f'1:1{other}', '2', 'ip', end, f'{self.addresses[other]}/32')

  def _name(self, host):
    return f'{self._own}h{host}'

  @property
  def _router(self):
    return f'{self._own}r'

  def _make(self):
    _run('ip', 'netns', 'add', self._router)
    _in(self._router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1')
    for host, address in enumerate(self.addresses):
      name, gateway = self._name(host), address[:-1] + '1'
      _run('ip', 'netns', 'add', name)
      _run('ip', 'link', 'add', f'r{host}', 'netns', self._router, 'type',
           'veth', 'peer', 'name', _DEVICE, 'netns', name)
      _in(self._router, 'ip', 'addr', 'add', f'{gateway}/24', 'dev', f'r{host}')
      _in(self._router, 'ip', 'link', 'set', f'r{host}', 'up')
      _in(name, 'ip', 'addr', 'add', f'{address}/24', 'dev', _DEVICE)
      _in(name, 'ip', 'link', 'set', _DEVICE, 'up')
      _in(name, 'ip', 'link', 'set', 'lo', 'up')
      _in(name, 'ip', 'route', 'add', 'default', 'via', gateway)
      # Horovod's processes listen where the name of their machine leads.
      (_ETC / name).mkdir(parents=True)
      (_ETC / name / 'hosts').write_text(
          f'127.0.0.1 localhost\n{address} {socket.gethostname()}\n')

  def _remove(self):
    _remove(_NAMESPACES.glob(f'{self._own}*'))


def counted_bytes() -> tuple[int, int]:
  """The bytes that this host has sent and received on its link so far."""
  for line in pathlib.Path('/proc/self/net/dev').read_text().splitlines():
    device, _, counts = line.partition(':')
    if device.strip() == _DEVICE:
      numbers = counts.split()
      return int(numbers[8]), int(numbers[0])
  raise RuntimeError(f'There is no {_DEVICE} here: this is none of the hosts.')


def _remove_left_behind():
  """Removes the hosts of processes that were killed."""
  for path in _NAMESPACES.glob(f'{_PREFIX}*'):
    pid = path.name[len(_PREFIX):].split('-')[0]
    if not pathlib.Path('/proc', pid).exists():
      _remove([path])


def _remove(namespaces):
  for path in namespaces:
    _run('ip', 'netns', 'del', path.name, check=False)
    shutil.rmtree(_ETC / path.name, ignore_errors=True)


def _in(namespace, *argv, check=True):
  _run('ip', 'netns', 'exec', namespace, *argv, check=check)


def _run(*argv, check=True):
  result = subprocess.run(argv, capture_output=True, text=True, check=False)
  if check and result.returncode:
    raise RuntimeError(f'{" ".join(argv)}: {result.stderr.strip()}')
