# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Analysis by shapes of the tensors that have a value for each row.

A model that is built for a whole batch is built again in a scratch graph, op by
op, in two sizes: the whole batch, and a part of it. An op is *row-wise* if its
outputs have as many rows as its inputs in both sizes. It must also be known to
keep rows apart (`_tf_internals.keeps_rows_apart`). Then a part of its outputs
is its result for that part of its inputs, and a tower may compute it.

Some tensors have two values. A value made of sizes alone, such as the size of a
batch, is the whole batch's where it counts rows. It is the part's where it
shapes a part. A moment of batch normalisation is the tower's where rows are
normalised, unless the user chose otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import scratch_graph

# The value of an input that a tower uses: all rows, the tower's slice of all
# rows, the value computed in the tower, or a shape with the tower's rows.
WHOLE, SLICE, PART, FREE = 'whole', 'slice', 'part', 'free'


@dataclasses.dataclass(frozen=True)
class Plan:
  """A tower's computation of an op: its inputs in the model, their modes."""

  inputs: Sequence[tf.Tensor]
  modes: Sequence[str]


class RowAnalysis:
  """Analysis that finds the row-wise ops of one model.

  Attributes:
    rows: By `tensor.ref()` of each row-wise tensor, its `Rows`.
    moments: The references of the moments that each tower computes separately.
    plans: The `Plan` of each op that a tower may compute.
    unsplit: The names of the ops that use a trained variable and are computed
      once.
  """

  def __init__(self, leaves: Sequence[tf.Tensor], num_rows: int | None,
               splits_batch_norm: bool,
               composites: Sequence[Any] = ()):
    """Starts from the tensors of a batch.

    `leaves` are the dense tensors, whose first dimension is the rows,
    `composites` the sparse and ragged ones. `num_rows` is None where it is not
    known. With `splits_batch_norm` each tower has separate moments.
    """
    self.rows, self.moments, self.plans, self.unsplit = {}, set(), {}, []
    self._scratch = scratch_graph.ScratchGraph()
    self._num_rows = num_rows or scratch_graph.WHOLE_ROWS
    self._part_rows = scratch_graph.part_rows(self._num_rows)
    self._is_static = bool(num_rows)
    self._splits_batch_norm = splits_batch_norm
    # Stacked: several entries of a row, which may be in several towers.
    self._batch_norm_ops, self._stacked = set(), set()
    self._sizes = set()
    self._part, self._sliced = {}, {}
    self._smaller = scratch_graph.SmallerBatch(self._scratch)
    self._scratch.depends.update(leaf.ref() for leaf in leaves)
    for leaf in leaves:
      if leaf.shape.rank is None:
        continue
      rest = scratch_graph.behind_rows(leaf.shape.as_list())
      self._scratch.whole[leaf.ref()] = self._scratch.placeholder(
          leaf.dtype, [self._num_rows, *rest])
      self._part[leaf.ref()] = self._scratch.placeholder(
          leaf.dtype, [self._part_rows, *rest])
      self._smaller.put(leaf, self._part[leaf.ref()])
      self.rows[leaf.ref()] = scratch_graph.place_of([None, *rest], 0, 1)
    for composite in composites:
      self._add_composite(composite)

  def _add_composite(self, composite: Any) -> None:
    """Notes the number of rows of a sparse or ragged tensor."""
    self._scratch.depends.update(t.ref() for t in tf.nest.flatten(
        composite, expand_composites=True))
    if isinstance(composite, tf.RaggedTensor):
      counting = composite.row_splits
      made = [self._scratch.placeholder(counting.dtype, [rows + 1])
              for rows in (self._num_rows, self._part_rows)]
    else:
      counting = composite.dense_shape
      sizes = scratch_graph.behind_rows(composite.shape.as_list())
      made = [self._scratch.constant([rows, *sizes], tf.int64)
              for rows in (self._num_rows, self._part_rows)]
    self._scratch.whole[counting.ref()] = made[0]
    self._smaller.put(counting, made[1])

  def note_batch_norm(self, ops: Sequence[tf.Operation]) -> None:
    """Notes ops that compute the moments of a batch normalisation."""
    if self._splits_batch_norm:
      self._batch_norm_ops.update(ops)

  def has_parts(self, tensor: tf.Tensor) -> bool:
    """Returns whether each tower has a separate value of `tensor`."""
    return tensor.ref() in self.rows or tensor.ref() in self.moments

  def is_computed_once(self, op: tf.Operation) -> bool:
    """Returns whether `op` of the model has a value of the whole batch."""
    return op not in self.plans or any(
        output.ref() in self._sizes for output in op.outputs)

  def factor(self, tensor: tf.Tensor) -> int:
    """Returns the number of entries per row in a tensor that can be sliced."""
    return (self._first_size(tensor) or self._num_rows) // self._num_rows

  def declare(self, tensor: tf.Tensor, like: tf.Tensor) -> None:
    """Notes that `tensor`, a gradient, has its rows where `like` has them."""
    for known in (self.rows, self._scratch.whole, self._part):
      known[tensor.ref()] = known[like.ref()]
    self._smaller.put(tensor, self._smaller.of(like))
    self._scratch.depends.add(tensor.ref())

  def add(self, op: tf.Operation) -> None:
    """Analyses a new op of the model."""
    inputs = list(op.inputs)
    depending = [t for t in inputs if t.ref() in self._scratch.depends]
    if not depending:
      return
    self._scratch.depends.update(output.ref() for output in op.outputs)
    if not _tf_internals.can_be_copied(op):
      self._note_unsplit(op)
      return
    made = self._scratch.copy(op, map(self._scratch.whole_of, inputs))
    if made is None:
      self._note_unsplit(op)
      return
    if self._smaller.is_chosen(op, inputs, made):
      return
    self._smaller.note(op, inputs)
    for output, whole in zip(op.outputs, made.outputs):
      self._scratch.whole[output.ref()] = whole
    if not op.op_def.is_stateful or _tf_internals.reads_only(op):
      self._find_plan(op, inputs, depending)
    if op not in self.plans:
      self._note_unsplit(op)

  def _find_plan(self, op: tf.Operation, inputs: Sequence[tf.Tensor],
                 depending: Sequence[tf.Tensor]) -> None:
    has_parts = any(map(self.has_parts, inputs))
    is_stacked = not self._stacked.isdisjoint(t.ref() for t in inputs)
    if _tf_internals.is_size(op) or all(
        t.ref() in self._sizes for t in depending):
      self._find_size(op, inputs)
    elif op in self._batch_norm_ops and has_parts and not is_stacked or all(
        t.ref() in self.moments for t in depending):
      self._find_moments(op, inputs)
    elif (has_parts or self._uses_variable(op)) and not (
        _tf_internals.is_batch_norm(op) and (
            is_stacked or not self._splits_batch_norm)):
      for modes in [*self._choices(inputs), *self._static_choices(op, inputs)]:
        if self._is_row_wise(op, inputs, modes):
          break

  def _find_size(self, op: tf.Operation, inputs: Sequence[tf.Tensor]) -> None:
    modes = [PART if t.ref() in self._part else
             SLICE if self._can_be_sliced(t) else WHOLE for t in inputs]
    whole = [self._scratch.whole_of(output).shape for output in op.outputs]
    is_small = all(shape.is_fully_defined() and shape.rank < 2 and
                   shape.num_elements() < 64 for shape in whole)
    made = self._scratch.copy(op, [*map(self._of_mode, inputs, modes)])
    if is_small and made is not None and whole == [
        output.shape for output in made.outputs]:
      self._keep(op, Plan(inputs, modes), made)
      self._sizes.update(output.ref() for output in op.outputs)

  def _find_moments(self, op: tf.Operation,
                    inputs: Sequence[tf.Tensor]) -> None:
    modes = [PART if self.has_parts(t) or t.ref() in self._sizes else WHOLE
             for t in inputs]
    made = self._scratch.copy(op, [*map(self._of_mode, inputs, modes)])
    if made is None:
      return
    self._keep(op, Plan(inputs, modes), made)
    for output in op.outputs:
      rows = self._rows_of(
          self._scratch.whole_of(output), self._part[output.ref()])
      if rows is None:
        self.moments.add(output.ref())
      else:
        self.rows[output.ref()] = rows

  def _choices(self, inputs: Sequence[tf.Tensor]) -> list[list[str]]:
    """Returns the modes of inputs to try, the most likely first."""
    own = [self.has_parts(t) for t in inputs]
    sliced = [not o and t.ref() not in self._sizes and self._can_be_sliced(t)
              for o, t in zip(own, inputs)]
    sizes = [t.ref() in self._sizes for t in inputs]
    choices = []
    for slices, shapes in ((False, False), (True, False), (False, True),
                           (True, True)):
      modes = [PART if o or shapes and z else SLICE if slices and s else WHOLE
               for o, s, z in zip(own, sliced, sizes)]
      if any(mode == WHOLE and not self._is_known(t)
             for mode, t in zip(modes, inputs)):
        continue
      if modes not in choices and set(modes) != {WHOLE}:
        choices.append(modes)
    return choices

  def _static_choices(self, op: tf.Operation,
                      inputs: Sequence[tf.Tensor]) -> list[list[str]]:
    """Returns the modes to try for an op with a static shape as an input.

    The shape of a model that is static counts the rows of the whole batch.
    """
    shape = self._scratch.whole_of(op.outputs[0]).shape if op.outputs else None
    if not self._is_static or shape is None or not shape.is_fully_defined():
      return []
    return [[PART if self.has_parts(other) else FREE if other is t else WHOLE
             for other in inputs] for t in inputs
            if t.dtype in (tf.int32, tf.int64) and t.shape == [shape.rank] and
            t.ref() not in self._scratch.depends and (
                shape == self._scratch.value_of_shape(
                    self._scratch.whole_of(t)))]

  def place_of_rows(self, op: tf.Operation) -> tuple[int, int] | None:
    """Returns where the static shape that `op` makes has its rows.

    The result has the dimension, and the number of entries of a row in it.
    """
    before, places = 1, {self.rows[t.ref()].before for t in op.inputs
                         if t.ref() in self.rows}
    shape = self._scratch.whole_of(op.outputs[0]).shape
    for axis, size in enumerate(shape.as_list()):
      if before in places and size and size % self._num_rows == 0:
        return axis, size // self._num_rows
      before *= size
    return None

  def _free_shape(self, op: tf.Operation, dtype: tf.DType) -> tf.Tensor:
    """Returns the static shape that `op` makes in a tower."""
    shape = self._scratch.whole_of(op.outputs[0]).shape.as_list()
    place = self.place_of_rows(op)
    if place is not None:
      shape[place[0]] = self._part_rows * place[1]
    return self._scratch.constant(shape, dtype)

  def _is_row_wise(self, op: tf.Operation, inputs: Sequence[tf.Tensor],
                   modes: Sequence[str]) -> bool:
    values = [self._free_shape(op, t.dtype) if mode == FREE else
              self._of_mode(t, mode) for t, mode in zip(inputs, modes)]
    made = self._scratch.copy(op, values)
    if made is None or _tf_internals.is_reshape(op) and (
        not self._scratch.is_known_shape(values[1])):
      return False
    pairs = [(self._scratch.whole_of(output), part)
             for output, part in zip(op.outputs, made.outputs)]
    if _tf_internals.has_moments(op):
      pairs = pairs[:1]
    outputs = [self._rows_of(*pair) for pair in pairs]
    own = {i: self.rows[t.ref()] if mode == PART else _tf_internals.Rows(
        0, self.factor(t), self._scratch.whole_of(t).shape.rank, 1, None)
           for i, (t, mode) in enumerate(zip(inputs, modes))
           if mode == SLICE or t.ref() in self.rows}
    if None in outputs or not own or not _tf_internals.keeps_rows_apart(
        op, own, outputs) or not self._is_static and (
            self._smaller.cuts_rows(op, inputs, own)):
      return False
    if any(mode == SLICE and self.may_be_rows(t) for t, mode in zip(
        inputs, modes)) and not (
            any(map(self.has_parts, inputs)) and _tf_internals.aligns_rows(op)):
      return False
    self._keep(op, Plan(inputs, modes), made)
    self.rows.update(zip((t.ref() for t in op.outputs), outputs))
    if _tf_internals.is_batch_norm(op):
      self.moments.update(t.ref() for t in op.outputs[1:])
    return True

  def _keep(self, op: tf.Operation, plan: Plan, made: tf.Operation) -> None:
    self.plans[op] = plan
    self._part.update(zip((t.ref() for t in op.outputs), made.outputs))
    rows = {t.ref() for t in plan.inputs if t.ref() in self.rows}
    if rows and rows <= self._stacked or not rows and any(
        mode == SLICE and t.ref() in self._scratch.depends and (
            self.factor(t) > 1) for t, mode in zip(plan.inputs, plan.modes)):
      self._stacked.update(output.ref() for output in op.outputs)

  def _rows_of(self, whole: tf.Tensor, part: tf.Tensor,
               ) -> _tf_internals.Rows | None:
    """Returns the position of the rows in two sizes of a tensor, or None."""
    return scratch_graph.rows_between(whole.shape, part.shape, self._num_rows)

  def _of_mode(self, tensor: tf.Tensor, mode: str) -> tf.Tensor:
    if mode == PART:
      return self._part[tensor.ref()]
    whole = self._scratch.whole_of(tensor)
    if mode == WHOLE:
      return whole
    if tensor.ref() not in self._sliced:
      first, *rest = whole.shape.as_list()
      first = first or self._num_rows
      self._sliced[tensor.ref()] = self._scratch.placeholder(
          tensor.dtype, [first // self._num_rows * self._part_rows, *rest])
    return self._sliced[tensor.ref()]

  def _can_be_sliced(self, tensor: tf.Tensor) -> bool:
    """Returns whether the first dimension of `tensor` may be the rows."""
    size = self._first_size(tensor)
    depends = tensor.ref() in self._scratch.depends
    if size is None:
      return depends and bool(self._scratch.whole_of(tensor).shape.rank)
    factor, rest = divmod(size, self._num_rows)
    return factor > 0 and not rest and (
        self._is_static or depends and self._smaller.has_first_size(
            tensor, factor * self._part_rows))

  def _is_known(self, tensor: tf.Tensor) -> bool:
    """Returns whether no dimension of `tensor` may turn out to be rows."""
    return tensor.dtype in (tf.resource, tf.variant) or (
        self._scratch.whole_of(tensor).shape.is_fully_defined())

  def may_be_rows(self, tensor: tf.Tensor) -> bool:
    """Returns whether the first dimension has an unknown size: perhaps rows."""
    return bool(self._scratch.whole_of(tensor).shape.rank) and (
        self._first_size(tensor) is None)

  def _first_size(self, tensor: tf.Tensor) -> int | None:
    sizes = self._scratch.whole_of(tensor).shape
    return tf.compat.dimension_value(sizes[0]) if sizes.rank else None

  def _note_unsplit(self, op: tf.Operation) -> None:
    has_rows = any(t.ref() in self.rows or t.ref() in self._scratch.depends and
                   self._can_be_sliced(t) for t in op.inputs)
    if op.outputs and has_rows and self._uses_variable(op):
      self.unsplit.append(f'{op.name} ({op.type})')

  def _uses_variable(self, op: tf.Operation) -> bool:
    """Returns whether the value of a variable is an input of `op`."""
    reads = not op.op_def.is_stateful or _tf_internals.reads_only(op)
    return reads and any(
        _tf_internals.is_value_of_variable(t)
        for t in op.inputs if t.ref() not in self._scratch.depends)
