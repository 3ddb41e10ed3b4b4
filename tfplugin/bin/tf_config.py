# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIG of a cluster on this machine: making it, reading it, its ports."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from collections.abc import Mapping
from typing import NamedTuple
from typing import Optional

# Below the range from which Linux takes ports for outgoing connections, so that
# none of those takes a port between our choice and the server's start.
_PORTS = range(20000, 32000)

TASK_TYPES = ('chief', 'worker', 'ps', 'evaluator')
_REMEDY = ('Set it as e.g. {"cluster": {"chief": ["localhost:2222"], "ps": '
           '["localhost:2223"]}, "task": {"type": "chief", "index": 0}}.')


class Task(NamedTuple):
  """One process of a cluster."""

  type: str
  index: int

  @property
  def name(self) -> str:
    """What logs, tables and errors call it, e.g. `worker:1`."""
    return f'{self.type}:{self.index}'


def is_port_free(port: int) -> bool:
  """Whether a server on loopback could listen on `port` now."""
  with contextlib.closing(socket.socket()) as probe:
    # A port whose last connections are only waiting to expire is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('127.0.0.1', port))
    except OSError:
      return False
  return True


def pick_free_ports(count: int) -> list[int]:
  """Returns `count` different ports of loopback on which nobody listens.

  Args:
    count: How many.

  Raises:
    RuntimeError: fewer are free.
  """
  ports = []
  for port in random.sample(_PORTS, len(_PORTS)):
    if len(ports) == count:
      break
    if is_port_free(port):
      ports.append(port)
  if len(ports) < count:
    raise RuntimeError(f'{count} free ports are needed between {_PORTS.start} '
                       f'and {_PORTS.stop}. Received: {len(ports)}. End the '
                       'servers that hold them.')
  return ports


def make_cluster(num_workers: int, num_ps: int) -> dict[str, list[str]]:
  """Returns a cluster of one chief, `num_workers` workers and `num_ps` ps."""
  sizes = {'chief': 1, 'worker': num_workers, 'ps': num_ps}
  ports = iter(pick_free_ports(sum(sizes.values())))
  return {
      job: [f'127.0.0.1:{next(ports)}' for _ in range(size)]
      for job, size in sizes.items() if size
  }


def tasks_of(cluster: Mapping[str, list[str]], evaluator: bool) -> list[Task]:
  """Returns the tasks of `cluster`, ps first, and the evaluator's if asked."""
  tasks = [Task(job, index) for job in ('ps', 'chief', 'worker')
           for index in range(len(cluster.get(job, ())))]
  return tasks + [Task('evaluator', 0)] * evaluator


def encode(cluster: Mapping[str, list[str]], task: Task) -> str:
  """Returns the value of the environment variable TF_CONFIG for `task`."""
  return json.dumps({
      'cluster': dict(cluster),
      'task': {'type': task.type, 'index': task.index}
  })


def decode(value: str) -> tuple[dict[str, list[str]], Optional[Task]]:
  """Reads and checks TF_CONFIG.

  Args:
    value: The environment variable's value; empty when it is not set.

  Returns:
    The cluster and the task; `({}, None)` for an empty value.

  Raises:
    ValueError: it is not JSON, not an object, or lacks the task, or the task is
      not one of the cluster.
  """
  if not value.strip():
    return {}, None
  try:
    config = json.loads(value)
  except json.JSONDecodeError as e:
    raise ValueError(f'`TF_CONFIG` must be JSON ({e}). Received: {value!r}. '
                     f'{_REMEDY}') from e
  if not isinstance(config, dict):
    raise ValueError('`TF_CONFIG` must be a JSON object. Received: '
                     f'{value!r}. {_REMEDY}')
  cluster = _checked_cluster(config.get('cluster', {}), value)
  if not cluster and 'task' not in config:
    return {}, None
  return cluster, _checked_task(config.get('task'), cluster, value)


def check_own_port(cluster: Mapping[str, list[str]], task: Task) -> None:
  """Raises if another process listens where the server of `task` will.

  Args:
    cluster: The cluster.
    task: The task that runs in this process.

  Raises:
    RuntimeError: the port is occupied.
  """
  addresses = cluster.get(task.type, [])
  if task.type == 'evaluator' or task.index >= len(addresses):
    return  # It has no server.
  port = int(addresses[task.index].rpartition(':')[2])
  if not is_port_free(port):
    raise RuntimeError(
        f'The port of {task.name} in `TF_CONFIG` must be free. Received: '
        f'{addresses[task.index]!r}, where another process listens. End that '
        'process, or give the task another port in every `TF_CONFIG`.')


def _checked_cluster(cluster: object, value: str) -> dict[str, list[str]]:
  if isinstance(cluster, dict) and all(
      isinstance(addresses, list) and all(_is_address(a) for a in addresses)
      for addresses in cluster.values()):
    return cluster
  raise ValueError('`cluster` in `TF_CONFIG` must map each job to a list of '
                   f'"host:port". Received: {value!r}. {_REMEDY}')


def _is_address(address: object) -> bool:
  return (isinstance(address, str) and
          address.rpartition(':')[2].isdigit())


def _checked_task(task: object, cluster: Mapping[str, list[str]],
                  value: str) -> Task:
  if not (isinstance(task, dict) and isinstance(task.get('type'), str) and
          isinstance(task.get('index', 0), int)):
    raise ValueError('`TF_CONFIG` must say which `task` this process is, by '
                     f'`type` and `index`. Received: {value!r}. {_REMEDY}')
  found = Task(task['type'], task.get('index', 0))
  if found.type == 'evaluator':
    return found
  if not 0 <= found.index < len(cluster.get(found.type, ())):
    known = ', '.join(t.name for t in tasks_of(cluster, evaluator=True))
    raise ValueError('`task` in `TF_CONFIG` must be one of the cluster '
                     f'({known}). Received: {found.name}.')
  return found
