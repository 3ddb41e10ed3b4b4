# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How a number that is computed from a part of the rows joins the others.

With the rows of a batch in parts, the sum of a loss over the batch is the sum
of the parts' sums, and its mean is the mean of the parts' means, weighted by
their rows. Which of the two a tensor is, the ops tell that made it. A number is
followed through them as a power of the number of rows:

  rows ** 0:  a mean, or the same in all parts
  rows ** 1:  a sum
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals

# What a tensor is made of, from the least to the most.
_SAME, _COUNT, _TOTAL, _MIXED, _OTHER, _ROWS = range(6)


@dataclasses.dataclass(frozen=True)
class Kind:
  """What a tensor of one part is to the batch.

  Attributes:
    level: _SAME: the same in all parts. _COUNT: made of the number of rows
      alone. _TOTAL: a sum or mean over rows. _MIXED: a sum of terms of
      different powers. _OTHER: not known. _ROWS: it has a value for each row.
    power: The power of the number of rows that it grows with.
    first: Of _ROWS: whether they are the first dimension.
  """

  level: int
  power: int = 0
  first: bool = True

  @property
  def is_same(self) -> bool:
    """Whether all parts have the same value."""
    return self.level == _SAME

  @property
  def is_mixed(self) -> bool:
    """Whether terms of different powers are added."""
    return self.level == _MIXED

  @property
  def is_count(self) -> bool:
    """Whether it is made of the number of rows alone."""
    return self.level == _COUNT

  @property
  def is_number(self) -> bool:
    """Whether it is one number made of the rows, of whatever kind."""
    return self.level in (_TOTAL, _MIXED, _OTHER)

  @property
  def is_rows(self) -> bool:
    """Whether there is a value for each row."""
    return self.level == _ROWS

  @property
  def is_total(self) -> bool:
    """Whether it is a sum or mean over rows."""
    return self.level == _TOTAL

  @property
  def is_mean(self) -> bool:
    """Whether the mean over the parts, weighted by rows, is the batch's."""
    return self.level <= _TOTAL and self.power == 0

  @property
  def is_sum(self) -> bool:
    """Whether the sum over the parts is the batch's."""
    return self.level in (_COUNT, _TOTAL) and self.power == 1


SAME = Kind(_SAME)
ROWS = Kind(_ROWS)
COUNT = Kind(_COUNT, 1)
SUM = Kind(_TOTAL, 1)
MEAN = Kind(_TOTAL)
_UNKNOWN = Kind(_OTHER)


class Kinds:
  """Finds the kinds of the tensors of one part of a batch."""

  def __init__(self, known: dict, is_own: Callable[[tf.Operation], bool],
               num_rows: Optional[int] = None):
    """Starts from what is known.

    Args:
      known: From `tensor.ref()` to its kind.
      is_own: Whether an op is made for this part; others are the same for all.
      num_rows: The rows of this part, where they are static.
    """
    self._kinds = dict(known)
    self._given = frozenset(known)
    self._is_own = is_own
    self._num_rows = num_rows

  def is_known(self, tensor: tf.Tensor) -> bool:
    """Whether the kind of `tensor` was given, and not found."""
    return tensor.ref() in self._given

  def of(self, tensor: tf.Tensor) -> Kind:
    """Returns the kind of `tensor`."""
    pending, opened = [tensor], set()
    while pending:
      last = pending[-1]
      if last.ref() in self._kinds:
        pending.pop()
      elif last.ref() in opened or not self._is_own(last.op):
        # A loop leads back to a tensor that is not known yet; it is left out.
        self._kinds[last.ref()] = self._find(last)
        pending.pop()
      else:
        opened.add(last.ref())
        pending += [t for t in last.op.inputs if t.ref() not in opened]
    return self._kinds[tensor.ref()]

  def summed(self, tensor: tf.Tensor) -> Kind:
    """Returns the kind of the sum over all elements of `tensor`."""
    kind = self.of(tensor)
    return Kind(_TOTAL, kind.power + 1) if kind.is_rows else kind

  def _find(self, tensor: tf.Tensor) -> Kind:
    op = tensor.op
    if not self._is_own(op):
      return SAME
    role = _tf_internals.role(op)
    if self._num_rows is not None and _tf_internals.static_size(op):
      return self._of_static_size(_tf_internals.static_size(op))
    if role == 'source' or _tf_internals.static_ones(op) is not None and (
        _tf_internals.static_ones(op) == self._num_rows):
      return ROWS
    if role == 'call':
      return self._of_call(tensor)
    kinds = [self._kinds[t.ref()] for t in _tf_internals.operands(tensor)
             if t.ref() in self._kinds]
    kind = self._of_role(role, op, kinds)
    return _UNKNOWN if kind.is_rows and tensor.shape.rank == 0 else kind

  def _of_role(self, role: str, op: tf.Operation, kinds: list[Kind]) -> Kind:
    if not kinds or all(kind.is_same for kind in kinds):
      return SAME
    if role == 'divide' and len(kinds) == 2:
      return self._divided(op, *kinds)
    return _RULES.get(role, _of_any)(op, kinds)

  def _divided(self, op: tf.Operation, number: Kind, by: Kind) -> Kind:
    if _tf_internals.mean_loss_denominator(op) is not None:
      by = COUNT
    if by.is_same:
      return _UNKNOWN if number.is_sum and self._may_be_count(op) else number
    if by.level == _COUNT:
      return dataclasses.replace(
          number, level=max(number.level, _COUNT),
          power=number.power - by.power)
    if number.is_rows:
      power = 0 if by.is_rows or by.level == _OTHER else (
          1 if by.is_mixed else by.power)
      return dataclasses.replace(number, power=number.power - power)
    # A sum over a sum, a mean over a mean: a part's own mean.
    is_mean = number.level == _TOTAL and (
        number.is_sum or by.level == _TOTAL and by.power == number.power)
    return Kind(_TOTAL) if is_mean else _UNKNOWN

  def _may_be_count(self, op: tf.Operation) -> bool:
    """Whether `op` divides by the number of rows, or of their elements.

    A program that knows its batch writes the same constant for another reason.
    """
    count = tf.get_static_value(op.inputs[1])
    if self._num_rows is None or count is None or count.size != 1:
      return False
    return count >= 1 and count in (self._num_rows, _num_summed(op.inputs[0]))

  def _of_static_size(self, sizes: Sequence[int]) -> Kind:
    rows = self._num_rows
    return COUNT if sizes[0] == rows or (
        len(sizes) == 1 and rows and sizes[0] % rows == 0) else SAME

  def _of_call(self, tensor: tf.Tensor) -> Kind:
    op = tensor.op
    inputs = [self._kinds.get(t.ref(), SAME) for t in op.inputs]
    found = []
    for arguments, results in _tf_internals.bodies(op):
      given = inputs[len(inputs) - len(arguments):]
      given = {a.ref(): kind for a, kind in zip(arguments, given)}
      body = Kinds({**self._kinds, **given}, lambda op: True, self._num_rows)
      found.append(body.of(results[tensor.value_index]))
    return _joined(op, found)


def _num_summed(tensor: tf.Tensor) -> Optional[int]:
  """Returns the number of elements that `tensor` is the sum of."""
  while _tf_internals.role(tensor.op) == 'pass':
    tensor = _tf_internals.operands(tensor)[0]
  if _tf_internals.role(tensor.op) != 'sum':
    return None
  return tensor.op.inputs[0].shape.num_elements()


def _rows_among(kinds: Sequence[Kind]) -> Kind:
  """Returns the kind of values for each row, made of `kinds`."""
  rows = [kind for kind in kinds if kind.is_rows]
  return Kind(_ROWS, min(kind.power for kind in rows),
              all(kind.first for kind in rows))


def _passed(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  return kinds[0]


def _moved(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  return dataclasses.replace(kinds[0], first=False)


def _sizes(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  return Kind(_COUNT, 1, kinds[0].first) if kinds[0].is_rows else SAME


def _filled(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  sizes, value = kinds
  return Kind(_ROWS, 0, sizes.first) if sizes.is_count and value.is_same else (
      _of_any(op, kinds))


def _added(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  level = max(kind.level for kind in kinds)
  if level == _ROWS:
    return _rows_among(kinds)
  if level == _COUNT:
    # A count that is corrected by a constant.
    return Kind(_COUNT, max(kind.power for kind in kinds))
  powers = {kind.power for kind in kinds}
  return Kind(_MIXED) if level == _TOTAL and len(powers) > 1 else Kind(
      level, kinds[0].power if len(powers) == 1 else 0)


def _multiplied(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  if len(kinds) != 2:
    return _of_any(op, kinds)
  one, other = kinds
  if one.is_same or other.is_same:
    return other if one.is_same else one
  level = max(one.level, other.level)
  power = one.power + other.power
  if level == _ROWS:
    return dataclasses.replace(_rows_among([one, other]), power=power)
  if level > _TOTAL or one.level == other.level == _TOTAL:
    return _UNKNOWN
  return Kind(level, power)


def _squared(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  kind, = kinds
  return Kind(_TOTAL, 2 * kind.power + 1) if kind.is_rows else _of_any(
      op, kinds)


def _multiplied_matrices(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  over_rows = _tf_internals.multiplies_rows(op) and all(
      kind.is_rows for kind in kinds)
  return Kind(_TOTAL, 1) if over_rows else _of_any(op, kinds)


def _reduced(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  kind, = kinds
  if not kind.is_rows:
    return kind
  if op.outputs[0].shape.rank != 0:
    axes = _tf_internals.reduced_axes(op)
    if axes is None or not kind.first:
      return dataclasses.replace(kind, first=False)
    if 0 not in axes:
      return kind
  is_sum = _tf_internals.role(op) == 'sum'
  return Kind(_TOTAL, kind.power + is_sum)


def _sliced(op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  """Returns the kind of a slice: of a shape, one size is the rows."""
  kind, = kinds
  index = _tf_internals.index_of_slice(op)
  if kind.level != _COUNT or index is None:
    return kind
  return COUNT if index == (0 if kind.first else 1) else SAME


def _joined(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  """Returns the kind of one of several values; a constant goes with all."""
  different = {kind for kind in kinds if not kind.is_same}
  if any(kind.is_rows for kind in different):
    return _rows_among(list(different))
  return different.pop() if len(different) == 1 else (
      _UNKNOWN if different else SAME)


def _of_any(unused_op: tf.Operation, kinds: Sequence[Kind]) -> Kind:
  if any(kind.is_rows for kind in kinds):
    return dataclasses.replace(_rows_among(kinds), power=0)
  if all(kind.level <= _COUNT for kind in kinds):
    return Kind(_COUNT, max(kind.power for kind in kinds))
  return _UNKNOWN


_RULES = {
    'pass': _passed,
    'slice': _sliced,
    'move': _moved,
    'add': _added,
    'multiply': _multiplied,
    'sum': _reduced,
    'mean': _reduced,
    'squares': _squared,
    'sizes': _sizes,
    'fill': _filled,
    'join': _joined,
    'product': _multiplied_matrices,
}
