# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model that is built again, as far as needed, for a smaller batch.

A size alone does not tell whether it counts rows: a constant may be as large.
A size that counts rows is another one in a smaller batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import scratch_graph


class SmallerBatch:
  """Tensors of a scratch graph, for a batch of fewer rows."""

  def __init__(self, scratch: scratch_graph.ScratchGraph,
               whole_of: Callable[[tf.Tensor], tf.Tensor]):
    """Starts empty; `whole_of` returns a tensor for the whole batch."""
    self._scratch, self._whole_of = scratch, whole_of
    self._made, self._inputs = {}, {}

  def put(self, tensor: tf.Tensor, made: tf.Tensor) -> None:
    """Notes that `made` stands for `tensor`."""
    self._made[tensor.ref()] = made

  def note(self, op: tf.Operation, inputs: Sequence[tf.Tensor]) -> None:
    """Notes an op that depends on the batch, and its inputs in the model."""
    self._inputs[op] = inputs

  def of(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` for the smaller batch."""
    pending = [tensor]
    while pending:
      last = pending[-1]
      inputs = self._inputs.get(last.op)
      missing = [t for t in inputs or () if t.ref() not in self._made]
      if last.ref() not in self._made and missing:
        pending += missing
        continue
      pending.pop()
      if last.ref() not in self._made:
        self._make(last, inputs)
    return self._made[tensor.ref()]

  def _make(self, tensor: tf.Tensor, inputs: Sequence[tf.Tensor]) -> None:
    if inputs is None:
      self.put(tensor, self._whole_of(tensor))
      return
    made = self._scratch.copy(
        tensor.op, [self._made[t.ref()] for t in inputs])
    for index, output in enumerate(tensor.op.outputs):
      self.put(output, made.outputs[index] if made else
               self._scratch.placeholder(output.dtype, None))

  def has_first_size(self, tensor: tf.Tensor, size: int) -> bool:
    """Returns whether the first dimension of `tensor` is `size` here."""
    shape = self.of(tensor).shape
    return bool(shape.rank) and shape[0] == size

  def is_chosen(self, op: tf.Operation, inputs: Sequence[tf.Tensor],
                whole: tf.Operation) -> bool:
    """Returns whether the size of the batch chooses the size that `op` makes.

    Then no two sizes of a batch show all values. `whole` is `op` for the whole
    batch.
    """
    return _tf_internals.is_choice(op) and (
        self._scratch.values(whole.outputs[0]) is not None) and any(
            self._scratch.values(own) != self._scratch.values(self.of(t))
            for own, t in zip(whole.inputs, inputs))
