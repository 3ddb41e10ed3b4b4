# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The worker that builds a model with elastic averaging."""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Worker:
  """The process that builds the model, among those that train.

  Attributes:
    num_worker: How many there are, the chief included.
    index: Of this one, in [0, num_worker); the chief's is 0.
    device: Its device; empty for the process of the session.
    is_chief: Whether it saves and initialises.
  """

  num_worker: int
  index: int
  device: str
  is_chief: bool


def worker_of(config: Any, num_worker: Optional[int]) -> Worker:
  """Reads from a `tf.estimator.RunConfig` which worker this is.

  Args:
    config: The RunConfig; None is a single process.
    num_worker: How many workers the user says there are, or None.

  Raises:
    ValueError: There are workers and no parameter server, or more workers than
      the user says.
  """
  if config is None or not config.cluster_spec.as_dict():
    return Worker(num_worker or 1, 0, '', True)
  if not config.num_ps_replicas:
    raise ValueError(
        '`elastic_average` needs a parameter server for the centre where there '
        f'is a cluster. Received: {config.cluster_spec.as_dict()}. Add the job '
        '`ps` to TF_CONFIG.')
  if num_worker is not None and num_worker < config.num_worker_replicas:
    raise ValueError(
        '`num_worker` must be at least the number of workers of the cluster, '
        f'the chief included. Received: {num_worker} with '
        f'{config.num_worker_replicas} in the cluster. Leave it out.')
  return Worker(
      num_worker or config.num_worker_replicas, config.global_id_in_cluster,
      f'/job:{config.task_type}/task:{config.task_id}', config.is_chief)
