# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The questions of tf.distribute to a strategy, answered for towers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import local_devices
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.inputs import untuned_inputs
from tfplugin.distribute.towers import batch_loss
from tfplugin.distribute.towers import tower_run
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

_MEAN = tf.distribute.ReduceOp.MEAN
_PARAMETER_DEVICE = '/device:CPU:0'
_NO_AGGREGATION = (None, tf.VariableAggregation.NONE)
_ON_READ = tf.VariableSynchronization.ON_READ


class TowerExtended(untuned_inputs.UntunedInputs,
                    _tf_internals.ParameterServerStrategyExtended):
  """One copy of each variable, updated once with the sum over the towers.

  In a graph it builds towers with a `TowerRun`; in eager execution and in a
  `tf.function` it is its base class, the central storage of TensorFlow.
  """

  def __init__(self, strategy, devices: Sequence[str],
               loss_reduction: Optional[str]):
    """See `TowerStrategy`."""
    self._run = None
    self._loss_reduction = loss_reduction
    super().__init__(strategy, compute_devices=devices)
    # As given, without a job: a tower runs in the task of the session.
    self._compute_devices = list(devices)
    self._variable_device = (
        devices[0] if len(devices) == 1 else _PARAMETER_DEVICE)
    self._parameter_devices = (self._variable_device,)

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_weights.TowerWeights, sum_gradients: bool,
                   batch: Optional[Sequence[Any]] = None,
                   evaluates: bool = False,
                   ) -> tuple[tower_run.TowerRun, list[Any]]:
    """See `TowerStrategy.build_towers`."""
    outer = self._run
    run = tower_run.TowerRun(
        self._container_strategy(), weights, sum_gradients, outer, batch,
        evaluates)
    self._run = run
    try:
      return run, run.build(fn)
    finally:
      self._run = outer

  def _call_for_each_replica(self, fn, args, kwargs):
    local_devices.check_present(self._compute_devices)
    if self._run is None and not _in_graph():
      return super()._call_for_each_replica(fn, args, kwargs)
    per_tower = [_tf_internals.select_replica(tower, (args, kwargs))
                 for tower in range(self._num_replicas_in_sync)]
    if self._run is not None:  # Within a merge call, inside of a branch, say.
      weights, sums = self._run.weights, self._run.gradients_are_summed
      weights = dataclasses.replace(weights, by_terms=False)
      # Of gradients: their sums, which are handed in, are no rows.
      batch = None
    else:
      batch = per_tower = _together(per_tower)
      sums, weights = True, tower_weights.weights_of(
          weighted_sum.row_shares([_rows(values) for values in per_tower]),
          self._loss_reduction)

    def call(tower: int):
      tower_args, tower_kwargs = per_tower[tower]
      return fn(*tower_args, **tower_kwargs)

    # Estimator hands the mode on.
    evaluates = tf.estimator.ModeKeys.EVAL in [
        arg for arg in args if isinstance(arg, str)]
    run, results = self.build_towers(
        call, weights, sums, batch, evaluates)
    if getattr(results[0], 'train_op', None) is not None:
      results = _weighted_specs(run, results)
    return _tf_internals.regroup(tuple(results))

  def _make_input_fn_iterator(self, input_fn, replication_mode):
    # The last batches may be fewer than the towers: some get none.
    return _tf_internals.with_empty_batches(
        super()._make_input_fn_iterator(input_fn, replication_mode))

  def _create_variable(self, next_creator, **kwargs):
    if not self._in_towers():
      _refuse_metric_of_keras_3(kwargs)
    if 'colocate_with' in kwargs or not self._in_towers():
      return super()._create_variable(next_creator, **kwargs)
    # On top of the devices around it: in a cluster a device function of the
    # session's task puts the variable on a parameter server.
    with tf1.device(self._variable_device):
      return self._create_var_creator(next_creator, **kwargs)(**kwargs)

  def _validate_colocate_with_variable(self, colocate_with_variable):
    # A variable made before the scope, such as the global step of Estimator,
    # is shared by the towers as well.
    del colocate_with_variable

  def _in_towers(self) -> bool:
    """Whether a variable is for towers; a loop or a branch may make it."""
    return self._run is not None or _in_graph()

  def _create_var_creator(self, next_creator, **kwargs):
    aggregation = kwargs.get('aggregation')
    if not self._in_towers():
      if aggregation in _NO_AGGREGATION and kwargs.get('trainable') is False:
        # As in a graph. A Keras optimizer notes the rate of a schedule so.
        kwargs['aggregation'] = tf1.VariableAggregation.ONLY_FIRST_REPLICA
      return super()._create_var_creator(next_creator, **kwargs)
    if self._run is not None and (
        self._run.variables.is_streaming(kwargs)):
      return next_creator

    def create(**kwargs):
      return tower_variables.share(
          self._container_strategy(), next_creator(**kwargs), aggregation)
    return create

  def _reduce_to(self, reduce_op, value, destinations, options):
    values = self._local_results(value)
    if self._run is not None and reduce_op == _MEAN and len(values) > 1:
      return weighted_sum.weighted_sum(values, self._run.weights.of_means)
    return super()._reduce_to(reduce_op, value, destinations, options)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if self._run is None:
      return super()._batch_reduce_to(
          reduce_op, value_destination_pairs, options)
    return [
        self._run.gradient_to_apply(value)
        if isinstance(destination, tower_variables.TowerVariable)
        else self._reduce_to(reduce_op, value, destination, options)
        for value, destination in value_destination_pairs]

  def _update(self, var, fn, args, kwargs, group):
    if self._in_towers():
      parameter_server_base.refuse_keras_3_update(
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


def _refuse_metric_of_keras_3(kwargs: Any) -> None:
  """Raises if Keras 3 asks for a variable that each replica is to add to.

  It assigns `variable + value` in each. Towers share the variable, and the sum
  over them would count its value once for each.

  Args:
    kwargs: The arguments of the variable's creator.

  Raises:
    ValueError: It does.
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
  """Whether ops go into a graph that is not a tf.function's."""
  return not tf.executing_eagerly() and not (
      tf1.get_default_graph().building_function)


def _rows(values: Any) -> Any:
  """Returns the number of rows of a tower's arguments; 1 if there are none."""
  for leaf in tf.nest.flatten(values):
    if tf.is_tensor(leaf) and leaf.shape.rank != 0:
      rows = tf.compat.dimension_value(leaf.shape[0]) if leaf.shape.rank else (
          None)
      if rows is not None:
        return rows
      return (leaf.dense_shape[0] if isinstance(leaf, tf.SparseTensor)
              else leaf.nrows() if isinstance(leaf, tf.RaggedTensor)
              else tf.shape(leaf)[0])
  return 1


def _together(per_tower: Sequence[Any]) -> Sequence[Any]:
  """Returns the arguments of towers when those of all of them are there.

  Where one tower finds no batch any more, no other one works on its own.
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


def _weighted_specs(run: tower_run.TowerRun,
                    specs: Sequence[Any]) -> list[Any]:
  """Returns EstimatorSpecs of training as Estimator adds them up."""
  losses = [
      weighted_sum.weighted_sum(
          [run.part_of_batch(tower, batch_loss.unnamed(spec.loss))],
          [run.weights.loss[tower]])
      for tower, spec in enumerate(specs)]
  run.finish_training([spec.loss for spec in specs], tf.add_n(losses),
                      run.weights.rows)
  return [spec._replace(loss=loss, train_op=specs[0].train_op)
          for spec, loss in zip(specs, losses)]
