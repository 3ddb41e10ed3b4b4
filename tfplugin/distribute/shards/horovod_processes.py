# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes of Horovod, sums over them, and a strategy's reductions.

A program has them if it calls `hvd.init()` in a `horovodrun`, or if its
strategy calls `join`. Otherwise Horovod is not imported.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.shards import all_reduce
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction

_MEAN = tf.distribute.ReduceOp.MEAN
_LIMIT_SECS = 600.0
# Imported if the program has processes.
MODULE = 'horovod.tensorflow'


def _initialised() -> Any | None:
  """Returns the module `horovod.tensorflow`, if it has been initialised."""
  module = sys.modules.get(MODULE)
  return module if module is not None and module.is_initialized() else None


def number() -> int:
  """Returns the number of processes; 1 if Horovod has not been initialised."""
  horovod = _initialised()
  return 1 if horovod is None else horovod.size()


def sum_over(
    x: all_reduce.Summand,
    groups: shard_reduction.GroupAssignment = None) -> all_reduce.Summand:
  """Returns the sum of `x` over all processes, or over this one's group."""
  horovod = _initialised()
  return all_reduce.sum_in_group(x, groups, horovod.rank(), functools.partial(
      horovod.allreduce, op=horovod.Sum))


def join(task: cluster_task.ClusterTask) -> None:
  """Makes the training tasks of a cluster Horovod's processes.

  Each task has to call it. The first task publishes all addresses on the port
  in `HOROVOD_GLOO_RENDEZVOUS_PORT`, or else the one after the last port in
  `TF_CONFIG`; in a `horovodrun`, Horovod does. Raises ImportError without
  Horovod. Raises ValueError if the port is none, or if a `horovodrun` gave this
  process another rank than `TF_CONFIG`. Raises RuntimeError if the port is
  occupied, and TimeoutError if the first task cannot be reached.
  """
  try:
    import horovod.tensorflow as horovod
  except ImportError as error:
    raise ImportError(
        '`engine` must be one that is installed. Received: \'horovod\', and '
        f'{error}. Build it for the TensorFlow that is here: '
        'HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 pip install '
        '--no-build-isolation horovod==0.28.1') from error
  if not horovod.is_initialized():
    with _environment(_description(task)):
      horovod.init()
  ours = task.training_index, task.num_workers
  theirs = horovod.rank(), horovod.size()
  if ours != theirs:
    raise ValueError(
        'TF_CONFIG must number the processes as Horovod does. Received: '
        f'{task.name} is number {ours[0]} of {ours[1]}, and has rank '
        f'{theirs[0]} of {theirs[1]}. List the tasks in the order of the '
        'ranks, or leave out `horovodrun`.')


def _description(task: cluster_task.ClusterTask) -> dict[str, str]:
  """Returns the environment variables for Horovod; none in a `horovodrun`."""
  if 'HOROVOD_RANK' in os.environ:
    return {}
  first = task.training_tasks[0]
  job, _, index = first.partition(':')
  host = task.cluster_spec.task_address(job, int(index)).rpartition(':')[0]
  if host.startswith('['):
    raise ValueError(
        'With the engine \'horovod\', the first worker must have a name or an '
        f'IPv4 address. Received: {host!r}. Use its name in TF_CONFIG.')
  addresses = [address.rpartition(':')
               for job, addresses in task.cluster_spec.as_dict().items()
               if job != 'evaluator' for address in addresses]
  hosts = [host for host, _, _ in addresses]
  port = _port(max(int(port) for _, _, port in addresses) + 1)
  is_local = all(map(_is_loopback, hosts))
  if task.training_index == 0:
    _serve('127.0.0.1' if is_local else '', port, task.num_workers)
  else:
    _wait_for(task.name, first, host, port)
  rank, size = str(task.training_index), str(task.num_workers)
  return {
      'HOROVOD_RANK': rank, 'HOROVOD_SIZE': size,
      # Each process counts as a host, so no sum is made per host first.
      'HOROVOD_LOCAL_RANK': '0', 'HOROVOD_LOCAL_SIZE': '1',
      'HOROVOD_CROSS_RANK': rank, 'HOROVOD_CROSS_SIZE': size,
      'HOROVOD_HOSTNAME': task.name,
      'HOROVOD_CONTROLLER': 'gloo', 'HOROVOD_CPU_OPERATIONS': 'gloo',
      'HOROVOD_GLOO_RENDEZVOUS_ADDR': host,
      cluster_config.HOROVOD_PORT_VARIABLE: str(port),
      'HOROVOD_GLOO_TIMEOUT_SECONDS': os.environ.get(
          'HOROVOD_GLOO_TIMEOUT_SECONDS', f'{_LIMIT_SECS:.0f}'),
      **({'HOROVOD_GLOO_IFACE': 'lo'}
         if is_local and 'HOROVOD_GLOO_IFACE' not in os.environ else {})}


def _port(default: int) -> int:
  """Returns the port where the processes find each other."""
  variable = cluster_config.HOROVOD_PORT_VARIABLE
  port = os.environ.get(variable, '') or str(default)
  if not port.isdecimal():
    raise ValueError(
        f'`{variable}` must be a free port of the first worker\'s host, the '
        f'same in all processes. Received: {port!r}. Without it the port is '
        f'{default}, the one after the last port in TF_CONFIG.')
  return int(port)


def _is_loopback(host: str) -> bool:
  if host == 'localhost':
    return True
  try:
    return ipaddress.ip_address(host.strip('[]')).is_loopback
  except ValueError:
    return False


def _serve(host: str, port: int, size: int) -> None:
  """Publishes the addresses of all processes, until this process ends."""
  from horovod.runner.common.util import hosts
  from horovod.runner.http import http_server
  try:
    server = http_server.RendezvousHTTPServer(
        (host, port), http_server.RendezvousHandler, 0)
  except OSError as error:
    raise RuntimeError(
        'The processes of Horovod find each other at a port of the first '
        f'worker\'s host, which must be free. Received: {port} ({error}). Set '
        f'`{cluster_config.HOROVOD_PORT_VARIABLE}` to another port, the same '
        'in all processes.') from error
  server.init([hosts.SlotInfo(str(rank), rank, 0, rank, size, 1, size)
               for rank in range(size)])
  threading.Thread(target=server.serve_forever, daemon=True).start()


def _wait_for(who: str, name: str, host: str, port: int) -> None:
  patience = time_limit.Patience(who, _LIMIT_SECS)
  while True:
    try:
      socket.create_connection((host, port), timeout=1.0).close()
      return
    except OSError as error:
      patience.check(
          f'{name} to serve on port {port} of {host}, where the processes of '
          f'Horovod find each other ({error})', 'See its log.')
      time.sleep(0.1)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
  """Sets `values` in the environment temporarily: child processes get none."""
  before = {name: os.environ.get(name) for name in values}
  os.environ.update(values)
  try:
    yield
  finally:
    for name, value in before.items():
      if value is None:
        os.environ.pop(name, None)
      else:
        os.environ[name] = value


class HorovodReduction:
  """Mixin before the extended class of several hosts."""

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    del options  # They are for TensorFlow's collectives.
    return [self._over_all(reduce_op, value)
            for value, _ in value_destination_pairs]

  def _reduce_to(self, reduce_op, value, destinations, options):
    if _tf_internals.is_mirrored(value) or len(
        self._local_results(value)) != len(self.worker_devices):
      return super()._reduce_to(reduce_op, value, destinations, options)
    return self._over_all(reduce_op, value)

  def _over_all(self, reduce_op, value):
    """Reduces over this process's devices, and then over all processes."""
    with tf.device(self.worker_devices[0]):
      parts = self._local_results(value)
      total = sum_over(batch_parts.weighted_sum(parts, [1.0] * len(parts)))
      if reduce_op == _MEAN:
        total = _divided(total, self._num_replicas_in_sync)
    copies = []
    for device in self.worker_devices:
      with tf.device(device):
        copies.append(tf.nest.map_structure(
            tf.identity, total, expand_composites=True))
    return _tf_internals.regroup(tuple(copies))


def _divided(total: all_reduce.Summand, number: int) -> all_reduce.Summand:
  if isinstance(total, tf.IndexedSlices):
    return tf.IndexedSlices(_divided(total.values, number), total.indices,
                            total.dense_shape)
  return total / tf.cast(number, total.dtype)
