# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`TF_CONFIG`, the description of cluster and task: written, read and checked.

TensorFlow takes it as it is: a mistake shows up somewhere else, as an error of
the JSON parser or as a process that trains alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

_REMEDY = ('Set it as e.g. {"cluster": {"chief": ["localhost:2222"], "ps": '
           '["localhost:2223"]}, "task": {"type": "chief", "index": 0}}.')

# Where Horovod's processes find each other, in its own words: a port of the
# first training task's host.
HOROVOD_PORT_VARIABLE = 'HOROVOD_GLOO_RENDEZVOUS_PORT'

# The task of a process without a cluster, as Estimators take it.
_ALONE = (None, {'type': 'worker', 'index': 0})


class Task(NamedTuple):
  """One process of a cluster."""

  type: str
  index: int

  @property
  def name(self) -> str:
    """The task as logs, tables and errors call it, e.g. `worker:1`."""
    return f'{self.type}:{self.index}'


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
    ValueError: the value is not JSON, not an object, or lacks the task, or the
      task is not one of the cluster.
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
  if not cluster and config.get('task') in _ALONE:
    return {}, None
  return cluster, _checked_task(config.get('task'), cluster, value)


def read() -> tuple[dict[str, list[str]], Optional[Task]]:
  """Reads and checks the `TF_CONFIG` of this process; see `decode`."""
  return decode(os.environ.get('TF_CONFIG', ''))


def resolver() -> tf.distribute.cluster_resolver.ClusterResolver:
  """Returns TensorFlow's resolver of the environment's `TF_CONFIG`.

  Raises:
    ValueError: as `decode`.
  """
  read()
  return tf.distribute.cluster_resolver.TFConfigClusterResolver()


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
