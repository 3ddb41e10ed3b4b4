# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process as one: towers in one graph."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import local_devices
from tfplugin.distribute import refusals
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.towers import split_model

tf1 = tf.compat.v1

_PARAMETER_DEVICE = '/device:CPU:0'
_NO_AGGREGATION = (None, tf.VariableAggregation.NONE)
_ON_READ = tf.VariableSynchronization.ON_READ


class TowerStrategy(refusals.NoKerasSessions, tf1.distribute.Strategy,
                    tf.distribute.Strategy):
  """Strategy of several devices of one process, with the numbers of one device.

  Choose it instead of `MirroredStrategy` where checkpoints and variables must
  be as on one device, or batches are not divisible. Choose
  `tfplugin.replicate_model_fn` to split the batches of the input_fn instead of
  giving one to each device (a *tower*).

  `RunConfig(train_distribute=TowerStrategy())` needs no change of the model_fn,
  and neither does `eval_distribute`. Each tower takes one batch of the
  input_fn. All numbers are computed from these batches, joined in order. Loss,
  gradients, metrics, summaries and writes are as on one device with the same
  rows, also if the last batches are fewer than the towers.
  If the size of a batch is static (`drop_remainder=True`), these last batches
  are left out.

  In a graph the model is built once, as by `tfplugin.replicate_model_fn`. Ops
  that compute each row separately are repeated in each tower. All other ops run
  once, on the rows of all towers. So a function passed to `run` has one
  replica, whose batch holds the rows of all towers, and returns one value for
  them. Rows of different length are padded with zeros. If the batches have a
  scalar, the scalar of the first batch is used. A warning names scalars that
  may differ. Batch normalisation normalises within a tower and weights moving
  statistics by rows. `tf.keras.layers.BatchNormalization(synchronized=True)`
  normalises over all towers.

  In eager execution, and in a `tf.function` there, each tower is a replica.
  Gradients are summed as in TensorFlow's strategies. `Model.fit` uses the mean
  over the batch only if all towers get equally many rows: Keras has no other
  weights.

  Variables created: the strategy adds none. The model's variables are made
  once, on the CPU (on the device itself, if there is only one), with the names
  of one device.

  Supported: v1 optimizers of any class, dense and sparse gradients, partitioned
  variables, variables of `get_variable`, `tf.layers`, Keras layers and
  `tf.Variable`.

  Differences from tf.contrib: it had no such strategy.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> tf1 = tf.compat.v1
    >>> def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0], [3.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x)).repeat(2)
    >>> strategy = tfplugin.distribute.TowerStrategy(['/cpu:0', '/cpu:0'])
    >>> config = tf.estimator.RunConfig(train_distribute=strategy)
    >>> estimator = tf.estimator.Estimator(model_fn, config=config)
    >>> _ = estimator.train(input_fn)
    >>> # One step: w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 28 / 3
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.8667
  """

  def __init__(self, devices: Sequence[str] | None = None,
               loss_reduction: str | None = None):
    """Makes a strategy over devices of this process.

    Args:
      devices: Device strings, one per tower. By default the local GPUs, or else
        the logical CPUs, found without initialising them.
      loss_reduction: The reduction of the model's loss, one of
        `tf.compat.v1.losses.Reduction`, or None. No number depends on it.

    Raises:
      TypeError: `devices` is not a list of strings.
      ValueError: `devices` is empty, or `loss_reduction` is NONE or unknown. On
        first use: this process has no such device. `TF_CONFIG` is wrong, or
        an Estimator trains in a cluster of several tasks.
    """
    split_model.check_loss_reduction(loss_reduction)
    devices = local_devices.check_devices(devices)
    cluster_config.rewrite()
    super().__init__(TowerExtended(self, devices))

  # Estimator asks the optimizers to divide the loss by the number of replicas.
  # Towers are weighted by their rows instead.
  _scale_loss_for_estimator = property(lambda self: False, lambda self, _: None)


class TowerExtended(_tf_internals.StepOperations,
                    untuned_inputs.UntunedInputs,
                    _tf_internals.ParameterServerStrategyExtended):
  """StrategyExtended with one copy of each variable.

  In a graph there is one replica, which has the batches of all towers. Its
  row-wise ops are split over the devices. In eager execution, and in a
  `tf.function` there, it is its base class, TensorFlow's central storage.
  """

  def __init__(self, strategy, devices: Sequence[str]):
    """Makes the towers; see `TowerStrategy`."""
    self._depth = 0
    super().__init__(strategy, compute_devices=devices)
    # As given, without a job: a tower runs in the task of the session.
    self._compute_devices = list(devices)
    self._variable_device = (
        devices[0] if len(devices) == 1 else _PARAMETER_DEVICE)
    self._parameter_devices = (self._variable_device,)

  def _configure(self, session_config=None, cluster_spec=None, task_type=None,
                 task_id=None):
    # The base class would replace the towers by one device of the task.
    if cluster_spec:
      _check_is_alone(cluster_task.ClusterTask(
          tf.train.ClusterSpec(cluster_spec), task_type, task_id or 0))
    super()._configure(session_config)

  @property
  def _num_replicas_in_sync(self) -> int:
    return 1 if self._depth else super()._num_replicas_in_sync

  def _call_for_each_replica(self, fn, args, kwargs):
    local_devices.check_present(self._compute_devices)
    if not _in_graph():
      return super()._call_for_each_replica(fn, args, kwargs)
    batches = [] if self._depth else _together([
        _tf_internals.select_replica(tower, (args, kwargs))
        for tower in range(self._num_replicas_in_sync)])
    self._depth += 1
    try:
      with tf1.device(self._compute_devices[0]), (
          _tf_internals.keras_means_of_losses(lambda: isinstance(
              tf.distribute.get_replica_context(), OneReplica))):
        return self._call_once(fn, args, kwargs, batches)
    finally:
      self._depth -= 1

  def _call_once(self, fn: Callable, args: Sequence[Any],
                 kwargs: dict[str, Any], batches: Sequence[Any]) -> Any:
    """Calls `fn` in the one replica, with the batches of all towers."""
    batch = split_model.join(batches) if len(batches) > 1 else None
    if batch is not None:
      args, kwargs = batch.values
    elif batches:
      args, kwargs = batches[0]

    def call_fn():
      with OneReplica(self._container_strategy(), 0):
        return fn(*args, **kwargs)

    if batch is None or tf1.get_default_graph().building_function:
      return call_fn()
    return split_model.build(call_fn, batch, self._compute_devices)

  def _make_input_fn_iterator(self, input_fn, replication_mode):
    # The last batches may be fewer than the towers: some get none.
    return _tf_internals.with_empty_batches(
        super()._make_input_fn_iterator(input_fn, replication_mode))

  def _create_variable(self, next_creator, **kwargs):
    if not _in_graph():
      _refuse_metric_of_keras_3(kwargs)
    if 'colocate_with' in kwargs or not _in_graph():
      return super()._create_variable(next_creator, **kwargs)
    # Inside the outer devices: in a cluster a device function of the session's
    # task puts the variable on a parameter server.
    with tf1.device(self._variable_device):
      return self._create_var_creator(next_creator, **kwargs)(**kwargs)

  def _validate_colocate_with_variable(self, colocate_with_variable):
    # A variable made before the scope, such as the global step of Estimator,
    # is shared by the towers as well.
    del colocate_with_variable

  def _create_var_creator(self, next_creator, **kwargs):
    if _in_graph():
      return next_creator
    if kwargs.get('aggregation') in _NO_AGGREGATION and (
        kwargs.get('trainable') is False):
      # As in a graph. A Keras optimizer stores the rate of a schedule in it.
      kwargs['aggregation'] = tf1.VariableAggregation.ONLY_FIRST_REPLICA
    return super()._create_var_creator(next_creator, **kwargs)

  def _reduce_to(self, reduce_op, value, destinations, options):
    if _in_graph() and not isinstance(
        value, tf.distribute.DistributedValues):
      return value
    return super()._reduce_to(reduce_op, value, destinations, options)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if not _in_graph():
      return super()._batch_reduce_to(
          reduce_op, value_destination_pairs, options)
    return [self._reduce_to(reduce_op, value, destination, options)
            for value, destination in value_destination_pairs]

  def _update(self, var, fn, args, kwargs, group):
    if _in_graph():
      refusals.refuse_keras_3_update(
          fn, self._container_strategy(),
          'in a graph it returns nothing that a session could run')
    if isinstance(var, tf1.Variable) and not hasattr(var, 'handle'):
      # A ref variable, such as the global step that Estimator makes under v1
      # behaviour before the scope is entered.
      with _tf_internals.colocate_with(var):
        result = fn(var, *args, **kwargs)
      return result if group else tf.nest.map_structure(
          self._local_results, result)
    return super()._update(var, fn, args, kwargs, group)


class OneReplica(tf.distribute.ReplicaContext):
  """The only replica of a graph: there is none to reduce with."""

  def all_reduce(self, reduce_op, value, options=None):
    """Returns `value`."""
    del reduce_op, options
    return value


def _check_is_alone(task: cluster_task.ClusterTask) -> None:
  """Raises RuntimeError if other tasks of the cluster train or serve."""
  if not task.is_alone:
    raise RuntimeError(
        'TowerStrategy must train in a process alone: its towers are devices '
        'of one process. Received: `TF_CONFIG` with the training tasks '
        f'{", ".join(task.training_tasks)} and {task.num_ps} parameter '
        'server(s). Use `tfplugin.replicate_model_fn`, whose towers work in '
        'each task, or `tfplugin.distribute.CrossShardStrategy` without '
        'parameter servers.')


def _refuse_metric_of_keras_3(kwargs: Any) -> None:
  """Raises a ValueError if Keras 3 asks for a variable of a metric.

  In each replica it assigns `variable + value`. Towers share the variable, so
  their sum would count its value once per tower.
  """
  if kwargs.get('synchronization') == _ON_READ and (
      _tf_internals.is_asked_by_keras_3()):
    raise ValueError(
        'A metric must not be one of Keras 3 in TowerStrategy: its numbers '
        f'would be wrong. Received: its variable {kwargs.get("name")!r}, made '
        'by `Model.compile`, say. Use `tfplugin.distribute.CrossShardStrategy`,'
        ' or `tf.keras` with tf-keras (`pip install tf-keras`, '
        'TF_USE_LEGACY_KERAS=1).')


def _in_graph() -> bool:
  """Returns whether a session is to run the ops, perhaps of a function."""
  return not tf1.executing_eagerly_outside_functions()


def _together(per_tower: Sequence[Any]) -> Sequence[Any]:
  """Returns the arguments of towers once all towers have theirs.

  If one tower finds no batch any more, no other tower continues alone.
  """
  leaves = [tf.nest.flatten(values, expand_composites=True)
            for values in per_tower]
  own = [[tf.is_tensor(leaf) and leaf is not leaves[tower - 1][index]
          for index, leaf in enumerate(flat)]
         for tower, flat in enumerate(leaves)]
  with tf.control_dependencies([
      leaf for flat, owned in zip(leaves, own)
      for leaf, is_own in zip(flat, owned) if is_own]):
    return [tf.nest.pack_sequence_as(values, [
        tf.identity(leaf) if is_own else leaf
        for leaf, is_own in zip(flat, owned)], expand_composites=True)
            for values, flat, owned in zip(per_tower, leaves, own)]


def current_tower() -> int:
  """Returns the index of the shard that the caller is built in.

  The index is an int that is known while the graph is built. It counts the
  shards of `tfplugin.estimator.cross_shard` and ShardedTPUEstimator. It is 0
  everywhere else: `replicate_model_fn` and TowerStrategy build one model.

  Example:
    >>> import tfplugin
    >>> tfplugin.distribute.current_tower()
    0
  """
  return getattr(tf.distribute.get_replica_context(), 'tower', 0)
