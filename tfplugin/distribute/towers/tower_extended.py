# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The StrategyExtended of TowerStrategy."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task
from tfplugin.distribute import local_devices
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.towers import joined_batches
from tfplugin.distribute.towers import split_graph
from tfplugin.distribute.towers import split_model
from tfplugin.distribute.updates import keras_refusals

tf1 = tf.compat.v1

_PARAMETER_DEVICE = '/device:CPU:0'
_NO_AGGREGATION = (None, tf.VariableAggregation.NONE)
_ON_READ = tf.VariableSynchronization.ON_READ


class TowerExtended(untuned_inputs.UntunedInputs,
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
    batch = joined_batches.join(batches) if len(batches) > 1 else None
    if batch is not None:
      args, kwargs = batch.values
    elif batches:
      args, kwargs = batches[0]

    def call_fn():
      with OneReplica(self._container_strategy(), 0):
        return fn(*args, **kwargs)

    if batch is None or tf1.get_default_graph().building_function:
      return call_fn()
    return split_model.build(call_fn, split_graph.SplitGraph(
        batch.dense, batch.composites, batch.num_rows, batch.bounds,
        self._compute_devices, split_graph.WEIGHTS_OF_MOMENTS['mean'],
        batch.parts))

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
      keras_refusals.refuse_keras_3_update(
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
