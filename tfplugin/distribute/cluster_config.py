# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writer, parser and checks of `TF_CONFIG`: the cluster and a process's task.

TensorFlow does not check it. A mistake shows up somewhere else, as an error of
the JSON parser or as a process that trains alone. Launchers write it in many
forms; `interpret` reads all of them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any
from typing import NamedTuple
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals

_REMEDY = ('Set it as e.g. {"cluster": {"chief": ["localhost:2222"], "ps": '
           '["localhost:2223"]}, "task": {"type": "chief", "index": 0}}.')

# Horovod's variable for the port where its processes find each other.
HOROVOD_PORT_VARIABLE = 'HOROVOD_GLOO_RENDEZVOUS_PORT'

VARIABLE = 'TF_CONFIG'
# The key of a rewritten value for the value before.
_BEFORE = 'before_tfplugin'
_LAST_PORT = 65535

# The jobs that train or serve: servers first, then the chief.
JOBS = ('ps', 'chief', 'master', 'worker')
# The jobs whose tasks train, in the order in which they are numbered.
TRAINING_JOBS = JOBS[1:]

# The addresses of each job.
Cluster = Mapping[str, Union[Sequence[str], Mapping[int, str]]]


class Task(NamedTuple):
  """One process of a cluster."""

  type: str
  index: int

  @property
  def name(self) -> str:
    """The name of the task in logs, tables and errors, e.g. `worker:1`."""
    return f'{self.type}:{self.index}'

  @property
  def trains(self) -> bool:
    """True if the task trains."""
    return self.type in TRAINING_JOBS


def tasks_of(cluster: Cluster, evaluator: bool) -> list[Task]:
  """Returns the tasks of `cluster`, ps first; `evaluator` adds evaluator:0."""
  tasks = [Task(job, index) for job in JOBS
           for addresses in [cluster.get(job, ())]
           for index in (sorted(addresses) if isinstance(addresses, Mapping)
                         else range(len(addresses)))]
  return tasks + [Task('evaluator', 0)] * evaluator


def encode(cluster: Mapping[str, list[str]], task: Task,
           other_keys: Mapping[str, Any] = MappingProxyType({})) -> str:
  """Returns the value of the environment variable TF_CONFIG for `task`."""
  return json.dumps({
      'cluster': dict(cluster),
      'task': {'type': task.type, 'index': task.index},
      **other_keys
  })


class Reading(NamedTuple):
  """A parsed `TF_CONFIG`.

  `cluster` has the jobs that train or serve. The addresses of a job are a list,
  or a mapping by index where the value has one. For a process alone, `cluster`
  is empty and `task` is None. `notes` are sentences about how the value was
  interpreted. `only_task` is the task of a process alone that a cluster names.
  """

  cluster: Cluster
  task: Task | None
  notes: tuple[str, ...] = ()
  only_task: Task | None = None


def interpret(value: str) -> Reading:
  """Parses a `TF_CONFIG` in every form that launchers write.

  An empty `value` means not set. Raises ValueError for any other mistake.
  """
  if not value.strip():
    return Reading({}, None, ('There is no TF_CONFIG: one process trains '
                              'alone.',))
  config = _parsed(value)
  cluster = config.get('cluster') or {}
  jobs, notes = _jobs_of(cluster, value)
  if not jobs and cluster.get('evaluator'):
    jobs = {'evaluator': cluster['evaluator']}
    return Reading(jobs, _checked_task(config.get('task'), {}, value), (
        *notes, 'This is an evaluator that does not know the cluster: it ends '
                'when the chief has reported its end in the model_dir.'))
  if not jobs:
    _check_alone(config, value)
    return Reading({}, None, (*notes, 'There is no cluster: one process trains '
                                      'alone.'))
  task = _checked_task(config.get('task'), jobs, value)
  trainers = [t for t in tasks_of(jobs, False) if t.type != 'ps']
  if 'ps' not in jobs and trainers == [task]:
    return Reading({}, None, (
        *notes, f'{task.name} is the only task: one process trains alone.'),
                   task)
  _check_addresses(jobs, value)
  chiefs = [t.name for t in trainers if t.type in ('chief', 'master')]
  if len(chiefs) > 1:
    raise ValueError(
        '`cluster` in `TF_CONFIG` must have at most one `chief` or `master`. '
        f'Received: {", ".join(chiefs)}. Make the others a `worker`.')
  return Reading(jobs, task, (*notes, *_explained(jobs, task, trainers)))


def decode(value: str) -> tuple[Cluster, Task | None]:
  """Returns cluster and task of a `TF_CONFIG`; `({}, None)` for none."""
  return interpret(value)[:2]


def read() -> tuple[Cluster, Task | None]:
  """Returns the checked cluster and task of this process; see `decode`."""
  return decode(os.environ.get(VARIABLE, ''))


def is_set() -> bool:
  """Returns whether this process has a `TF_CONFIG`."""
  return bool(os.environ.get(VARIABLE, '').strip())


def explain() -> str:
  """Returns in one line how the `TF_CONFIG` of this process was interpreted."""
  return ' '.join(_original().notes)


def only_trains() -> bool:
  """Returns whether the only task of a cluster leaves evaluation to others.

  TensorFlow's chief and workers do so; a `master` evaluates and exports.
  """
  task = _original().only_task
  return task is not None and task.type != 'master'


def is_master() -> bool:
  """Returns whether this process is the `master` of a cluster.

  TensorFlow's master trains as the chief does, evaluates and exports.
  """
  task = _original().task
  return task is not None and task.type == 'master'


def _original() -> Reading:
  """Returns the reading of `TF_CONFIG` as it was before `rewrite`."""
  value = os.environ.get(VARIABLE, '')
  return interpret(_before_rewriting(value) or value)


def rewrite() -> None:
  """Rewrites the environment's `TF_CONFIG` in a form that TensorFlow supports.

  Every strategy calls it when it is made. TensorFlow's RunConfig and its
  coordinator of strategies read the variable themselves, and support fewer
  forms: the only task of a cluster, for example, must be a process without one.
  The value before is kept in the new one, under a key of its own. Raises
  ValueError like `interpret`.
  """
  value = os.environ.get(VARIABLE, '')
  cluster, _ = decode(value)
  if any(isinstance(addresses, Mapping) for addresses in cluster.values()):
    first = next((t for t in tasks_of(cluster, False) if t.trains), None)
    if first is not None and first.index:
      raise ValueError(
          '`TF_CONFIG` must have a chief or worker:0 for a strategy. Received: '
          f'{value!r}. Rename {first.name}.')
    _tf_internals.take_numbered_tasks()
  if not value.strip():
    os.environ.pop(VARIABLE, None)  # TensorFlow would parse an empty value.
  elif not is_rewritten():
    os.environ[VARIABLE] = _as_strategies_read(value)


def is_rewritten() -> bool:
  """Returns whether a strategy has rewritten this process's `TF_CONFIG`."""
  return bool(_before_rewriting(os.environ.get(VARIABLE, '')))


def _before_rewriting(value: str) -> str | None:
  """Returns the value from which `rewrite` has made `value`, or None.

  A program may have changed the value since: then the kept one is of another
  cluster.
  """
  if not value.strip():
    return None
  kept = _parsed(value).get(_BEFORE)
  return kept if kept and _as_strategies_read(kept) == value else None


def resolver() -> tf.distribute.cluster_resolver.ClusterResolver:
  """Returns TensorFlow's resolver of `TF_CONFIG`; see `rewrite`."""
  rewrite()
  return tf.distribute.cluster_resolver.TFConfigClusterResolver()


def other_keys() -> dict[str, Any]:
  """Returns the keys of `TF_CONFIG` beside cluster and task, {} without any."""
  value = os.environ.get(VARIABLE, '')
  return _other_keys(value) if value.strip() else {}


def _other_keys(value: str) -> dict[str, Any]:
  return {key: other for key, other in _parsed(value).items()
          if key not in ('cluster', 'task', _BEFORE)}


def _as_strategies_read(value: str) -> str:
  """Returns the value in the form that TensorFlow's strategies support."""
  cluster, task = decode(value)
  config = _other_keys(value)
  if task is not None:
    rename = {'master': 'chief'}
    config['cluster'] = {
        rename.get(job, job): addresses for job, addresses in cluster.items()}
    config['task'] = {'type': rename.get(task.type, task.type),
                      'index': task.index}
  return json.dumps({**config, _BEFORE: value})


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
  """Returns the jobs that train or serve, and a note about the other jobs."""
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
  """Raises ValueError unless each address is host:port, `[::1]` for IPv6."""
  for task in tasks_of(jobs, evaluator=False):
    address = jobs[task.type][task.index]
    if not is_address(address):
      raise ValueError(
          '`cluster` in `TF_CONFIG` must give each task an address '
          f'"host:port", or "[::1]:port". Received: {address!r} in {value!r}. '
          f'{_REMEDY}')


def is_address(text: str) -> bool:
  """Returns whether a text has the form host:port, with a possible port."""
  host, _, port = text.rpartition(':')
  # TensorFlow would wait without end for a host with another name.
  return bool(re.fullmatch(r'[^\s/:]+|\[[^\s/]+\]', host)) and (
      port.isdecimal() and 0 < int(port) <= _LAST_PORT)


def _check_alone(config: dict[str, Any], value: str) -> None:
  """Raises ValueError unless the task may be one without a cluster."""
  for key, other in config.items():
    if isinstance(other, dict) and set(other) & set(JOBS) and key != 'cluster':
      raise ValueError(
          f'`TF_CONFIG` must have its cluster as `cluster`, not as `{key}`: '
          f'the task would train alone. Received: {value!r}. Kubeflow writes '
          '`sparseCluster`, which lacks the other tasks, for '
          '`enableDynamicWorker: true`; leave that out.')
  task = config.get('task') or {}
  if not (isinstance(task, dict) and
          task.get('type', 'worker') in TRAINING_JOBS and
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
  tasks = tasks_of(jobs, evaluator=True)
  if found.type == 'evaluator' and found.index:
    raise ValueError('A run has one evaluator: `task` in `TF_CONFIG` must be '
                     f'evaluator:0. Received: {found.name}. Do not start it.')
  if found not in tasks:
    known = ', '.join(t.name for t in tasks)
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
