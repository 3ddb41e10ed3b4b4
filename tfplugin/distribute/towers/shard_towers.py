# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards of one batch in one graph, each with a separate loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_extended
from tfplugin.distribute.towers import tower_run
from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights
from tfplugin.distribute.variables import variable_arguments
from tfplugin.ops import weighted_sum

_MEAN = tf.distribute.ReduceOp.MEAN


class ShardTowers(tower_strategy.TowerStrategy):
  """Strategy that builds a function once per shard, with shared variables.

  As on TPU, each shard computes a separate loss and its gradients. Decorators
  of a model_fn use this strategy.
  """

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of shards; within a shard 1, as the shard's weight divides."""
    if tower_run.current_tower() is not None:
      return 1
    return super().num_replicas_in_sync

  def _make_extended(self, devices: Sequence[str]):
    return _ShardTowersExtended(self, devices)

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_weights.TowerWeights,
                   batch: Optional[Sequence[Any]] = None,
                   ) -> tuple[tower_run.TowerRun, list[Any]]:
    """Builds `fn` in every tower; call it in the scope of the strategy.

    `fn` gets the index of its tower. `batch` has the tensors of each tower;
    None: not known. Returns the run, and the result of `fn` in each tower.
    """
    return self.extended.build_towers(fn, weights, batch)


class _ShardTowersExtended(tower_extended.TowerExtended):
  """StrategyExtended that builds towers with a `TowerRun`."""

  _run = None

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_weights.TowerWeights,
                   batch: Optional[Sequence[Any]] = None,
                   ) -> tuple[tower_run.TowerRun, list[Any]]:
    """Builds `fn` in every tower; see `ShardTowers.build_towers`."""
    outer = self._run
    run = tower_run.TowerRun(
        self._container_strategy(), weights, outer, batch)
    self._run = run
    try:
      return run, run.build(fn)
    finally:
      self._run = outer

  def _call_for_each_replica(self, fn, args, kwargs):
    # Called in a merge call, e.g. of a branch, for gradients. Without a batch:
    # the arguments are sums of gradients, not rows.
    per_tower = [_tf_internals.select_replica(tower, (args, kwargs))
                 for tower in range(self._num_replicas_in_sync)]

    def call(tower: int):
      tower_args, tower_kwargs = per_tower[tower]
      return fn(*tower_args, **tower_kwargs)

    _, results = self.build_towers(call, self._run.weights)
    return _tf_internals.regroup(tuple(results))

  def _create_var_creator(self, next_creator, **kwargs):
    # A variable to which each shard adds, as to a metric's, is written once.
    aggregation = None if variable_arguments.is_metric(kwargs) else (
        kwargs.get('aggregation'))

    def create(**kwargs):
      return tower_variables.share(
          self._container_strategy(), next_creator(**kwargs), aggregation)
    return create

  def _reduce_to(self, reduce_op, value, destinations, options):
    values = self._local_results(value)
    if self._run is not None and reduce_op == _MEAN and len(values) > 1:
      return weighted_sum.weighted_sum(values, self._run.weights.rows)
    return super()._reduce_to(reduce_op, value, destinations, options)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    return [
        self._run.gradient_to_apply(value)
        if isinstance(destination, tower_variables.TowerVariable)
        else self._reduce_to(reduce_op, value, destination, options)
        for value, destination in value_destination_pairs]
