# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A parameter-server cluster inside one process, for exact tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from tfplugin.bin.processes import ports

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class InProcessCluster:
  """The servers of one cluster; they end with the process.

  Attributes:
    cluster_spec: The cluster, with jobs `ps` and `worker`.
    servers: The server of each task, by job and index.
  """

  cluster_spec: tf.train.ClusterSpec
  servers: Mapping[tuple[str, int], tf.distribute.Server]

  def target(self, task_type: str, index: int) -> str:
    """Returns the address for sessions, e.g. `grpc://127.0.0.1:24711`."""
    return self.servers[task_type, index].target

  def device_setter(self, worker_index: int):
    """Returns the function that puts variables on the parameter servers.

    Args:
      worker_index: The worker of all other ops.
    """
    return tf1.train.replica_device_setter(
        worker_device=f'/job:worker/task:{worker_index}',
        cluster=self.cluster_spec)

  def session(self, worker_index: int, graph: tf.Graph) -> tf1.Session:
    """Returns a session of one worker.

    It sees that worker and the parameter servers, as in a real cluster, and no
    step of it takes longer than a minute.

    Args:
      worker_index: The worker.
      graph: The worker's graph.
    """
    config = tf1.ConfigProto(
        allow_soft_placement=True, operation_timeout_in_ms=60000,
        device_filters=['/job:ps', f'/job:worker/task:{worker_index}'])
    return tf1.Session(self.target('worker', worker_index), graph, config)


def in_process_cluster(num_workers: int, num_ps: int = 1,
                       num_threads: int = 2) -> InProcessCluster:
  """Starts workers and parameter servers as servers of this process.

  It takes about 0.1 s. Each worker has its own graph and session, so that a
  test decides the order of steps.

  Args:
    num_workers: How many workers.
    num_ps: How many parameter servers.
    num_threads: How many operations a server runs at the same time. The workers
      of a `ClusterCoordinator` wait for each other: they need one thread each,
      and one more.
  """
  sizes = {'worker': num_workers, 'ps': num_ps}
  free_ports = iter(ports.pick_free(num_workers + num_ps))
  spec = tf.train.ClusterSpec({
      job: [f'127.0.0.1:{next(free_ports)}' for _ in range(size)]
      for job, size in sizes.items() if size})
  config = tf1.ConfigProto(inter_op_parallelism_threads=num_threads,
                           intra_op_parallelism_threads=1)
  servers = {
      (job, index): tf.distribute.Server(spec, job, index, config=config)
      for job in spec.jobs for index in spec.task_indices(job)}
  return InProcessCluster(spec, servers)
