# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which of several machines this one is."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from tfplugin.bin import ports


def find(hosts: Sequence[str], host: str = '') -> str:
  """Returns the one of the machines that this is.

  By what the user says; else by this machine's name, whole or up to the first
  dot; else by the addresses that the names stand for.

  Args:
    hosts: The machines of the run.
    host: What the user says; empty: nothing.

  Returns:
    One of `hosts`.

  Raises:
    ValueError: it is none of them, or may be several.
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
  """Whether a name stands for an address of this machine."""
  try:
    ports.check_bind(host)
  except ValueError:
    return False
  return True
