# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of the TensorFlow module that sets up Estimator's clusters.

Estimator calls it when a RunConfig is made, and before it trains or evaluates
with a strategy of `RunConfig(train_distribute=...)`. TensorFlow still contains
the distribute coordinator, which makes a session for each task of a cluster.
"""

from __future__ import annotations

import copy
from typing import Any
from typing import Callable

import tensorflow as tf
from tensorflow.python.distribute import distribute_coordinator
from tensorflow.python.distribute import distribute_coordinator_context
from tensorflow.python.distribute import multi_worker_util

tf1 = tf.compat.v1

_CHIEF, _EVALUATOR, _PS, _WORKER = 'chief', 'evaluator', 'ps', 'worker'
_INDEPENDENT = distribute_coordinator.CoordinatorMode.INDEPENDENT_WORKER
_STANDALONE = distribute_coordinator.CoordinatorMode.STANDALONE_CLIENT


def init_run_config(config: Any, tf_config: dict) -> None:
  """Decides whether the coordinator, or TF_CONFIG alone, sets up `config`."""
  for name in ('train_distribute', 'eval_distribute'):
    _take_experimental(config, name)
  cluster = tf.train.ClusterSpec(tf_config.get('cluster', {}))
  remote = getattr(config._experimental_distribute, 'remote_cluster', None)
  config._init_distributed_setting_from_environment_var({})
  config._distribute_coordinator_mode = None
  if config._train_distribute and remote:
    if cluster:
      raise ValueError(
          '`remote_cluster` must not be set where TF_CONFIG has a cluster. '
          f'Received: {remote!r} and {cluster!r}. Leave out one of the two.')
    config._distribute_coordinator_mode = _STANDALONE
    config._cluster_spec = remote
  elif config._train_distribute and cluster and 'master' not in cluster.jobs:
    config._distribute_coordinator_mode = _INDEPENDENT
    config._cluster_spec = cluster
  else:
    config._init_distributed_setting_from_environment_var(tf_config)
    config._maybe_overwrite_session_config_for_distributed_training()
  tf1.logging.info('RunConfig: distribute coordinator mode %s.',
                   config._distribute_coordinator_mode)


def should_run_distribute_coordinator(config: Any) -> bool:
  """Returns whether `train_and_evaluate` runs on the coordinator."""
  mode = getattr(config, '_distribute_coordinator_mode', None)
  if mode in (_STANDALONE, _INDEPENDENT) and not config.cluster_spec:
    tf1.logging.warning(
        'There is no cluster: `train_and_evaluate` runs locally.')
  return mode in (_STANDALONE, _INDEPENDENT) and bool(config.cluster_spec)


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any,
                       executor_cls: Callable) -> None:
  """Runs `tf.estimator.train_and_evaluate` in the tasks of a cluster.

  `executor_cls` is Estimator's private class that evaluates in an endless loop.
  """
  config = estimator.config
  mode = config._distribute_coordinator_mode

  def train(strategy):
    task = _estimator_of_task(estimator, 'train', strategy)
    # One process runs all tasks: hooks would print once for each of them.
    has_hooks = mode == _INDEPENDENT or task.config.is_chief
    task.train(train_spec.input_fn, max_steps=train_spec.max_steps,
               hooks=list(train_spec.hooks) if has_hooks else [])

  def evaluate(strategy):
    task = _estimator_of_task(estimator, 'eval', strategy)
    executor_cls(task, train_spec, eval_spec)._start_continuous_evaluation()

  distribute_coordinator.run_distribute_coordinator(
      train, config.train_distribute, evaluate, config.eval_distribute,
      mode=mode, session_config=config.session_config,
      # The coordinator reads TF_CONFIG itself in an independent worker.
      cluster_spec=config.cluster_spec if mode == _STANDALONE else None)


def estimator_train(estimator: Any, train_distributed_fn: Callable,
                    hooks: list) -> Any:
  """Runs `Estimator.train` in a remote cluster's tasks, hooks in the chief."""
  def train(strategy):
    task = _estimator_of_task(estimator, 'train', strategy)
    train_distributed_fn(task, strategy, hooks if task.config.is_chief else [])
    return task

  return _run_on_remote_cluster(estimator, 'train', train)


def estimator_evaluate(estimator: Any, evaluate_distributed_fn: Callable,
                       hooks: list) -> Any:
  """Runs `Estimator.evaluate` in a remote cluster; hooks in the chief."""
  def evaluate(strategy):
    task = _estimator_of_task(estimator, 'eval', strategy)
    return evaluate_distributed_fn(
        task, strategy, hooks if task.config.is_chief else [])

  return _run_on_remote_cluster(estimator, 'eval', evaluate)


def _take_experimental(config: Any, name: str) -> None:
  """Copies a strategy from `experimental_distribute` into `config`."""
  strategy = getattr(config._experimental_distribute, name, None)
  if strategy and getattr(config, f'_{name}'):
    raise ValueError(
        f'`{name}` must be given once. Received: {strategy!r} in '
        f'`experimental_distribute`, too. Leave out that one.')
  if strategy:
    setattr(config, f'_{name}', strategy)


def _run_on_remote_cluster(estimator: Any, verb: str, run: Callable) -> Any:
  """Calls `run` for each task of the cluster in `remote_cluster`."""
  config = estimator.config
  strategy = getattr(config, f'{verb}_distribute')
  cluster = multi_worker_util.normalize_cluster_spec(config.cluster_spec)
  refusals = {
      'an evaluator in the cluster': _EVALUATOR in cluster.jobs,
      'a cluster of TF_CONFIG':
          config._distribute_coordinator_mode != _STANDALONE,
      f'{type(strategy).__name__}':
          strategy.extended.experimental_between_graph,
  }
  for received, is_refused in refusals.items():
    if is_refused:
      raise ValueError(
          '`Estimator.train` and `Estimator.evaluate` with a cluster need '
          '`remote_cluster`, no evaluator, and a strategy with one graph for '
          f'all workers. Received: {received}. Use '
          '`tf.estimator.train_and_evaluate`.')
  return distribute_coordinator.run_distribute_coordinator(
      run, strategy, mode=_STANDALONE, cluster_spec=cluster,
      session_config=config.session_config)


def _estimator_of_task(estimator: Any, verb: str, strategy: Any) -> Any:
  """Returns a copy of `estimator` for the task of the current thread."""
  task = copy.deepcopy(estimator)
  config = task._config
  setattr(config, f'_{verb}_distribute', strategy)
  setattr(task, f'_{verb}_distribution', strategy)
  config._distribute_coordinator_mode = None  # The coordinator runs already.
  context = distribute_coordinator_context.get_current_worker_context()
  config._service = None
  config._task_type, config._task_id = context.task_type, context.task_id
  config._master = config._evaluation_master = context.master_target
  config._is_chief = context.is_chief
  cluster = context.cluster_spec
  is_evaluator = bool(cluster) and context.task_type == _EVALUATOR
  if is_evaluator:  # An evaluator does not know the other tasks.
    cluster = tf.train.ClusterSpec({})
  jobs = cluster.as_dict() if cluster else {}
  config._cluster_spec = cluster
  config._num_ps_replicas = len(jobs.get(_PS, ()))
  config._num_worker_replicas = (
      len(jobs.get(_CHIEF, ())) + len(jobs.get(_WORKER, ())) if jobs
      else int(not is_evaluator))
  config._global_id_in_cluster = (
      None if is_evaluator
      else _global_id(jobs, context.task_type, context.task_id))
  return task


def _global_id(jobs: dict, task_type: str | None,
               task_id: int | None) -> int:
  """Counts the tasks before this one: the chief is first, servers are last."""
  if not jobs or not task_type:
    return 0
  order = sorted(jobs, key=lambda job: (job != _CHIEF, job == _PS, job))
  before = order[:order.index(task_type)]
  return sum(len(jobs[job]) for job in before) + task_id
