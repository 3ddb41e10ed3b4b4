# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one value that a variable takes, where each tower has its own.

One device computes it from all rows. The towers' values are added up, averaged
by their rows, or put together; where none of these is the value of one device,
the write is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin.distribute.towers import batch_loss
from tfplugin.distribute.towers import part_kinds
from tfplugin.distribute.towers.writes import exact_kinds
from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum

_Shares = Sequence[weighted_sum.Weight]


def one_value(variable: tf.Variable, method: str, values: Sequence[Any],
              parts: Sequence[part_kinds.PartKinds], shares: _Shares) -> Any:
  """Returns the value that is written once for all towers.

  Args:
    variable: A variable that was made without an `aggregation`.
    method: The method that writes.
    values: The value of each tower.
    parts: The kinds of the tensors of each tower.
    shares: Each tower's share of the rows.

  Raises:
    ValueError: One device may write another value than all that can be made.
  """
  if _is_same(values[0], parts[0]):
    constants = check_constants(variable, method, values, parts)
    if len(set(constants)) > 1:
      return sum(constants)
    if same_values.are_same(values):
      return values[0]
  value = (_slices_of_all(values, parts, shares)
           if isinstance(values[0], tf.IndexedSlices) else
           of_all(list(map(tf.convert_to_tensor, values)), parts, shares))
  if value is None:
    raise unknown(variable, method, values[0], parts[0])
  return value


def check_constants(variable: tf.Variable, method: str, values: Sequence[Any],
                    parts: Sequence[part_kinds.PartKinds]) -> list:
  """Returns the numbers that `values` are in every step; None: another.

  A static number of rows is a constant like any other.

  Args:
    variable: The variable that they are for.
    method: The method that writes.
    values: The value of each tower.
    parts: The kinds of the tensors of each tower.

  Raises:
    ValueError: They are different, and no numbers of rows; or they may be such
      numbers.
  """
  constants = [_static(value) for value in values]
  rows = [part.num_rows for part in parts]
  if len(set(constants)) > 1 and constants != rows:
    raise _unknown(variable, method, f'the constants {constants}',
                   'Make the same graph whatever the tower.')
  if constants == rows and len(set(rows)) == 1 and rows[0]:
    raise _unknown(
        variable, method, f'the constant {rows[0]}, which is the number of '
        'rows of each tower, too', 'Count rows by `tf.shape(x)[0]`.')
  return constants


def of_all(values: Sequence[tf.Tensor],
           parts: Sequence[part_kinds.PartKinds], shares: _Shares,
           ) -> Optional[tf.Tensor]:
  """Returns what one device computes for `values`; None: it is not known.

  Args:
    values: The tensor of each tower.
    parts: The kinds of the tensors of each tower.
    shares: Each tower's share of the rows.
  """
  kinds = parts[0].now(values[0].graph)
  kind = kinds.of(values[0])
  if kind.is_same:
    return None if parts[0].may_have_rows(values[0]) else values[0]
  if exact_kinds.first_inexact(values[0], kinds) is not None:
    return None
  if kind.is_rows:
    return tf.concat(values, 0) if kind.first and kind.power == 0 else None
  if kind.is_mean:
    return weighted_sum.weighted_sum(values, shares)
  if kind.is_sum:
    return tf.add_n(list(values))
  return _with_sums(values, parts, shares) if kind.is_mixed else None


def _with_sums(values: Sequence[tf.Tensor],
               parts: Sequence[part_kinds.PartKinds], shares: _Shares,
               ) -> Optional[tf.Tensor]:
  """Returns the sums over rows in `values`, and the mean of what is left."""
  if values[0].shape.rank != 0:
    return None
  sums = []
  for value, part in zip(values, parts):
    try:
      terms = batch_loss.sums(value, part.now(value.graph))
    except ValueError:
      return None
    sums.append(tf.add_n([
        tf.reduce_sum(term) * tf.cast(factor, value.dtype)
        for term, factor in terms]))
  rests = [value - total for value, total in zip(values, sums)]
  # Integers are never means.
  rest = (weighted_sum.weighted_sum(rests, shares)
          if values[0].dtype.is_floating else rests[0])
  return rest + tf.add_n(sums)


def _slices_of_all(values: Sequence[tf.IndexedSlices],
                   parts: Sequence[part_kinds.PartKinds], shares: _Shares,
                   ) -> Optional[tf.IndexedSlices]:
  """Returns the slices of all rows, one after the other."""
  kinds = parts[0].now(values[0].values.graph)
  of_values, of_indices = map(
      kinds.of, (values[0].values, values[0].indices))
  if not (of_indices.is_rows and of_indices.first) or any(
      exact_kinds.first_inexact(part, kinds) is not None
      for part in (values[0].values, values[0].indices)):
    return None
  if of_values.is_same or of_values.is_rows and of_values.power == 0:
    return weighted_sum.weighted_sum(values, [1.0] * len(values))
  if of_values.is_rows and of_values.power == -1:
    return weighted_sum.weighted_sum(values, shares)
  return None


def _is_same(value: Any, part: part_kinds.PartKinds) -> bool:
  """Whether `value` is not made of the rows of its tower."""
  return all(part.of(tensor).is_same for tensor in tf.nest.flatten(
      value, expand_composites=True) if tf.is_symbolic_tensor(tensor))


def _static(value: Any) -> Any:
  """Returns the number that `value` is in every step, or None."""
  if isinstance(value, tf.IndexedSlices):
    return None
  number = tf.get_static_value(value) if tf.is_tensor(value) else value
  return number.item() if getattr(number, 'size', 0) == 1 and hasattr(
      number, 'item') else number if isinstance(number, (int, float)) else None


def unknown(variable: tf.Variable, method: str, value: Any,
            part: part_kinds.PartKinds) -> ValueError:
  """Returns the error for a value that cannot be made one.

  Args:
    variable: The variable that it is for.
    method: The method that writes.
    value: The value of the first tower.
    part: The kinds of its tensors.
  """
  tensor = tf.convert_to_tensor(
      value.values if isinstance(value, tf.IndexedSlices) else value)
  op = exact_kinds.first_inexact(tensor, part.now(tensor.graph))
  return _unknown(variable, method, f'`{tensor.name}`' + (
      f", each tower's own by {op.type} ({op.name})" if op else ''), '')


def _unknown(variable: tf.Variable, method: str, what: str,
             remedy: str) -> ValueError:
  return ValueError(
      f'`{method}` in several towers, or shards, must write what all of them '
      'have in common, or a sum or a mean over the rows of the batch. '
      f'Received: {what}, for `{variable.name}`, made without an '
      f'`aggregation`. {remedy}{" " if remedy else ""}Make the variable with '
      '`aggregation='
      'tf.VariableAggregation.MEAN` for the mean of the towers, weighted by '
      'their rows, `SUM`, or `ONLY_FIRST_REPLICA`; put one that towers may '
      'update one after the other, as a metric, into the collection '
      'METRIC_VARIABLES.')
