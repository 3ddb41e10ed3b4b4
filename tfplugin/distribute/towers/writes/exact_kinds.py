# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the sum or mean over towers is what one device computes.

A loss may be a quotient in each tower, and is then the mean of such; a model
normalises within a tower. What a variable is to hold must be the number of one
device. Here each op between the rows and that number is looked at: a variance
is a mean of rows, but its rows hold the mean of the tower, and the mean over
the towers is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_kinds

Kind = loss_kinds.Kind


def first_inexact(tensor: tf.Tensor, kinds: loss_kinds.Kinds,
                  ) -> Optional[tf.Operation]:
  """Returns an op that makes `tensor` a tower's own number, or None.

  Args:
    tensor: A tensor of a tower.
    kinds: The kinds of the tensors of that tower.
  """
  pending, seen = [tensor], set()
  while pending:
    last = pending.pop()
    if last.ref() in seen or kinds.of(last).is_same or (
        kinds.is_known(last)):
      continue
    seen.add(last.ref())
    if not _is_exact(last, kinds):
      return last.op
    # The count of a mean loss is that of all towers.
    counted = _tf_internals.mean_loss_denominator(last.op)
    pending += [part for part in last.op.inputs if part is not counted]
  return None


def _is_exact(tensor: tf.Tensor, kinds: loss_kinds.Kinds) -> bool:
  """Whether the rule that gave the kind of `tensor` holds for all numbers."""
  op, operands = tensor.op, _tf_internals.operands(tensor)
  if _tf_internals.mean_loss_denominator(op) is not None:
    return True
  conditions = [t for t in op.inputs if all(t is not o for o in operands)]
  if any(kinds.of(t).is_number for t in conditions):
    return False
  role = _tf_internals.role(op)
  return _EXACT.get(role, _is_by_row)(op, [kinds.of(t) for t in operands])


def _own(kinds: Sequence[Kind]) -> list[Kind]:
  return [kind for kind in kinds if not kind.is_same]


def _is_by_row(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  """Whether each row of the result is made of one row alone."""
  if _tf_internals.mixes_rows(op) or (
      _tf_internals.takes_from_first_input(op) and not kinds[0].is_same):
    return False
  return all(kind.is_rows and kind.power == 0 for kind in _own(kinds))


def _passes(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  # To integers: a sum of numbers that were cut off.
  return kinds[0].is_rows or kinds[0].is_count or (
      not _tf_internals.cuts_off(op))


def _slices(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  return not kinds[0].is_rows or _tf_internals.keeps_first_dimension(op)


def _adds(unused_op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  # Neither x - mean(x) nor n - 1.
  own = _own(kinds)
  if any(kind.is_rows for kind in own):
    return all(kind.is_rows for kind in own) and len(
        {kind.power for kind in kinds}) == 1
  return any(not kind.is_count for kind in own) or len(
      {kind.power for kind in kinds}) == 1


def _multiplies(unused_op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  own = _own(kinds)
  return not any(kind.is_rows for kind in own) or not any(
      kind.is_number for kind in own)


def _divides(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  number, by = kinds
  if _tf_internals.cuts_off(op):
    return number.is_rows and (by.is_same or by.is_rows)
  return by.is_same or by.is_count or (
      number.is_rows and by.is_rows and by.power == 0)


def _reduces(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  kind, = kinds
  if _tf_internals.role(op) == 'mean' and _tf_internals.cuts_off(op):
    return False
  return not kind.is_rows or op.outputs[0].shape.rank == 0 or (
      kind.first and _tf_internals.reduced_axes(op) is not None)


def _joins(unused_op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  # A constant in the place of a sum is no sum.
  return all(kind.is_rows for kind in _own(kinds)) or len(
      {kind.power for kind in kinds}) == 1


def _is_plain_product(op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  return all(kind.is_rows and kind.power == 0 for kind in _own(kinds)) and (
      kinds[0].is_rows)


def _fills(unused_op: tf.Operation, kinds: Sequence[Kind]) -> bool:
  return kinds[1].is_same


def _always(unused_op: tf.Operation, unused_kinds: Sequence[Kind]) -> bool:
  return True


def _never(unused_op: tf.Operation, unused_kinds: Sequence[Kind]) -> bool:
  return False


_EXACT = {
    'pass': _passes,
    'slice': _slices,
    'move': _always,
    'add': _adds,
    'multiply': _multiplies,
    'divide': _divides,
    'sum': _reduces,
    'mean': _reduces,
    'squares': _is_by_row,
    'sizes': _always,
    'join': _joins,
    'product': _is_plain_product,
    'fill': _fills,
    'call': _never,
    'source': _always,
}
