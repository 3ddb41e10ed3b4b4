# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Identification of this machine among the machines of a run."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from tfplugin.bin import ports


def find(hosts: Sequence[str], host: str = '') -> str:
  """Returns the one of `hosts` that is this machine.

  It is `host`, if the user gave one. Else it is found by this machine's name,
  whole or up to the first dot; else by the addresses of `hosts`. None or
  several of them raise `ValueError`.
  """
  if host:
    if host not in hosts:
      raise ValueError('`host` must be one of the machines in `hosts`. '
                       f'Received: {host!r}, but --hosts={",".join(hosts)}')
    return host
  names = {socket.gethostname(), socket.getfqdn()}
  short = {name.partition('.')[0] for name in names}
  for is_this in (lambda host: host in names,
                  lambda host: host.partition('.')[0] in short, _is_here):
    found = [host for host in hosts if is_this(host)]
    if len(found) == 1:
      return found[0]
    if found:
      break
  raise ValueError(
      f'This machine ({socket.gethostname()}) is '
      f'{"several times" if found else "not"} in --hosts={",".join(hosts)}. '
      f'Say which it is: --host={hosts[0]}')


def _is_here(host: str) -> bool:
  """Returns whether a name stands for an address of this machine."""
  try:
    ports.check_bind(host)
  except ValueError:
    return False
  return True
