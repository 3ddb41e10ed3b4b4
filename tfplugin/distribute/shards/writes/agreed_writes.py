# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of shards: one variable, a value from each shard.

On a TPU each shard has a copy of every variable. With gradient accumulation, a
shard sums its own gradients over steps, and the sums of all shards are added
when they are applied. One variable for all shards holds the mean of the values
that the copies would have:

  sum{shards} copy[shard]  =  sum{shards} mean{shards} copy[shard]

So every later sum over the shards is the same. A value that replaces the old
one cannot be distinguished from a statistic, and must be the same in all
shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Optional

import numpy as np
import tensorflow as tf

from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum

ADDITIONS = ('assign_add', 'assign_sub', 'scatter_add', 'scatter_sub')


def one_value(variable: tf.Variable, method: str, values: Sequence[Any],
              group: Sequence[int]) -> Any:
  """Returns the value to write for all shards, from the value of each shard.

  `variable` has no `aggregation`. `group` has the shards that reduce together
  with the first one. Raises ValueError if the values differ and their mean
  would be wrong.
  """
  if same_values.are_same(values):
    return values[0]
  dtype = tf.as_dtype(getattr(values[0], 'dtype', variable.dtype))
  if method not in ADDITIONS or not dtype.is_floating:
    check_same(variable, method, values)
  return weighted_sum.weighted_sum(
      [values[i] for i in group], [1.0 / len(group)] * len(group))


def check_same(variable: tf.Variable, method: str,
               values: Sequence[Any]) -> None:
  """Raises ValueError unless all shards write the same.

  `variable` was made without an `aggregation`. `values` has the value of each
  shard.
  """
  if not same_values.are_same(values):
    dtype = tf.as_dtype(getattr(values[0], 'dtype', variable.dtype))
    raise unknown(variable, method, f'values of {dtype.name} that differ '
                  'between shards')


def check_no_count(variable: tf.Variable, method: str, value: Any,
                   num_rows: Optional[int]) -> None:
  """Raises ValueError if a constant may be the number of rows of each shard.

  `num_rows` is that number, where it is static.
  """
  number = tf.get_static_value(value) if tf.is_tensor(value) else value
  if num_rows and np.size(number) == 1 and not isinstance(
      number, (tf.IndexedSlices, tf.Variable)) and number is not None and (
          np.ravel(number)[0] == num_rows):
    raise unknown(
        variable, method, f'the constant {num_rows}, which is the number of '
        'rows of each shard, too', 'Count rows by `tf.shape(x)[0]`.')


def unknown(variable: tf.Variable, method: str, what: Any,
            remedy: str = '') -> ValueError:
  """Returns the error for a value that shards do not have in common.

  `what` describes the value. Without a `remedy`, the error explains how to make
  the value common.
  """
  return ValueError(
      f'`{method}` in several shards must write a value that all shards have '
      'in common, gradients, or a number computed from the rows by ops that '
      f'can be recomputed for all rows. Received: {what}, for '
      f'`{variable.name}`, made without an `aggregation`. ' + (
          remedy or 'Make it the same in all shards before it is written: '
          '`tfplugin.cross_replica_sum(s)` is the sum over all rows of a sum '
          '`s` over the rows of a shard, and a mean is such a sum divided by '
          '`tfplugin.cross_replica_sum(tf.cast(tf.shape(x)[0], s.dtype))`.'))
