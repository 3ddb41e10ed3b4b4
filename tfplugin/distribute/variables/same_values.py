# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether replicas, each with ops of its own, compute one value.

A write to a shared variable that all replicas make happens once. Where each of
them computed the value by the same ops from the same variables and constants,
any one will do; where their rows of the batch are in it, none will.
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

  They do until replicas write values to them that are not the same.
  """

  def __init__(self, handles: Sequence[tf.Tensor]):
    """Takes the handles of the copies, which hold one value so far."""
    self._writes = [[] for _ in handles]
    self._is_known = True
    for handle in handles:
      setattr(handle, _MARK, self)

  def note(self, replica: int, value: Any) -> None:
    """Notes that a replica writes to its copy.

    Args:
      replica: The number of the replica in this process.
      value: What it writes.
    """
    if tf.executing_eagerly():
      self._is_known = False
    else:
      self._writes[replica].append(value)

  def agree(self) -> bool:
    """Whether replicas wrote the same so far."""
    if self._is_known and any(self._writes):
      writes = [list(values) for values in self._writes]
      # A value may be made from the variable itself, as it was before.
      for values in self._writes:
        values.clear()
      self._is_known = are_same(writes)
    return self._is_known


def declare(values: Sequence[Any]) -> None:
  """Declares that the values of several replicas are the same.

  Args:
    values: A tensor, `tf.IndexedSlices` or op of each replica.
  """
  for parts in zip(*(tf.nest.flatten(value, expand_composites=True)
                     for value in values)):
    Copies(parts)


def stand_for(tensor: tf.Tensor, common: tf.Tensor) -> None:
  """Declares that `tensor` is `common`, which replicas have in common.

  Args:
    tensor: What one replica uses for it.
    common: One tensor, or a declared tensor of the same replica.
  """
  setattr(tensor, _MARK, getattr(common, _MARK, None) or Copies([common]))


def is_declared(tensor: tf.Tensor) -> bool:
  """Whether `tensor` is declared to be the same in all replicas.

  Args:
    tensor: A tensor of one of them.
  """
  return hasattr(tensor, _MARK)


def are_same(values: Sequence[Any]) -> bool:
  """Whether the values of several replicas are equal whatever their input.

  Tensors are compared by the ops that make them: same types, attributes and
  inputs, down to constants, variables that replicas share, and ops that they
  share. Random numbers are never the same. False where it cannot be known.

  Args:
    values: One nest of tensors, numbers and variables for each replica.

  Example:
    >>> with tf.Graph().as_default():
    ...   v = tf.compat.v1.get_variable('v', initializer=1.0)
    ...   x = [tf.compat.v1.placeholder(tf.float32) for _ in range(2)]
    ...   print(are_same([v + 1.0, v + 1.0]), are_same([v + x[0], v + x[1]]))
    True False
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
  """Compares the ops of two tensors, then of what they are made from."""
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
  """Whether two tensors are the same if the inputs of their ops are."""
  if hasattr(a, 'numpy') or hasattr(b, 'numpy'):
    return False
  return a.value_index == b.value_index and (
      a.op is b.op or _tf_internals.is_same_computation(a.op, b.op))
