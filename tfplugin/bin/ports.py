# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Free ports of this machine, and a cluster whose servers listen on them."""

from __future__ import annotations

import contextlib
import random
import socket

from tfplugin.distribute import cluster_task

# Below the range from which Linux takes ports for outgoing connections, so that
# none of those takes a port between our choice and the server's start.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
  """Whether a server on loopback could listen on `port` now."""
  with contextlib.closing(socket.socket()) as probe:
    # A port whose last connections are only waiting to expire is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('127.0.0.1', port))
    except OSError:
      return False
  return True


def pick_free(count: int) -> list[int]:
  """Returns `count` different ports of loopback on which nobody listens.

  Args:
    count: How many.

  Raises:
    RuntimeError: fewer are free.
  """
  ports = []
  # Not the generator that a program may seed, alike in several processes.
  for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
    if len(ports) == count:
      break
    if is_free(port):
      ports.append(port)
  if len(ports) < count:
    raise RuntimeError(f'{count} free ports are needed between {_PORTS.start} '
                       f'and {_PORTS.stop}. Received: {len(ports)}. End the '
                       'servers that hold them.')
  return ports


def make_cluster(num_workers: int, num_ps: int) -> dict[str, list[str]]:
  """Returns a cluster of one chief, `num_workers` workers and `num_ps` ps."""
  sizes = {'chief': 1, 'worker': num_workers, 'ps': num_ps}
  ports = iter(pick_free(sum(sizes.values())))
  return {
      job: [f'127.0.0.1:{next(ports)}' for _ in range(size)]
      for job, size in sizes.items() if size
  }


def check_own_port(task: cluster_task.ClusterTask) -> None:
  """Raises if another process listens where the server of `task` will.

  Args:
    task: The task that runs in this process.

  Raises:
    RuntimeError: the port is occupied.
  """
  if task.is_alone or task.job == 'evaluator':
    return  # It has no server.
  address = task.cluster_spec.task_address(task.job, task.index)
  if not is_free(int(address.rpartition(':')[2])):
    raise RuntimeError(
        f'The port of {task.name} in `TF_CONFIG` must be free. Received: '
        f'{address!r}, where another process listens. End that '
        'process, or give the task another port in every `TF_CONFIG`.')
