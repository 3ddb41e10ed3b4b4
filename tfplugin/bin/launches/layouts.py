# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Places of a run's tasks: on this machine, or on several.

This machine is identified among the machines of a run.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any
from typing import NamedTuple

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config

# Below the range of ports that Linux uses for outgoing connections.
DEFAULT_PORT = 22000


class Layout(NamedTuple):
  """The tasks of a run, and the tasks that this launch starts.

  Attributes:
    cluster: The addresses of the tasks, by job, for TF_CONFIG.
    hosts: The machine of each task, by the task's name; empty: this machine.
    who: The name of this launch among several of the run; empty: the only one.
    tf_config: Further keys of the TF_CONFIG of each task.
  """

  cluster: Mapping[str, list[str]]
  tasks: Sequence[cluster_config.Task]
  own: Sequence[cluster_config.Task]
  hosts: Mapping[str, str] = {}
  who: str = ''
  tf_config: Mapping[str, Any] = MappingProxyType({})

  @property
  def has_chief(self) -> bool:
    """True if this launch has the chief, or there is none."""
    return all(task.type != 'chief' or task in self.own for task in self.tasks)

  @property
  def serves(self) -> bool:
    """True if this launch has tasks that work for the training tasks."""
    return any(not task.trains for task in self.own)

  @property
  def training_elsewhere(self) -> list[str]:
    """The training tasks that other launches start."""
    return [task.name for task in self.tasks
            if task.trains and task not in self.own]

  def check_ports(self) -> None:
    """Raises `RuntimeError` if a port of this launch's tasks is occupied."""
    for task in self.own:
      if task.type in self.cluster:
        ports.check_free(
            task.name, self.cluster[task.type][task.index], 'which may be of '
            'an earlier run, or take another `port` on every machine')


def on_this_machine(num_workers: int, num_ps: int, has_evaluator: bool,
                    address: str) -> Layout:
  """Returns the layout of a run at `address` of this machine, on free ports."""
  cluster = ports.make_cluster(num_workers, num_ps, address)
  tasks = cluster_config.tasks_of(cluster, has_evaluator)
  return Layout(cluster, tasks, tasks)


def on_hosts(hosts: Sequence[str], own_host: str, num_workers: int, num_ps: int,
             has_evaluator: bool, port: int = DEFAULT_PORT) -> Layout:
  """Returns the layout of a run on several machines, the same on each of them.

  The training tasks, the chief first, are dealt out from the first machine on,
  and the parameter servers likewise. The evaluator is on the last machine. The
  first parameter server has `port`, and each further task the next one. A
  machine without a task raises `ValueError`.

  Example:
    >>> layout = on_hosts(['a', 'b'], 'b', 2, 1, False)
    >>> layout.cluster
    {'ps': ['a:22000'], 'chief': ['a:22001'], 'worker': ['b:22002', 'a:22003']}
    >>> [task.name for task in layout.own]
    ['worker:0']
  """
  tasks = tasks_of(num_workers, num_ps, has_evaluator)
  places = {task.name: hosts[_turn(task, len(hosts)) % len(hosts)]
            for task in tasks}
  idle = [host for host in hosts if host not in places.values()]
  if idle:
    raise ValueError(
        '`hosts` must not name more machines than there are tasks, '
        f'{len(tasks)}. Received: {",".join(hosts)}, where {", ".join(idle)} '
        'would have no task. Start more workers, or leave them out.')
  own = [task for task in tasks if places[task.name] == own_host]
  return Layout(addresses_at(places, tasks, port), tasks, own, places, own_host)


def tasks_of(num_workers: int, num_ps: int,
             has_evaluator: bool) -> list[cluster_config.Task]:
  """Returns the tasks of a run, the parameter servers first."""
  return cluster_config.tasks_of(
      {'ps': [''] * num_ps, 'chief': [''], 'worker': [''] * num_workers},
      has_evaluator)


def addresses_at(hosts: Mapping[str, str], tasks: Iterable[cluster_config.Task],
                 port: int) -> dict[str, list[str]]:
  """Returns the cluster in which each task has the next port, from `port` on.

  One machine may have several names: all tasks have different ports.
  """
  cluster: dict[str, list[str]] = {}
  for number, task in enumerate(t for t in tasks if t.type != 'evaluator'):
    cluster.setdefault(task.type, []).append(
        f'{hosts[task.name]}:{port + number}')
  return cluster


def _turn(task: cluster_config.Task, num_hosts: int) -> int:
  if task.type == 'evaluator':
    return num_hosts - 1
  return task.index + (task.type == 'worker')


def check_hosts(hosts: Iterable[str]) -> None:
  """Raises `ValueError` unless each machine is named once, without a port."""
  hosts = list(hosts)
  for host in hosts:
    if not host or ':' in host or hosts.count(host) > 1:
      raise ValueError('`hosts` must name each machine once, without a port. '
                       f'Received: {",".join(hosts)}. Write e.g. '
                       '--hosts=a,b,c --port=22000')


def find_local_host(hosts: Sequence[str], host: str = '') -> str:
  """Returns the one of `hosts` that is this machine; or raises `ValueError`.

  It is `host`, if the user gave one. Else it is found by this machine's name,
  whole or up to the first dot; else by the addresses of `hosts`.
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
