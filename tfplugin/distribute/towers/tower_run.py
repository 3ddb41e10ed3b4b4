# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run of one function in every tower: waiting for each other, and sharing."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_denominators
from tfplugin.distribute.towers import op_record
from tfplugin.distribute.towers import tower_collections
from tfplugin.distribute.towers import tower_context
from tfplugin.distribute.towers import tower_gradients
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights
from tfplugin.distribute.towers.splitting import batch_values
from tfplugin.distribute.towers.writes import plain_writes
from tfplugin.distribute.variables import agreed_writes
from tfplugin.distribute.variables import branch_calls
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

# Used together with a run.
TowerContext = tower_context.TowerContext
current_tower = tower_context.current_tower


def _is_in_tower() -> bool:
  return current_tower() is not None


class TowerRun:
  """Run that builds one function once per tower into one graph.

  Attributes:
    variables: The `SharedVariables`.
    summed: The sums of gradients of this run, and of runs inside it.
    gradients: The gradients that towers took.
    branches: The `Branches` in which towers make calls.
  """

  def __init__(self, strategy, weights: tower_weights.TowerWeights,
               outer: Optional[TowerRun] = None,
               batch: Optional[Sequence[Any]] = None):
    """Prepares a run.

    `outer` is the run whose gradients this one applies, or None. `batch` has
    the tensors of each tower, which show the differences between towers; None:
    not known.
    """
    self.weights = weights
    self.variables = tower_variables.SharedVariables()
    self._strategy = strategy
    self.num_towers = strategy.num_replicas_in_sync
    self._graph = tf1.get_default_graph()
    self._branch = _tf_internals.branch_or_loop()
    self.branches = branch_calls.Branches()
    self._collections = tower_collections.TowerCollections(
        self._graph, self.num_towers)
    self.summed = (outer.summed if outer is not None else
                   tower_gradients.NotedGradients())
    self.gradients = tower_gradients.NotedGradients()
    self._waits = ['its start'] * self.num_towers
    self._results = [None] * self.num_towers
    # Absolute: a tower's ops are named the same wherever the run is made.
    outer = self._graph.get_name_scope()
    self._outer = outer + '/' if outer else ''
    self._devices = _tf_internals.device_functions()
    self._ops = op_record.OpRecord(self._graph, self.num_towers)
    self._batch = batch and batch_values.BatchValues(
        self._graph, batch, 0, functools.partial(self._ops.is_own, 0))
    groups = weights.groups or [range(self.num_towers)]
    self._group = next(group for group in groups if 0 in group)
    self._rows_of_group = batch and batch_values.rows_of(
        self._ops, batch, self._group)

  def build(self, fn: Callable[[int], Any]) -> list[Any]:
    """Returns `[fn(0), fn(1), ...]`, each built in its tower."""
    scope = tf1.get_variable_scope()
    try:
      # The weight of a tower makes the mean already.
      with _tf_internals.keras_means_of_losses(_is_in_tower), (
          _tf_internals.summaries_of_all(_is_in_tower)), (
          _tf_internals.gradients_noted(
              _is_in_tower, self.gradients.add)), (
                  tower_collections.scopes_of_one_device(
                      self._graph, self._name_on_one_device)):
        _tf_internals.call_for_each_replica(
            self._strategy, tf.autograph.experimental.do_not_convert(
                lambda tower: self._in_tower(tower, fn, scope)),
            args=(_tf_internals.regroup(tuple(range(self.num_towers))),))
      self.variables.check_all_taken()
      self.branches.check_conditions()
    except RuntimeError as error:
      if _tf_internals.is_disagreement(error):
        raise RuntimeError(self._disagreement()) from error
      raise
    finally:
      self._collections.join()
    self._check_updates()
    if self._batch and self.num_towers > 1:
      self._report_all_rows()
    for group in self.weights.groups or [range(self.num_towers)]:
      loss_denominators.share([self.ops_of(tower) for tower in group],
                              [self.weights.loss[tower] for tower in group])
    return self._results

  def _check_updates(self) -> None:
    """Aggregates the towers' plain writes; raises if that is impossible."""
    if self.num_towers > 1:
      self._ops.check_no_accumulators()
      self._ops.check_no_stores()
      plain_writes.PlainWrites(self._ops, self._one_of, getattr(
          self._results[0], 'train_op', None) is not None).settle()

  def _report_all_rows(self) -> None:
    """Replaces numbers that the first tower reports by numbers of all rows."""
    left, loss = [], getattr(self._results[0], 'loss', None)
    for op in self._ops.built_in(0):
      value = _tf_internals.reported_value(op)
      if value is None or op.outputs[0] is loss or (
          _tf_internals.is_in_branch_or_loop(op) or self.gradients.made(value)
          or not self._batch.is_of_rows(value)):
        continue
      try:
        _tf_internals.redirect_input(
            op, list(op.inputs).index(value), self._batch.of_all(
                value, self._rows_of_group, len(self._group)))
      except batch_values.UnknownValueError:
        left.append(op.name)
    if left:
      logging.warning(
          'Summaries and names of numbers that cannot be made again for the '
          'rows of all shards are those of the first of %s: %s.',
          self.num_towers, ', '.join(left))

  def ops_of(self, tower: int) -> list[tf.Operation]:
    """Returns the ops that were built in `tower`."""
    return self._ops.ops_of(tower)

  def name_scope(self, tower: int) -> str:
    """Returns the name scope of `tower`; the first one adds none."""
    return f'{self._outer}tower_{tower}/' if tower else self._outer

  def _name_on_one_device(self, name: str) -> str:
    tower = current_tower()
    own = '' if tower is None else self.name_scope(tower.tower)
    return self._outer + name[len(own):] if own and name.startswith(own) else (
        name)

  def add_up(self, strategy, *values: Any) -> list[Any]:
    """Returns the sum over the towers of each of `values`."""
    return [weighted_sum.weighted_sum(
        self._per_tower(strategy, value), [1.0] * self.num_towers)
            for value in values]

  def _per_tower(self, strategy, value: Any) -> Sequence[Any]:
    """Returns the value of each tower; towers may share a single one."""
    values = strategy.experimental_local_results(value)
    return values * self.num_towers if len(values) == 1 else values

  def sum_unweighted(self, strategy, gradient, towers: Sequence[int]):
    """Returns the sum of `gradient` in `towers`, without their weights."""
    values = self._per_tower(strategy, gradient)
    total = weighted_sum.weighted_sum(
        [values[tower] for tower in towers], [1.0] * len(towers))
    self.summed.add(total)
    return total

  def one_value(self, variable: tf.Variable, method: str, strategy, value):
    """Returns the batch value of a write of each tower."""
    return self._one_of(variable, method, self._per_tower(strategy, value))

  def _one_of(self, variable, method: str, values: Sequence[Any]) -> Any:
    first = values[0]
    if self._batch and not any(map(self.gradients.made, values)):
      if self._batch.is_of_rows(first):
        try:
          return self._batch.of_all(
              first, self._rows_of_group, len(self._group))
        except batch_values.UnknownValueError as error:
          raise agreed_writes.unknown(variable, method, error) from error
      agreed_writes.check_no_count(
          variable, method, first, self._batch.num_rows)
    if self.num_towers > 1:
      self._ops.check_no_accumulators()
    return agreed_writes.one_value(variable, method, values, self._group)

  def gradient_to_apply(self, gradient):
    """Returns the gradient of all towers, which an optimizer applies."""
    values = self._strategy.experimental_local_results(gradient)
    if len(values) == 1 or self.summed.made(values[0]):
      return values[0]
    return weighted_sum.weighted_sum(values, self.weights.loss)

  def check_can_wait(self, label: str) -> None:
    """Raises where no tower can wait for the others."""
    if (tf1.get_default_graph() is not self._graph or
        _tf_internals.branch_or_loop() is not self._branch):
      raise RuntimeError(
          'What towers wait for each other in must be outside of `tf.cond`, '
          f'`tf.while_loop` and `tf.function`. Received: {label} inside one of '
          'these. Make the call in every step, and let branches choose the '
          'values that it is given.')

  def pause(self, tower: int, label: str) -> None:
    """Notes that `tower` waits for the others in `label`."""
    self._ops.end(tower)
    self._collections.keep(tower)
    self._waits[tower] = label

  def resume(self, tower: int) -> None:
    """Notes that `tower` continues."""
    self._ops.begin(tower)
    self._collections.show(tower)

  def merged(self, fn: Callable) -> Callable:
    """Returns `fn` as it runs once, for all waiting towers."""
    def run(strategy, calls):
      calls = strategy.experimental_local_results(calls)
      if len({call.label for call in calls}) > 1:
        raise RuntimeError(self._disagreement())
      self._collections.show(0)
      with self._ops.passing(calls[0].place.graph):
        result = self.branches.run(fn, strategy, calls)
      self._collections.keep(0)
      return result
    return run

  def _in_tower(self, tower: int, fn: Callable[[int], Any], scope) -> None:
    if tower:
      _tf_internals.restart_layer_names()
    self.resume(tower)
    device = self._strategy.extended.worker_devices[tower]
    with tower_context.on_device(self._devices, device), \
        TowerContext(self._strategy, tower, self), \
        tf1.variable_scope(scope, auxiliary_name_scope=False), \
        tf.name_scope(self.name_scope(tower)), \
        tf.variable_creator_scope(self._creator(tower)):
      self._results[tower] = fn(tower)
    self.pause(tower, 'its end')

  def _creator(self, tower: int) -> Callable:
    create = self.variables.creator(tower)

    def create_for_all(next_creator, **kwargs):
      with self._ops.pausing(tower):
        return create(next_creator, **kwargs)

    return create_for_all

  def _disagreement(self) -> str:
    states = '; '.join(f'tower {tower} is at {label}'
                       for tower, label in enumerate(self._waits))
    return ('Towers must compute gradients, apply optimizers and update '
            'variables in the same order. Received: a model_fn of which '
            f'{states}. Make the same calls whatever the tower.')
