# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which task of which cluster this process is, also under a strategy."""

from __future__ import annotations

from typing import NamedTuple
from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1


class ClusterTask(NamedTuple):
  """What `RunConfig` says of the cluster, under the same names.

  With `train_distribute` in a cluster, TensorFlow's coordinator takes the task
  from TF_CONFIG, and until then `RunConfig` calls every process `worker:0`.

  Attributes:
    cluster_spec: The cluster; empty for a process alone.
    task_type: The job that this process is of.
    task_id: Its index within the job.
    master: Where the sessions of this process go.
    num_ps_replicas: How many parameter servers there are.
    session_config: Of the sessions; may be None.
    protocol: Of the servers; None for the default.
  """

  cluster_spec: tf.train.ClusterSpec
  task_type: str
  task_id: int
  master: str
  num_ps_replicas: int
  session_config: Optional[tf1.ConfigProto]
  protocol: Optional[str]

  @property
  def training_index(self) -> int:
    """This task's number among those that train; 0 if it does not."""
    jobs = self.cluster_spec.as_dict()
    trains = [(job, index) for job in ('chief', 'master', 'worker')
              for index in range(len(jobs.get(job, ())))]
    task = (self.task_type, self.task_id)
    return trains.index(task) if task in trains else 0


def task_of(config: tf.estimator.RunConfig) -> ClusterTask:
  """Returns the task of this process.

  Args:
    config: The Estimator's configuration.
  """
  resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
  cluster_spec = resolver.cluster_spec()
  if config.train_distribute is None or not cluster_spec:
    return ClusterTask(
        config.cluster_spec, config.task_type, config.task_id, config.master,
        config.num_ps_replicas, config.session_config, config.protocol)
  jobs = cluster_spec.as_dict()
  task_type, task_id = resolver.task_type, resolver.task_id or 0
  master = ''
  if task_type in jobs:
    master = f'grpc://{cluster_spec.task_address(task_type, task_id)}'
  return ClusterTask(cluster_spec, task_type, task_id, master,
                     len(jobs.get('ps', ())), config.session_config,
                     config.protocol)
