# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of values that replicas compute by separate ops.

A write to a shared variable that all replicas make happens once. If each of
them computes the value by the same ops from the same variables and constants,
each value is right. If the values depend on their rows of the batch, none is
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals

# Attribute of a handle: the `Copies` that the variable belongs to.
_MARK = 'tfplugin_copies'


class Copies:
  """The copies of a variable, one for each replica, and whether they agree.

  They agree until replicas write different values to them.
  """

  def __init__(self, handles: Sequence[tf.Tensor]):
    """Marks the handles of the copies, which hold one value so far."""
    self._writes = [[] for _ in handles]
    self._is_known = True
    for handle in handles:
      setattr(handle, _MARK, self)

  def note(self, replica: int, value: Any) -> None:
    """Notes the value that a replica of this process writes to its copy."""
    if tf.executing_eagerly():
      self._is_known = False
    else:
      self._writes[replica].append(value)

  def agree(self) -> bool:
    """Returns whether replicas wrote the same values so far."""
    if self._is_known and any(self._writes):
      writes = [list(values) for values in self._writes]
      # A value may be made from the earlier value of the variable itself.
      for values in self._writes:
        values.clear()
      self._is_known = are_same(writes)
    return self._is_known


def declare(values: Sequence[Any]) -> None:
  """Declares that the values of several replicas are the same."""
  for parts in zip(*(tf.nest.flatten(value, expand_composites=True)
                     for value in values)):
    Copies(parts)


def stand_for(tensor: tf.Tensor, common: tf.Tensor) -> None:
  """Declares that a replica's `tensor` equals `common`, which all share."""
  setattr(tensor, _MARK, getattr(common, _MARK, None) or Copies([common]))


def is_declared(tensor: tf.Tensor) -> bool:
  """Returns whether `tensor` is declared to be the same in all replicas."""
  return hasattr(tensor, _MARK)


def are_same(values: Sequence[Any]) -> bool:
  """Returns whether the values of several replicas are equal for every input.

  Tensors are compared by the ops that make them. These need the same types,
  attributes and inputs, down to constants, shared variables and shared ops.
  Random numbers are never the same. The result is False where it cannot be
  known. `values` has one nest of tensors, numbers and variables for each
  replica.
  """
  first, *others = [tf.nest.flatten(value, expand_composites=True)
                    for value in values]
  return all(
      len(first) == len(other) and all(map(_is_same, first, other))
      for other in others)


def _is_same(a: Any, b: Any) -> bool:
  if a is b:
    return True
  if isinstance(a, tf.Operation) and hasattr(a, _MARK):
    return getattr(a, _MARK) is getattr(b, _MARK, None)
  if tf.is_tensor(a) and tf.is_tensor(b):
    return _computes_same(tf.convert_to_tensor(a), tf.convert_to_tensor(b))
  return isinstance(a, (int, float, str)) and a == b


def _computes_same(a: tf.Tensor, b: tf.Tensor) -> bool:
  """Returns whether two tensors have equal ops, upstream ops included."""
  pending, seen = [(a, b)], set()
  while pending:
    a, b = map(_tf_internals.outside_of_functions, pending.pop())
    copies = getattr(a, _MARK, None)
    if a is b or (id(a), id(b)) in seen:
      continue
    seen.add((id(a), id(b)))
    if copies is not None and copies is getattr(b, _MARK, None):
      if not copies.agree():
        return False
    elif not _is_same_output(a, b):
      return False
    elif a.op is not b.op:
      pending += zip(a.op.inputs, b.op.inputs)
  return True


def _is_same_output(a: tf.Tensor, b: tf.Tensor) -> bool:
  """Returns whether two tensors are the same if the inputs of their ops are."""
  if hasattr(a, 'numpy') or hasattr(b, 'numpy'):
    return False
  return a.value_index == b.value_index and (
      a.op is b.op or _tf_internals.is_same_computation(a.op, b.op))
