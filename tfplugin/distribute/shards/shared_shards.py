# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategy of the decorators that build shards into the graph of a model_fn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import refusals
from tfplugin.distribute.shards import cross_shard_extended
from tfplugin.distribute.shards import current_shards
from tfplugin.distribute.shards import horovod_processes
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.shards.building import shard_models
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import write_audit
from tfplugin.distribute.variables import mirrored_variables
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction

tf1 = tf.compat.v1

_PARAMETER_DEVICE = '/device:CPU:0'
_NONE = (None, tf.VariableAggregation.NONE)
_MEAN = tf.distribute.ReduceOp.MEAN


class SharedShards(shard_loss.ScalesLoss, tf1.distribute.Strategy,
                   tf.distribute.Strategy):
  """Strategy that builds a function once per shard, with shared variables.

  As on TPU, each shard computes a separate loss and its gradients. The shards
  are CrossShardStrategy's, but a variable has one copy. So the graph of a
  worker of parameter servers can have shards, and a device can be named twice.
  """

  described_as = 'SharedShards'
  # TensorFlow's extended classes read it: the first of the collective keys.
  _collective_key_base = 0

  def __init__(self, devices: Sequence[str],
               loss_weights: Sequence[batch_parts.Weight] | None = None,
               shares_of_rows: Sequence[batch_parts.Weight] | None = None,
               group_assignment: shard_reduction.GroupAssignment = None,
               reduction: str | None = None):
    """Makes a strategy for one graph, with a shard on each of `devices`.

    `loss_weights` are the factors of the shards' losses and gradients.
    `shares_of_rows` are the shares of the shards in the rows of the batch. Both
    default to a mean. With a `reduction`, MEAN or SUM over a group, the
    optimizers of a shard minimise its part of the loss instead. The groups are
    checked already.
    """
    count = self.num_shards = len(devices)
    self.groups = group_assignment or [range(count)]
    # It updates the variables, as in the checkpoint of a TPU.
    self.first_group = next(group for group in self.groups if 0 in group)
    size = len(self.first_group)
    self.loss_weights = loss_weights or [1.0 / size] * count
    self.group_assignment = group_assignment
    # A weight divides means, but SUM losses are multiplied.
    self.divides_loss = reduction is not None
    self.reduced_together = size if reduction == shard_reduction.MEAN else 1
    # 1: the weight of a shard divides its loss.
    self.divided_by_keras = 1 if reduction is None else size
    super().__init__(SharedExtended(
        self, devices, shares_of_rows or [1.0 / count] * count))

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of shards; in a shard the number that divides its loss."""
    return self.divided_by_keras if _tf_internals.is_in_shard() else (
        self.num_shards)

  def build(self, calls: Sequence[Callable[[], Any]],
            batch: Sequence[Any] | None = None) -> shard_run.ShardRun:
    """Returns the run that made the call of each shard, with the results."""
    with self.scope():
      run = self.extended.call_for_each_replica(shard_run.call, args=(
          _tf_internals.per_replica(calls),
          _tf_internals.per_replica(batch or [()] * self.num_shards)))
      if self.num_shards > 1:
        self._make_one_batch(run, run.results[0])
    return run

  def _make_one_batch(self, run: shard_run.ShardRun, result: Any) -> None:
    """Makes writes, reports and mean losses hold for the whole batch."""
    group = self.first_group
    run.record.check_no_accumulators()
    run.record.check_no_stores()
    write_audit.settle(run, group, first_alone=getattr(
        result, 'train_op', None) is not None)
    write_audit.show_batch_values(
        run, group, getattr(result, 'loss', None))
    for group in self.groups:
      shard_models.share_denominators(
          [run.record.ops_of(shard) for shard in group],
          [self.loss_weights[shard] for shard in group])


class SharedExtended(cross_shard_extended.GroupReduction,
                     mirrored_variables.MirroredInGraph,
                     _tf_internals.OneCopyExtended):
  """The StrategyExtended of `SharedShards`.

  `shares_of_rows` has the share of each shard in a mean over the batch.
  """

  def __init__(self, strategy: tf.distribute.Strategy,
               devices: Sequence[str],
               shares_of_rows: Sequence[batch_parts.Weight]):
    """Stores the shares; see `SharedShards`."""
    self.shares_of_rows = shares_of_rows
    super().__init__(
        strategy, devices,
        devices[0] if len(devices) == 1 else _PARAMETER_DEVICE,
        cross_device_ops=tf.distribute.ReductionToOneDevice())

  def apply_sums(self, apply_gradients: Callable,
                 grads_and_vars: types.GradsAndVars,
                 global_step: tf.Variable | None = None,
                 name: str | None = None,
                 skip_gradients_aggregation: bool = False, **more: Any):
    """Applies the sums of the gradients over the group of shard 0.

    Every shard calls it in place of its optimizer's `apply_gradients`. A
    gradient that is a sum over the shards is not summed again.
    """
    more.update(global_step=global_step, name=name)
    if skip_gradients_aggregation:
      return apply_gradients(
          grads_and_vars, skip_gradients_aggregation=True, **more)
    if horovod_processes.MODULE in sys.modules:
      # Raises if there are processes, too.
      current_shards.current_shards('CrossShardOptimizer.apply_gradients')
    group, are_in_total = (
        self._container_strategy().first_group,
        self._run.gradients.are_in_total)
    sums = [(g if g is None else self.sum_over(
        group[:1] if are_in_total(g) else group, g), v)
            for g, v in grads_and_vars]
    with self.applying_sums:
      return apply_gradients(sums, **more)

  def sum_over(self, group: Sequence[int], gradient: Any) -> Any:
    """Returns the sum of a gradient over the shards of `group`.

    Every shard calls it.
    """
    self._run.warn_of_own_change(gradient)
    if self._run.branches.is_current():
      # The update that follows refuses it, unless all shards have the same.
      return batch_parts.weighted_sum([gradient], [float(len(group))])

    def merge(strategy: tf.distribute.Strategy, gradient: Any) -> Any:
      values = strategy.experimental_local_results(gradient)
      if len(values) == 1:
        values = values * len(self.worker_devices)
      return batch_parts.weighted_sum(
          [values[shard] for shard in group], [1.0] * len(group))

    return tf.distribute.get_replica_context().merge_call(
        merge_calls.labelled('the sum of a gradient over shards', merge),
        args=(gradient,))

  def update(self, var, fn, args=(), kwargs=None, group=True):
    """Updates `var` as `tf.distribute.StrategyExtended.update`."""
    return _tf_internals.step_operation(
        fn, group, super().update(var, fn, args, kwargs, group))

  def check_branch(self, label: str) -> None:
    """Accepts every call: there is one copy of a variable to update."""

  def _build(self, fn, args, kwargs):
    models = shard_models.ShardModels(list(self.worker_devices))
    self._run.models = models
    with models.building():
      return self._in_shards(fn, args, kwargs)

  def _create_variable(self, next_creator, **kwargs):
    # All shards add to a metric's variable once, as to any other.
    if _tf_internals.is_metric(kwargs):
      kwargs['aggregation'] = None
    has_rule = kwargs.get('aggregation') not in _NONE
    kwargs['trainable'] = _tf_internals.is_trainable(kwargs)
    kwargs['synchronization'] = tf.VariableSynchronization.ON_WRITE
    if not has_rule:
      kwargs['aggregation'] = tf.VariableAggregation.ONLY_FIRST_REPLICA
    variable = super()._create_variable(next_creator, **kwargs)
    if isinstance(variable, _tf_internals.MirroredVariable):
      _tf_internals.use_one_copy(variable)
      if not has_rule:
        self._write_batch_values(variable)
    return variable

  def _check_copies_of(self, variable: tf.Variable) -> None:
    """Does nothing: `_create_variable` does it."""

  def _validate_colocate_with_variable(self, colocate_with_variable):
    # An outer variable, such as Estimator's global step, is shared.
    if isinstance(colocate_with_variable, tf.Operation) and (
        len(self.worker_devices) > 1):
      super()._validate_colocate_with_variable(colocate_with_variable)

  def _reduce_to(self, reduce_op, value, destinations, options):
    values = self._local_results(value)
    if reduce_op == _MEAN and len(values) > 1:
      return batch_parts.weighted_sum(values, self.shares_of_rows)
    return super()._reduce_to(reduce_op, value, destinations, options)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    return [
        self._gradient_to_apply(value)
        if _tf_internals.is_distributed_variable(destination) else
        self._reduce_over_all(reduce_op, [(value, destination)], options)[0]
        for value, destination in value_destination_pairs]

  def _gradient_to_apply(self, gradient: Any) -> Any:
    """Returns the one gradient of all shards that an optimizer applies."""
    values = self._local_results(gradient)
    # In a branch TensorFlow fails at a sum of one tensor with itself.
    if self.applying_sums or all(value is values[0] for value in values):
      return values[0] if self.applying_sums else batch_parts.weighted_sum(
          values[:1], [sum(self._container_strategy().loss_weights)])
    self._run.warn_of_own_change(values[0])
    return batch_parts.weighted_sum(
        values, self._container_strategy().loss_weights)

  def _update(self, var, fn, args, kwargs, group):
    if _tf_internals.keras_3_module_of(fn) is not None:
      refusals.refuse_keras_3_update(
          fn, self._container_strategy(),
          'in a graph it returns nothing that a session could run')
    if _tf_internals.is_distributed_variable(var):
      return super()._update(var, fn, args, kwargs, group)
    # Made before the shards, such as Estimator's global step.
    args, kwargs = _tf_internals.select_replica(0, (args, kwargs))
    with _tf_internals.colocate_with(var):
      result = fn(var, *args, **kwargs)
    return result if group else tf.nest.map_structure(
        self._local_results, result)
