# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of parameter servers, in this machine's file of hosts.

For the fault `new_address`. The launcher gives a task a name, the fault gives
the name another address of this machine, and each process asks for it anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from tfplugin.distribute import cluster_task
from tfplugin.faults import language

HOSTS = '/etc/hosts'
_LOOPBACK = '127.0.0.1'
_DOMAIN = 'tfplugin.test'  # No real name ends so.


@contextlib.contextmanager
def given(cluster: Mapping[str, Sequence[str]],
          faults: str) -> Iterator[Mapping[str, Sequence[str]]]:
  """Yields the cluster, with names for tasks that get a new address."""
  tasks = sorted({fault.task for fault in (
      language.parse(faults) if faults.strip() else ())
                  if fault.kind == 'new_address'})
  # The jobs of a worker that joins have no lists; it has no faults either.
  named = {job: list(addresses) if tasks else addresses
           for job, addresses in cluster.items()}
  hosts = []
  for task in tasks:
    job, _, index = task.partition(':')
    host, _, port = named[job][int(index)].rpartition(':')
    if host != _LOOPBACK:
      raise ValueError(
          'A fault `new_address` must be of a task that only this machine '
          f'reaches. Received: {task} at {host}. Leave out `bind` and `hosts`.')
    hosts.append(f'{job}-{index}-{port}.{_DOMAIN}')
    named[job][int(index)] = f'{hosts[-1]}:{port}'
  if hosts:
    _edit(lambda lines: lines + [f'{_LOOPBACK} {host}' for host in hosts])
  try:
    yield named
  finally:
    if hosts:
      _edit(lambda lines: [
          line for line in lines if line.split()[1:] not in [[h] for h in hosts]
      ])


def move(task: str) -> None:
  """Gives a task of this process's cluster the next address of this machine."""
  job, _, index = task.partition(':')
  host = cluster_task.from_environment().cluster_spec.task_address(
      job, int(index)).rpartition(':')[0]

  def moved(line):
    address, *names = line.split() or ['']
    return f'{ipaddress.ip_address(address) + 1} {host}' if (
        names == [host]) else line

  _edit(lambda lines: list(map(moved, lines)))


def _edit(change: Callable[[list[str]], list[str]]) -> None:
  """Changes the lines of the file of hosts; others may do so, too."""
  try:
    # It cannot be replaced in a container, where it is mounted.
    with open(HOSTS, 'r+') as file:
      fcntl.flock(file, fcntl.LOCK_EX)
      text = '\n'.join([*change(file.read().splitlines()), '']).encode()
      os.pwrite(file.fileno(), text, 0)
      file.truncate(len(text))
  except OSError as e:
    raise ValueError(
        f'A fault `new_address` must be able to write {HOSTS}, where a task '
        f'gets a name. Received: {e.strerror}. Use a container, and root in '
        'it.') from e
