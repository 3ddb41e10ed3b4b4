# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process as one: towers in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import tower_devices
from tfplugin.distribute import tower_run
from tfplugin.distribute import tower_variables
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

_MEAN = tf.distribute.ReduceOp.MEAN
_PARAMETER_DEVICE = '/device:CPU:0'


class TowerStrategy(tf1.distribute.Strategy):
  """Towers in one graph that give the numbers of one device."""

  def __init__(self, devices: Optional[Sequence[str]] = None,
               loss_reduction: str = (
                   tf1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS)):
    """See the class."""
    self.loss_reduction = loss_reduction
    super().__init__(TowerExtended(self, tower_devices.check_devices(devices)))

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_run.TowerWeights,
                   sum_gradients: bool) -> tower_run.TowerRun:
    """Builds."""
    return self.extended.build_towers(fn, weights, sum_gradients)


class TowerExtended(_tf_internals.ParameterServerStrategyExtended):
  """One copy of each variable, updated once with the sum over the towers."""

  def __init__(self, strategy: TowerStrategy, devices: Sequence[str]):
    self._run = None
    super().__init__(strategy, compute_devices=devices)
    # As given, with no job: a tower of a cluster runs in the session's task.
    self._compute_devices = list(devices)
    self._variable_device = (
        devices[0] if len(devices) == 1 else _PARAMETER_DEVICE)
    self._parameter_devices = (self._variable_device,)

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_run.TowerWeights, sum_gradients: bool):
    """Builds."""
    run = tower_run.TowerRun(self._container_strategy(), weights, sum_gradients)
    self._run = run
    try:
      return run, run.build(fn)
    finally:
      self._run = None

  def _create_var_creator(self, next_creator, **kwargs):
    if self._run is None:
      return super()._create_var_creator(next_creator, **kwargs)
    if tower_variables.is_streaming(**kwargs):
      return next_creator
    aggregation = kwargs.get('aggregation')

    def create(**kwargs):
      return tower_variables.share(
          self._container_strategy(), next_creator(**kwargs), aggregation)
    return create

  def _reduce_to(self, reduce_op, value, destinations, options):
    if self._run is not None and reduce_op == _MEAN:
      values = self._local_results(value)
      if len(values) > 1:
        return weighted_sum.weighted_sum(values, self._run.weights.rows)
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
    if isinstance(var, tf1.Variable) and not hasattr(var, 'handle'):
      # A ref variable, such as the global step that Estimator makes under v1
      # behaviour before the scope is entered.
      with _tf_internals.colocate_with(var):
        result = fn(var, *args, **kwargs)
      return result if group else tf.nest.map_structure(
          self._local_results, result)
    return super()._update(var, fn, args, kwargs, group)
