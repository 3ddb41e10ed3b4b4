# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The task of this process in its cluster: its properties and its checks."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator

import tensorflow as tf

from tfplugin.distribute import cluster_config

# TensorFlow's error for a port on which another process listens.
_NO_SERVER = 'Could not start gRPC server'
# The addresses of the tasks that this process has run.
_addresses_run: set[str] = set()

# Warnings about tasks that evaluate otherwise with a strategy. It rewrites
# `TF_CONFIG`, so `tf.estimator.train_and_evaluate` no longer sees that a task
# is the only one, or a `master`.
ONLY_TASK = (
    '`TF_CONFIG` has a cluster of one task. With a strategy, '
    '`tf.estimator.train_and_evaluate` evaluates and exports in this task, '
    'too, and an evaluator would do the same again. '
    '`tfplugin.estimator.train_and_evaluate` leaves both to the evaluator, as '
    'without a strategy.')
MASTER = (
    '`TF_CONFIG` makes this task the `master`. With a strategy, '
    '`tf.estimator.train_and_evaluate` neither evaluates nor exports in it. '
    '`tfplugin.estimator.train_and_evaluate` does both, as without a strategy.')
# How many calls of `tfplugin.estimator.train_and_evaluate` are running.
_num_running = 0


@dataclasses.dataclass(frozen=True)
class ClusterTask:
  """One task of a cluster; without arguments, a process alone.

  For a process alone, `cluster_spec` is empty, and `job` is `worker`, as for
  Estimators. `master` is the address that its sessions connect to; empty means
  this process.
  """

  cluster_spec: tf.train.ClusterSpec = dataclasses.field(
      default_factory=lambda: tf.train.ClusterSpec({}))
  job: str = 'worker'
  index: int = 0
  master: str = ''

  @property
  def name(self) -> str:
    """The name of the task in logs and errors, e.g. `worker:1`."""
    return f'{self.job}:{self.index}'

  @property
  def is_alone(self) -> bool:
    """True if no other task of a cluster trains or serves."""
    return not self.cluster_spec.jobs or (
        not self.num_ps and self.training_tasks == [self.name])

  @property
  def device(self) -> str:
    """The device of the task, e.g. `/job:worker/task:1`; empty if alone."""
    return '' if self.is_alone else f'/job:{self.job}/task:{self.index}'

  @property
  def num_ps(self) -> int:
    """The number of parameter servers."""
    return self._count('ps')

  @property
  def training_tasks(self) -> list[str]:
    """The names of the cluster's tasks that train, the chief first."""
    return [f'{job}:{index}' for job in cluster_config.TRAINING_JOBS
            if job in self.cluster_spec.jobs
            for index in self.cluster_spec.task_indices(job)]

  @property
  def others(self) -> list[str]:
    """The names of the other tasks that train."""
    return [name for name in self.training_tasks if name != self.name]

  @property
  def num_workers(self) -> int:
    """The number of tasks that train, at least 1."""
    return max(1, sum(map(self._count, cluster_config.TRAINING_JOBS)))

  @property
  def trains(self) -> bool:
    """True if the task trains."""
    return self.job in cluster_config.TRAINING_JOBS

  @property
  def training_index(self) -> int:
    """The task's number among the training tasks, 0 for the chief."""
    if not self.trains:
      raise ValueError('The task must be one that trains, to have a number '
                       f'among the tasks that train. Received: {self.name}. '
                       'Ask `trains` first.')
    return 0 if self.is_alone else self.training_tasks.index(self.name)

  @property
  def is_chief(self) -> bool:
    """True if the task initialises and saves the cluster's variables."""
    return self.trains and self.training_index == 0

  def _count(self, job: str) -> int:
    if job not in self.cluster_spec.jobs:
      return 0
    return self.cluster_spec.num_tasks(job)


def from_environment() -> ClusterTask:
  """Returns the task that `TF_CONFIG` gives to this process."""
  cluster, task = cluster_config.read()
  if not cluster:
    return ClusterTask()
  master = ''
  if task.type != 'evaluator':
    master = f'grpc://{cluster[task.type][task.index]}'
  return ClusterTask(tf.train.ClusterSpec(cluster), *task, master)


def from_resolver(
    resolver: tf.distribute.cluster_resolver.ClusterResolver) -> ClusterTask:
  """Returns the task that a resolver gives to this process."""
  return ClusterTask(
      resolver.cluster_spec(), resolver.task_type, resolver.task_id or 0)


@contextlib.contextmanager
def occupied_port_named(task: ClusterTask) -> Iterator[None]:
  """Raises a RuntimeError that names the port if `task` finds it occupied.

  TensorFlow's error says only that it could not start a server.
  """
  try:
    yield
  except tf.errors.UnknownError as e:
    if _NO_SERVER not in e.message or task.is_alone:
      raise
    address = task.cluster_spec.task_address(task.job, task.index)
    raise RuntimeError(
        f'The port of {task.name} in `TF_CONFIG` must be free. Received: '
        f'{address!r}, where no server can be started. End the process that '
        'listens there, or give the task another port in every `TF_CONFIG`.'
    ) from e


def warn_of_temporary(model_dir: str) -> None:
  """Warns if a task of a cluster has a temporary directory for its model.

  An Estimator makes one where it gets no `model_dir`.
  """
  parent, name = os.path.split(model_dir)
  if parent == tempfile.gettempdir() and (
      name.startswith(tempfile.gettempprefix())) and (
          cluster_config.only_trains() or not from_environment().is_alone):
    tf.compat.v1.logging.warning(
        'The tasks of a cluster must have one `model_dir`. Received: %r, a '
        'temporary directory. Without `model_dir` each task makes one: no '
        'evaluator and no restart finds the checkpoints of the chief. Pass the '
        'same path to `tf.estimator.RunConfig` in every task.', model_dir)


def check_first_run(task: ClusterTask) -> None:
  """Raises RuntimeError if this process has run the task before.

  The server of the first run is never freed. A parameter server that has ended
  serves no second run.
  """
  if not task.num_ps or task.job not in task.cluster_spec.jobs:
    return
  address = task.cluster_spec.task_address(task.job, task.index)
  if address in _addresses_run:
    raise RuntimeError(
        'A process of a cluster with parameter servers must call '
        '`train_and_evaluate` once. Received: another call in the process of '
        f'{task.name}, at {address}. Start the program of every task again for '
        'the next part of the training. It continues from the newest '
        'checkpoint.')
  _addresses_run.add(address)


def from_config(config: tf.estimator.RunConfig | None) -> ClusterTask:
  """Returns the task of a process with an Estimator; alone if `config` is None.

  With `train_distribute` in a cluster, TensorFlow's coordinator reads the task
  from TF_CONFIG. Until then, `RunConfig` calls every process `worker:0`, also
  the only task of a cluster.
  """
  if config is None:
    return ClusterTask()
  if config.train_distribute is not None:
    task = from_environment()
    if not task.is_alone:
      return task
    for name in ClusterTask(config.cluster_spec).training_tasks[:1]:
      job, _, index = name.partition(':')
      return ClusterTask(config.cluster_spec, job, int(index))
  return ClusterTask(config.cluster_spec, config.task_type, config.task_id,
                     config.master)


@contextlib.contextmanager
def evaluation_kept() -> Iterator[None]:
  """Turns the warnings off: tasks evaluate as without a strategy."""
  global _num_running
  _num_running += 1
  try:
    yield
  finally:
    _num_running -= 1


def warn_of_evaluation() -> None:
  """Warns, if a strategy changes which task evaluates."""
  if _num_running or not cluster_config.is_rewritten():
    return
  if cluster_config.only_trains():
    tf.compat.v1.logging.warning('%s', ONLY_TASK)
  elif cluster_config.is_master():
    tf.compat.v1.logging.warning('%s', MASTER)
