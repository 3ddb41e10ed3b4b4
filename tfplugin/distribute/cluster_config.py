# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`TF_CONFIG`, the description of cluster and task: written, read and checked.

TensorFlow takes it as it is: a mistake shows up somewhere else, as an error of
the JSON parser or as a process that trains alone. Launchers write it in many
forms; all are read here, by `interpret`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Optional
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals

_REMEDY = ('Set it as e.g. {"cluster": {"chief": ["localhost:2222"], "ps": '
           '["localhost:2223"]}, "task": {"type": "chief", "index": 0}}.')

# Where Horovod's processes find each other, in its own words: a port of the
# first training task's host.
HOROVOD_PORT_VARIABLE = 'HOROVOD_GLOO_RENDEZVOUS_PORT'

VARIABLE = 'TF_CONFIG'
# What was said of a value, by the one that `resolver` has set in its place.
_notes_of: dict[str, tuple[str, ...]] = {}
# Those that train or serve: servers first, then the chief.
JOBS = ('ps', 'chief', 'master', 'worker')
# Of a process without a cluster.
_ALONE_JOBS = ('worker', 'chief', 'master')

# The addresses of each job.
Cluster = Mapping[str, Union[Sequence[str], Mapping[int, str]]]


class Task(NamedTuple):
  """One process of a cluster."""

  type: str
  index: int

  @property
  def name(self) -> str:
    """The task as logs, tables and errors call it, e.g. `worker:1`."""
    return f'{self.type}:{self.index}'


def tasks_of(cluster: Cluster, evaluator: bool) -> list[Task]:
  """Returns the tasks of `cluster`, ps first, and the evaluator's if asked."""
  tasks = [Task(job, index) for job in JOBS
           for addresses in [cluster.get(job, ())]
           for index in (sorted(addresses) if isinstance(addresses, Mapping)
                         else range(len(addresses)))]
  return tasks + [Task('evaluator', 0)] * evaluator


def encode(cluster: Mapping[str, list[str]], task: Task) -> str:
  """Returns the value of the environment variable TF_CONFIG for `task`."""
  return json.dumps({
      'cluster': dict(cluster),
      'task': {'type': task.type, 'index': task.index}
  })


class Reading(NamedTuple):
  """A `TF_CONFIG`, read.

  Attributes:
    cluster: The addresses of each job that trains or serves, in a list, or by
      index where the value has them so; empty for a process alone.
    task: This process; None for a process alone.
    notes: Sentences about what was made of the value.
  """

  cluster: Cluster
  task: Optional[Task]
  notes: tuple[str, ...] = ()


def interpret(value: str) -> Reading:
  """Reads `TF_CONFIG` in every form that launchers write.

  Args:
    value: The environment variable's value; empty when it is not set.

  Raises:
    ValueError: the value is not JSON, not an object, or lacks the task, or the
      task is not one of the cluster.
  """
  if not value.strip():
    return Reading({}, None, ('There is no TF_CONFIG: a process alone.',))
  config = _parsed(value)
  jobs, notes = _jobs_of(config.get('cluster') or {}, value)
  if not jobs:
    _check_alone(config.get('task') or {}, value)
    return Reading({}, None, (*notes, 'There is no cluster: a process alone.'))
  task = _checked_task(config.get('task'), jobs, value)
  trainers = [t for t in tasks_of(jobs, False) if t.type != 'ps']
  if 'ps' not in jobs and trainers == [task]:
    return Reading({}, None, (
        *notes, f'{task.name} is the only task: a process alone.'))
  _check_addresses(jobs, value)
  return Reading(jobs, task, (*notes, *_explained(jobs, task, trainers)))


def decode(value: str) -> tuple[Cluster, Optional[Task]]:
  """Returns cluster and task of a `TF_CONFIG`; `({}, None)` without a cluster.

  Args:
    value: The environment variable's value; empty when it is not set.

  Raises:
    ValueError: as `interpret`.
  """
  return interpret(value)[:2]


def read() -> tuple[Cluster, Optional[Task]]:
  """Reads and checks the `TF_CONFIG` of this process; see `decode`."""
  return decode(os.environ.get(VARIABLE, ''))


def is_set() -> bool:
  """Returns whether a launcher has started this process."""
  return bool(os.environ.get(VARIABLE, '').strip())


def explain() -> str:
  """Returns what is made of the `TF_CONFIG` of this process, in a line.

  Raises:
    ValueError: as `interpret`.
  """
  value = os.environ.get(VARIABLE, '')
  return ' '.join(_notes_of.get(value) or interpret(value).notes)


def resolver() -> tf.distribute.cluster_resolver.ClusterResolver:
  """Returns TensorFlow's resolver of the environment's `TF_CONFIG`.

  TensorFlow's coordinator of strategies reads the variable itself, and knows
  fewer forms: the variable is set anew where it has another one.

  Raises:
    ValueError: as `interpret`.
  """
  value = os.environ.get(VARIABLE, '')
  cluster, task = decode(value)
  if any(isinstance(addresses, Mapping) for addresses in cluster.values()):
    _tf_internals.take_numbered_tasks()
  if value.strip():
    notes = _notes_of.get(value) or interpret(value).notes
    os.environ[VARIABLE] = _as_strategies_read(value, cluster, task)
    _notes_of[os.environ[VARIABLE]] = notes
  return tf.distribute.cluster_resolver.TFConfigClusterResolver()


def _as_strategies_read(value: str, cluster: Cluster,
                        task: Optional[Task]) -> str:
  """Returns the value in the form that TensorFlow's strategies know."""
  config = {key: other for key, other in _parsed(value).items()
            if key not in ('cluster', 'task')}
  if task is not None:
    rename = {'master': 'chief'}
    config['cluster'] = {
        rename.get(job, job): addresses for job, addresses in cluster.items()}
    config['task'] = {'type': rename.get(task.type, task.type),
                      'index': task.index}
  return json.dumps(config)


def _parsed(value: str) -> dict[str, Any]:
  try:
    config = json.loads(value)
  except json.JSONDecodeError as e:
    raise ValueError(f'`TF_CONFIG` must be JSON ({e}). Received: {value!r}. '
                     f'{_REMEDY}') from e
  if not isinstance(config, dict):
    raise ValueError('`TF_CONFIG` must be a JSON object. Received: '
                     f'{value!r}. {_REMEDY}')
  return config


def _jobs_of(cluster: Any, value: str) -> tuple[Cluster, list[str]]:
  """Returns the jobs that train or serve, and what is said of others."""
  if not (isinstance(cluster, dict) and
          all(map(_is_job, cluster.values()))):
    raise ValueError(
        '`cluster` in `TF_CONFIG` must map each job to a list of "host:port", '
        f'or of one by index. Received: {value!r}. {_REMEDY}')
  jobs = {job: addresses if isinstance(addresses, list) else
          {int(index): address for index, address in addresses.items()}
          for job, addresses in cluster.items()
          if job in JOBS and addresses}
  others = [job for job in cluster if job not in (*JOBS, 'evaluator')]
  return jobs, [f'Jobs that neither train nor serve are left out: {job}.'
                for job in [', '.join(sorted(others))] if job]


def _is_job(addresses: Any) -> bool:
  if isinstance(addresses, dict):
    return all(index.isdigit() and isinstance(address, str)
               for index, address in addresses.items())
  return isinstance(addresses, list) and all(
      isinstance(address, str) for address in addresses)


def _check_addresses(jobs: Cluster, value: str) -> None:
  """Raises unless each task has a port, where there is more than one."""
  for addresses in jobs.values():
    for address in (addresses.values() if isinstance(addresses, dict) else
                    addresses):
      if not address.rpartition(':')[2].isdigit():
        raise ValueError(
            '`cluster` in `TF_CONFIG` must give each task an address '
            f'"host:port". Received: {address!r} in {value!r}. {_REMEDY}')


def _check_alone(task: Any, value: str) -> None:
  """Raises unless a task can be that of a process without a cluster."""
  if not (isinstance(task, dict) and
          task.get('type', 'worker') in _ALONE_JOBS and
          str(task.get('index', 0)) == '0'):
    raise ValueError(
        '`TF_CONFIG` must have the cluster of its `task`. Received: '
        f'{value!r}. {_REMEDY}')


def _checked_task(task: Any, jobs: Cluster, value: str) -> Task:
  if not (isinstance(task, dict) and isinstance(task.get('type'), str) and
          str(task.get('index', 0)).isdigit()):
    raise ValueError('`TF_CONFIG` must say which `task` this process is, by '
                     f'`type` and `index`. Received: {value!r}. {_REMEDY}')
  found = Task(task['type'], int(task.get('index', 0)))
  if found.type != 'evaluator' and found not in tasks_of(jobs, False):
    known = ', '.join(t.name for t in tasks_of(jobs, evaluator=True))
    raise ValueError('`task` in `TF_CONFIG` must be one of the cluster '
                     f'({known}). Received: {found.name}.')
  return found


def _explained(jobs: Cluster, task: Task,
               trainers: Sequence[Task]) -> Iterator[str]:
  count = len(jobs.get('ps', ()))
  yield (f'This is {task.name} of a cluster with {len(trainers)} that train '
         f'({", ".join(t.name for t in trainers)}) and {count} parameter '
         f'server{"s" * (count != 1)}.')
  if trainers and trainers[0].type != 'chief':
    yield f'{trainers[0].name} is the chief: it initialises and saves.'
