# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of towers that are shards: one variable, a value from each of them.

On a TPU each shard has a copy of every variable: a sum over steps that a shard
makes of its gradients (gradient accumulation) is its own, and the sums of all
shards are added up when they are applied. Towers have one variable for all. It
holds the mean of what the copies would hold:

  sum{shards} copy[shard]  =  sum{shards} mean{shards} copy[shard]

so that every sum over the shards later is the same. A value that replaces the
old one cannot be told from a statistic, and must be the same in all shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum

_FIRST = tf.compat.v1.VariableAggregation.ONLY_FIRST_REPLICA
_ADDITIONS = ('assign_add', 'assign_sub', 'scatter_add', 'scatter_sub')


def _scatter(method: str) -> Callable:
  """Makes a method that writes rows once for all towers."""

  def scatter(self, sparse_delta, use_locking=False, name=None):
    context = tf.distribute.get_replica_context()
    if not hasattr(context, 'value_of_shards'):
      return getattr(super(AgreedWrites, self), method)(
          sparse_delta, use_locking, name)

    def write(strategy, slices):
      rows = _aggregated(self, method, strategy, slices)
      return strategy.extended.update(
          self, lambda variable, rows: getattr(variable, method)(
              rows, use_locking, name), args=(rows,))

    return context.merge_call(write, args=(self._agreed(method, sparse_delta),))

  return scatter


def _refuse_in_shards(method: str) -> Callable:

  def refuse(self, *args, **kwargs):
    context = tf.distribute.get_replica_context()
    if getattr(context, 'gradients_are_summed', True):
      return getattr(self.get(), method)(*args, **kwargs)
    raise NotImplementedError(
        f'`{method}` of a variable that shards have in common cannot be done '
        f'once for all of them. Received: `{self.name}`. Use `scatter_add` or '
        '`assign`.')

  return refuse


def _aggregated(variable: tf.Variable, method: str, strategy, slices: Any):
  """Returns the rows of all towers by the variable's aggregation."""
  first, *others = strategy.experimental_local_results(slices)
  if not others or variable.aggregation == _FIRST:
    return first
  if method not in _ADDITIONS:
    raise NotImplementedError(
        f'`{method}` of rows has no mean or sum over towers. Received: '
        f'`{variable.name}`, made with {variable.aggregation}. Make it with '
        '`aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA`.')
  return strategy.extended.reduce_to(
      tf.distribute.ReduceOp.from_variable_aggregation(variable.aggregation),
      slices, variable)


class AgreedWrites:
  """Goes in front of the class of a variable that towers share.

  Attributes:
    has_rule: Whether the variable was made with an `aggregation`.
  """

  has_rule = True

  def assign(self, value, *args, **kwargs):
    """See `tf.Variable.assign`."""
    return super().assign(self._agreed('assign', value), *args, **kwargs)

  def assign_add(self, delta, *args, **kwargs):
    """See `tf.Variable.assign_add`."""
    return super().assign_add(self._agreed('assign_add', delta), *args,
                              **kwargs)

  def assign_sub(self, delta, *args, **kwargs):
    """See `tf.Variable.assign_sub`."""
    return super().assign_sub(self._agreed('assign_sub', delta), *args,
                              **kwargs)

  scatter_add = _scatter('scatter_add')
  scatter_sub = _scatter('scatter_sub')
  scatter_update = _scatter('scatter_update')
  scatter_max = _scatter('scatter_max')
  scatter_min = _scatter('scatter_min')
  scatter_mul = _scatter('scatter_mul')
  scatter_div = _scatter('scatter_div')
  scatter_nd_add = _refuse_in_shards('scatter_nd_add')
  scatter_nd_sub = _refuse_in_shards('scatter_nd_sub')
  scatter_nd_update = _refuse_in_shards('scatter_nd_update')
  batch_scatter_update = _refuse_in_shards('batch_scatter_update')

  def _agreed(self, method: str, value: Any) -> Any:
    """Returns the value that the towers write, if they are shards."""
    context = tf.distribute.get_replica_context()
    agree = getattr(context, 'value_of_shards', None)
    if self.has_rule or agree is None:
      return value
    return agree(self, method, value)


def one_value(variable: tf.Variable, method: str, values: Sequence[Any],
              group: Sequence[int]) -> Any:
  """Returns the value to write for all shards.

  Args:
    variable: A variable that was made without an `aggregation`.
    method: The method that writes.
    values: The value of each shard.
    group: The shards that reduce together with the first one.

  Raises:
    ValueError: The values differ, and have no mean that is right.
  """
  if same_values.are_same(values):
    return values[0]
  if method not in _ADDITIONS or not variable.dtype.is_floating:
    raise ValueError(
        f'`{method}` of a variable that shards have in common needs the same '
        f'value in all of them. Received: `{variable.name}` of '
        f'{variable.dtype.name}, made without an `aggregation`, and values '
        'that are the shards\' own. Make the variable with '
        '`aggregation=tf.VariableAggregation.MEAN`, `SUM` or '
        '`ONLY_FIRST_REPLICA`; accumulate gradients with `assign_add`.')
  return weighted_sum.weighted_sum(
      [values[i] for i in group], [1.0 / len(group)] * len(group))
