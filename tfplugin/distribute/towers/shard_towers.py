# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards of one batch in one graph, each with a loss of its own."""

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
  """Builds a function once for each shard; all share one copy of a variable.

  As on TPU each shard computes its own loss and gradients. Decorators of a
  model_fn are made of it.
  """

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of shards; inside of one, 1: the weight of a shard divides."""
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

    Args:
      fn: Called with the index of the tower, in that tower.
      weights: How much each tower counts.
      batch: For each tower the tensors that it is given; None: not known.

    Returns:
      The run, and the result of `fn` in each tower.
    """
    return self.extended.build_towers(fn, weights, batch)


class _ShardTowersExtended(tower_extended.TowerExtended):
  """Builds towers with a `TowerRun`."""

  _run = None

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_weights.TowerWeights,
                   batch: Optional[Sequence[Any]] = None,
                   ) -> tuple[tower_run.TowerRun, list[Any]]:
    """See `ShardTowers.build_towers`."""
    outer = self._run
    run = tower_run.TowerRun(
        self._container_strategy(), weights, outer, batch)
    self._run = run
    try:
      return run, run.build(fn)
    finally:
      self._run = outer

  def _call_for_each_replica(self, fn, args, kwargs):
    # Within a merge call, inside of a branch, say. Of gradients: their sums,
    # which are handed in, are no rows.
    per_tower = [_tf_internals.select_replica(tower, (args, kwargs))
                 for tower in range(self._num_replicas_in_sync)]

    def call(tower: int):
      tower_args, tower_kwargs = per_tower[tower]
      return fn(*tower_args, **tower_kwargs)

    _, results = self.build_towers(call, self._run.weights)
    return _tf_internals.regroup(tuple(results))

  def _create_var_creator(self, next_creator, **kwargs):
    # What each shard adds to, as to a metric, is written once.
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
