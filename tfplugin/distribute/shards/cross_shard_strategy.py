# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards on the devices of one host or of several hosts, with one reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import local_devices
from tfplugin.distribute import refusals
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.shards import cluster_extended
from tfplugin.distribute.shards import cross_shard_extended
from tfplugin.distribute.shards import horovod_processes
from tfplugin.distribute.shards import shard_loss
from tfplugin.ops import shard_reduction
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# The engines of sums over processes.
TENSORFLOW = 'tensorflow'
HOROVOD = 'horovod'


class CrossShardStrategy(shard_loss.ScalesLoss, refusals.OneStrategy,
                         tf.distribute.MirroredStrategy):
  """Strategy that trains one model on shards of a batch, each with a copy.

  Choose it for synchronous training on the CPUs or GPUs of one host, or, with
  `TF_CONFIG`, of several hosts over TensorFlow's own collectives. In every step
  the gradients are reduced over the shards once. Small ones are packed
  together, sparse ones stay rows, and every shard applies the result to its
  copy:

    gradient = scale * sum over the shards of gradient[shard]
    scale = 1 / number of shards with MEAN, 1 with SUM

  A v1 optimizer's `compute_gradients` applies the scale, under an Estimator and
  in `strategy.run` alike. Gradients of `tf.gradients` are summed. Gradients
  that `tfplugin.cross_replica_sum` has summed are applied as they are. In a
  graph or tf.function a wrapper of the program, such as LARS, gets sums; in
  eager execution it is refused. A loss that was built with `Reduction.SUM` is a
  sum over the batch, so it is summed over the shards, too. This holds for the
  loss that is minimised and for each of its terms. In a graph the ops of the
  loss show how it was built. In eager execution the last loss that was built
  decides, as in TensorFlow's own strategies.

  Keras scales its losses itself: `Model.fit` minimises a mean over the batch
  for every `reduction`, and in a custom loop the scale is yours. With a v1
  optimizer in a model of `tf.keras.estimator.model_to_estimator` both would
  scale, as under TensorFlow's strategies. Pass SUM there, or a Keras optimizer.

  A regularizer is in the loss of each shard, also of `tf.compat.v1.layers`.
  Under MirroredStrategy only the first replica's loss has it.

  With `group_assignment` each group of shards reduces by itself, and the copies
  of different groups diverge. A checkpoint holds the copies of shard 0. Groups
  need a v1 optimizer. `tfplugin.cross_replica_sum` inside a model_fn sums over
  the shards, or over the groups passed to it.

  If replicas add to a variable without an `aggregation`, the mean over the
  shards (of the group) is added. So gradients can be accumulated over steps and
  be applied in a branch of `tf.cond`. In a graph, another value that depends on
  rows is computed again from the rows of all replicas, in each replica. A value
  that does not depend on rows is written to each copy separately, as under
  MirroredStrategy. On one host, the summaries, named scalars and loss that a
  training model_fn reports are of all rows. With several hosts they are of the
  first shard.

  With `exchange_dtype` several processes sum gradients in a smaller type, each
  addition rounded, and apply them in their own type. An overflow is infinite in
  all of them. All else that is summed keeps its type.

  Supported: Estimator (`RunConfig(train_distribute=...)`), `strategy.run`,
  `Model.fit`, with the features that Keras has for a MirroredStrategy only
  (`mixed_float16`, `BackupAndRestore`); dense and sparse gradients, partitioned
  variables. Checkpoints have the names of one device. It was run on CPUs; GPUs
  were not available.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin.distribute
    >>> strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
    >>> with strategy.scope():
    ...   weight = tf.Variable(1.0)
    >>> sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    >>> @tf.function
    ... def step():
    ...   def shard():
    ...     index = tf.distribute.get_replica_context(
    ...         ).replica_id_in_sync_group
    ...     x = tf.cast(index, tf.float32) * 2.0 + 1.0  # 1 and 3
    ...     sgd.minimize(lambda: weight * x, var_list=[weight])
    ...   strategy.run(shard)
    >>> step()
    >>> round(float(weight.read_value()), 6)  # 1 - 0.1 * (1 + 3) / 2
    0.8
  """

  # TensorFlow's extended classes read it: the first of the collective keys.
  _collective_key_base = 0

  def __new__(cls, *args, **kwargs):
    """Returns the strategy of a cluster where TF_CONFIG has several workers."""
    del args, kwargs
    return object.__new__(
        _ClusterStrategy if cls is CrossShardStrategy and _is_in_cluster()
        else cls)

  def __init__(self,
               devices: Sequence[str] | None = None,
               reduction: str = shard_reduction.MEAN,
               group_assignment: shard_reduction.GroupAssignment = None,
               engine: str = TENSORFLOW,
               *,
               exchange_dtype: str | None = None):
    """Creates the strategy; with collectives, before any other op.

    Args:
      devices: Devices of this process, one shard each; of every process in a
        cluster. None takes all its GPUs, or all its logical CPUs.
      reduction: `tf.compat.v1.losses.Reduction.MEAN` or `SUM`.
      group_assignment: List of lists of shard indices that reduce together.
      engine: The engine of sums over several processes: `'tensorflow'`, or
        `'horovod'`, which has to be installed; one process needs neither.
      exchange_dtype: A smaller type, in which gradients are summed over several
        processes: `'float16'`, or `'bfloat16'`, which Horovod cannot sum. None:
        their own type. docs/exchange.md has the rule.

    Raises:
      TypeError: `devices` is not a list of strings.
      ValueError: An unknown or repeated device, another reduction, engine or
        type, groups that do not fit the shards, or a cluster with parameter
        servers or with gaps between the numbers of its tasks.
      ImportError: The engine is not installed.
      TimeoutError: Horovod's first process cannot be reached.
    """
    shard_reduction.check(reduction)
    shard_reduction.check_groups(group_assignment)
    if engine not in (TENSORFLOW, HOROVOD):
      raise ValueError(
          f'`engine` must be {TENSORFLOW!r} or {HOROVOD!r}. Received: '
          f'{engine!r}. The first one needs nothing else.')
    _check_exchange_dtype(exchange_dtype, engine)
    membership.refuse('CrossShardStrategy')
    cluster_config.rewrite()
    task = cluster_task.from_environment()
    _check_cluster(task)
    if exchange_dtype is not None and task.num_workers == 1:
      tf1.logging.warning(
          '`exchange_dtype` has no effect in one process, whose sums need no '
          'network. Received: %r. Leave it out, or start several processes '
          'with `TF_CONFIG`.', exchange_dtype)
    self._engine = engine
    self._exchange_dtype = exchange_dtype
    self._reduction = reduction
    self._group_assignment = group_assignment
    # Not super(): a cluster's class has another strategy among its bases.
    tf.distribute.Strategy.__init__(
        self, self._make_extended(local_devices.check_copies(devices)))
    shard_reduction.check_groups(group_assignment, self.num_replicas_in_sync)

  @property
  def reduction(self) -> str:
    """`'weighted_mean'` or `'weighted_sum'`."""
    return self._reduction

  @property
  def group_assignment(self) -> shard_reduction.GroupAssignment:
    """The groups of shards that reduce together, or None."""
    return self._group_assignment

  @property
  def exchange_dtype(self) -> str | None:
    """The type in which processes sum gradients, or None for their own."""
    return self._exchange_dtype

  @property
  def num_shards(self) -> int:
    """The number of shards in all processes."""
    return self.num_replicas_in_sync

  @property
  def divided_by_keras(self) -> int:
    """The number that Keras 3 and `tf.nn` divide a mean loss by."""
    return self.num_replicas_in_sync

  @property
  def reduced_together(self) -> int:
    """The number of shards whose mean is minimised; 1 with SUM."""
    return 1 if self._reduction == shard_reduction.SUM else (
        shard_reduction.group_size(
            self._group_assignment, self.num_replicas_in_sync))

  def _make_extended(self, devices: list[str]):
    return cross_shard_extended.LocalExtended(self, devices)


class _ClusterStrategy(CrossShardStrategy,
                       tf.distribute.MultiWorkerMirroredStrategy):
  """CrossShardStrategy with workers on several hosts."""

  @property
  def described_as(self) -> str:
    """The strategy's name in messages; the class has another one."""
    return CrossShardStrategy.__name__

  @refusals.on_instance
  def configure(self, session_config: tf1.ConfigProto | None = None,
                *args: Any, **kwargs: Any) -> None:
    """Configures as the base class, with all logical CPUs.

    A server that starts later has the devices of `session_config`. It would put
    two shards on one device, and their collectives would wait without end.
    """
    super().configure(session_config, *args, **kwargs)
    num_cpus = len(local_devices.devices_of('CPU'))
    if session_config is not None and num_cpus > max(
        session_config.device_count.get('CPU', 0), 1):  # `[...]` would add 0.
      session_config.device_count['CPU'] = num_cpus

  def _make_extended(self, devices: list[str]):
    if self._engine == TENSORFLOW:
      return cluster_extended.ClusterExtended(self, devices)
    horovod_processes.join(cluster_task.from_environment())
    return cluster_extended.HorovodExtended(self, devices)


# Estimator recognises a strategy that runs its own session by the class name.
_ClusterStrategy.__name__ = tf.distribute.MultiWorkerMirroredStrategy.__name__


def _check_exchange_dtype(exchange_dtype: str | None, engine: str) -> None:
  """Raises ValueError unless the engine sums values of the type."""
  if exchange_dtype not in (None, *wire_types.SUM_TYPES):
    raise ValueError(
        f'`exchange_dtype` must be one of {wire_types.SUM_TYPES}, whose values '
        f'can be added. Received: {exchange_dtype!r}. None sums gradients in '
        'their own types.')
  if engine == HOROVOD and exchange_dtype == 'bfloat16':
    raise ValueError(
        "`exchange_dtype` must be 'float16' or None with engine='horovod', "
        "which cannot sum bfloat16. Received: 'bfloat16'. Pass 'float16', or "
        f'engine={TENSORFLOW!r}.')


def _check_cluster(task: cluster_task.ClusterTask) -> None:
  """Raises ValueError unless the tasks that train can be connected."""
  if task.trains and task.num_ps:
    raise ValueError(
        'The cluster of `TF_CONFIG` must have no `ps` for CrossShardStrategy: '
        f'every shard has a copy. Received: {task.num_ps}. Leave out the job '
        '`ps`, or use the decorator `tfplugin.estimator.cross_shard`.')
  for job in task.cluster_spec.jobs if task.trains else ():
    indices = task.cluster_spec.task_indices(job)
    if indices != list(range(len(indices))):
      raise ValueError(
          'The cluster of `TF_CONFIG` must have all tasks, numbered from 0, '
          'for CrossShardStrategy, which connects them. Received: '
          f'{", ".join(f"{job}:{index}" for index in indices)}. Make the '
          'launcher name every worker (Kubeflow: no dynamic workers), or use a '
          'strategy with parameter servers.')


def _is_in_cluster() -> bool:
  """Returns whether TF_CONFIG makes this process one of several workers."""
  task = cluster_task.from_environment()
  return task.trains and task.num_workers > 1
