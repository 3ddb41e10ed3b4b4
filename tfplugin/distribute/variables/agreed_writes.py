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

import tensorflow as tf

from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum

_ADDITIONS = ('assign_add', 'assign_sub', 'scatter_add', 'scatter_sub')


class AgreedWrites:
  """Goes in front of the class of a variable that towers share.

  Attributes:
    has_rule: Whether the variable was made with an `aggregation`.
  """

  has_rule = True

  def assign(self, value, *args, **kwargs):
    """See `tf.Variable.assign`."""
    return super().assign(self.agreed('assign', value), *args, **kwargs)

  def assign_add(self, delta, *args, **kwargs):
    """See `tf.Variable.assign_add`."""
    return super().assign_add(self.agreed('assign_add', delta), *args,
                              **kwargs)

  def assign_sub(self, delta, *args, **kwargs):
    """See `tf.Variable.assign_sub`."""
    return super().assign_sub(self.agreed('assign_sub', delta), *args,
                              **kwargs)

  def agreed(self, method: str, value: Any) -> Any:
    """Returns the one value that the towers write.

    Args:
      method: The name of the method that writes.
      value: The value of this tower.
    """
    context = tf.distribute.get_replica_context()
    agree = getattr(context, 'value_of_all', None)
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
  dtype = tf.as_dtype(getattr(values[0], 'dtype', variable.dtype))
  if method not in _ADDITIONS or not dtype.is_floating:
    raise ValueError(
        f'`{method}` of a variable that shards have in common needs the same '
        f'value in all of them. Received: `{variable.name}` of '
        f'{dtype.name}, made without an `aggregation`, and values '
        'that are the shards\' own. Make the variable with '
        '`aggregation=tf.VariableAggregation.MEAN`, `SUM` or '
        '`ONLY_FIRST_REPLICA`; accumulate gradients with `assign_add`.')
  return weighted_sum.weighted_sum(
      [values[i] for i in group], [1.0 / len(group)] * len(group))
