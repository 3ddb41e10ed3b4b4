# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Split of one model, built for the whole batch, over several devices.

The model_fn builds the graph of one device. Its row-wise ops
(`row_analysis.py`) are then repeated in each tower, with the rows of that
tower. Every other op stays as it is. In the place of a row-wise tensor it reads
the rows of all towers, one after the other:

  features -- slice 0 -- row-wise ops --+
           `- slice 1 -- row-wise ops --+- concat -- loss, metrics, writes, ...

So each number is computed once, as on one device, by the op that the model_fn
made for it. Gradients are taken through the concatenation: TensorFlow sums over
the towers. Only moments of batch normalisation are averaged (`whole`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph
from tfplugin.distribute.towers import row_analysis
from tfplugin.distribute.towers import scratch_graph
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

# By `batch_norm`, the weights of the moments of the towers, given the rows of
# each. None: a tower has no moments of its own.
WEIGHTS_OF_MOMENTS = {
    'mean': batch_parts.row_shares,
    # The first tower has rows whenever any tower has.
    'first': lambda rows: [1.0] + [0.0] * (len(rows) - 1),
    'sync': None,
}
# The ops of a graph that no model made, whichever split made them.
_made = per_graph.PerGraph()


class SplitGraph:
  """Graph of a model whose row-wise ops move to the devices of towers."""

  def __init__(self, batch: batch_parts.DividedBatch, devices: Sequence[str],
               batch_norm: str):
    """Starts where the model begins; no op is made before the model's.

    So random ops without an op seed draw the same numbers as on one device. The
    model is built on the first of `devices`. `batch_norm` is a key of
    `WEIGHTS_OF_MOMENTS`.
    """
    self._graph, self._devices = tf1.get_default_graph(), list(devices)
    self._divide = batch.divide
    self._weights_of = WEIGHTS_OF_MOMENTS[batch_norm]
    self._place = _tf_internals.Place()
    self._outer_devices = _tf_internals.device_functions()
    self._analysis = row_analysis.RowAnalysis(
        batch.dense, batch.num_rows, self._weights_of is not None,
        batch.composites)
    self.note_batch_norm = self._analysis.note_batch_norm
    self.unsplit = self._analysis.unsplit
    self._has_unknown_sizes = scratch_graph.has_unknown_sizes(
        [*batch.dense, *batch.composites])
    self._parts, self._wholes, self._slices, self._copies = {}, {}, {}, {}
    self._given = dict(zip((leaf.ref() for leaf in batch.dense), batch.parts))
    self._leaves = set(self._analysis.rows) - set(self._given)
    self._factors, self._order, self._depth, self._prefixes = {}, {}, 0, None
    self._num_taking = 0  # Calls of `gradients` inside each other.
    self._ours = _made.setdefault(self._graph, set())
    self._seen = len(self._graph.get_operations())

  def _begin(self) -> None:
    """Divides the rows, when the first tower is made."""
    if self._prefixes is not None:
      return
    self._prefixes = [self._graph.unique_name(f'tower_{i}')
                      for i in range(len(self._devices))]
    with self._building('rows'):
      begins, self._rows, self._checks = self._divide()
      self._begins, self._held = batch_parts.at_least_one_row(
          begins, self._rows)
      if self._weights_of is not None:
        self._moments = self._weights_of(self._rows)
    with self._building('rows', self._devices[0]):
      self._first_device = tf.no_op('device').device

  def update(self) -> None:
    """Splits the ops that the model has made since the last call."""
    ops = self._new_ops()
    for op in ops:
      self._analysis.add(op)
    with self._ours_noted():
      self._begin()
      self._redirect(ops)

  def whole(self, tensor: Any) -> Any:
    """Returns the rows of all towers for a row-wise `tensor`.

    A moment of batch normalisation is the weighted mean over the towers.
    """
    if not (tf.is_symbolic_tensor(tensor) and tensor.graph is self._graph and
            self._analysis.has_parts(tensor)):
      return tensor
    if tensor.ref() not in self._wholes:
      parts = self._parts_of(tensor)
      rows = self._analysis.rows.get(tensor.ref())
      with self._building('whole'):
        self._wholes[tensor.ref()] = whole = (
            batch_parts.joined(parts, self._held, self._rows, rows.axis)
            if rows else
            batch_parts.weighted_sum(parts, self._moments))
        whole.set_shape(tensor.shape)
    return self._wholes[tensor.ref()]

  def gradients(self, helper: Callable, **arguments: Any) -> list:
    """Returns the gradients of the whole batch; `helper` takes gradients.

    `helper` may call this again: by itself, or in a `tf.custom_gradient`.
    """
    xs = tf.nest.flatten(arguments['xs'])
    if not self._num_taking:
      self.update()
    for name in ('ys', 'grad_ys'):
      if arguments[name] is not None:
        arguments[name] = [
            self.whole(t) for t in tf.nest.flatten(arguments[name])]
    arguments['colocate_gradients_with_ops'] = True
    if arguments.get('stop_gradients') is not None:
      arguments['stop_gradients'] = [
          part for t in tf.nest.flatten(arguments['stop_gradients'])
          for part in self._sources(t)]
    # Gates serve reference variables; each tower would wait for all others.
    arguments['gate_gradients'] &= any(
        x.dtype != x.dtype.base_dtype for x in xs)
    is_again = self._num_taking and any(
        tf.is_symbolic_tensor(x) and x.op in self._ours for x in xs)
    sources = [[x] if is_again else self._sources(x) for x in xs]
    arguments['xs'] = [part for parts in sources for part in parts]
    self._num_taking += 1
    try:
      found = iter(helper(**arguments))
    finally:
      self._num_taking -= 1
    gradients = [[next(found) for _ in parts] for parts in sources]
    with self._ours_noted():
      if not self._num_taking:
        self._redirect(self._new_ops())
      return [self._joined(x, parts, own)
              for x, parts, own in zip(xs, sources, gradients)]

  def _sources(self, tensor: Any) -> Sequence[Any]:
    """Returns the tensors by which to differentiate instead of `tensor`."""
    if not tf.is_symbolic_tensor(tensor) or tensor.ref() in self._leaves or (
        tensor.ref() not in self._analysis.rows):
      return [tensor]  # Another split of the graph may slice a leaf, too.
    # Ops that are still being built read `tensor`.
    return [*self._parts_of(tensor), *([tensor] * self._is_inside())]

  def _is_inside(self) -> bool:
    return self._num_taking > 0 or _tf_internals.Place() != self._place

  def _joined(self, x: Any, parts: Sequence[Any],
              gradients: Sequence[Any]) -> Any:
    """Returns the gradient by `x` from the gradients by its sources."""
    gradient, own = gradients[-1], gradients[:len(self._devices)]
    is_inside = self._is_inside()
    if len(parts) > 1 and any(each is not None for each in own):
      with contextlib.nullcontext() if is_inside else (
          self._building('gradient')):
        own = [tf.zeros_like(part) if each is None else
               tf.convert_to_tensor(each) for part, each in zip(parts, own)]
        joined = batch_parts.joined(
            own, self._held, self._rows, self._analysis.rows[x.ref()].axis)
        joined.set_shape(x.shape)
      if is_inside:
        return joined if gradient is None else joined + gradient
      gradient = joined
      self._parts[gradient.ref()] = own
    elif self._num_taking:
      return gradient
    elif isinstance(gradient, tf.Tensor) and x.ref() in self._leaves:
      self._leaves.add(gradient.ref())
    else:
      return self._after_reads(x, gradient)
    self._analysis.declare(gradient, x)
    self._wholes[gradient.ref()] = gradient
    return gradient

  def _after_reads(self, x: Any, gradient: Any) -> Any:
    """Returns the gradient by a variable, for updates after all reads of it."""
    reads = [read for op in _tf_internals.reads_of(x)
             for read in self._copies.get(op, [op])]
    return _tf_internals.behind(gradient, reads, f'{self._prefixes[0]}/')

  def _new_ops(self) -> list[tf.Operation]:
    """Returns the ops that the model made since the last call."""
    ops = self._graph.get_operations()
    new = [op for op in ops[self._seen:] if op not in self._ours]
    self._order.update((op, len(self._order)) for op in new)
    self._seen = len(ops)
    return new

  def _redirect(self, ops: Sequence[tf.Operation]) -> None:
    """Makes ops that are computed once read the rows of all towers.

    Originals get what the towers read of a variable. A hook may fetch one, and
    the variable may have been updated.
    """
    once = [op for op in ops if self._analysis.is_computed_once(op)]
    reads = [(op, index, tensor) for op in ops
             for index, tensor in enumerate(op.inputs)
             if self._analysis.has_parts(tensor) and (
                 self._analysis.is_computed_once(op) or
                 _tf_internals.reads_only(tensor.op))]
    self._copy_behind([tensor for *_, tensor in reads],
                      [c for op in once for c in op.control_inputs])
    for op, index, tensor in reads:
      _tf_internals.redirect_input(op, index, self.whole(tensor))
    for op in once:
      if any(control in self._copies for control in op.control_inputs):
        _tf_internals.replace_control_inputs(op, [
            each for control in op.control_inputs
            for each in self._copies.get(control, [control])])

  def _copy_behind(self, tensors: Iterable[tf.Tensor],
                   controls: Iterable[tf.Operation]) -> None:
    """Makes in each tower the ops that `tensors` and `controls` need."""
    plans = self._analysis.plans
    pending = [t.op for t in tensors] + list(controls)
    needed = set()
    while pending:
      op = pending.pop()
      if op in plans and op not in needed and op not in self._copies:
        needed.add(op)
        pending += [t.op for t, mode in zip(
            plans[op].inputs, plans[op].modes) if mode == row_analysis.PART]
        pending += op.control_inputs
    for op in sorted(needed, key=self._order.get):
      self._copies[op] = [
          self._copy(op, tower) for tower in range(len(self._devices))]

  def _parts_of(self, tensor: tf.Tensor) -> Sequence[tf.Tensor]:
    if tensor.ref() in self._parts:
      return self._parts[tensor.ref()]
    if tensor.ref() in self._given:
      parts = [self._filled(tensor, part, tower)
               for tower, part in enumerate(self._given[tensor.ref()])]
    elif tensor.ref() in self._leaves:
      parts = [self._slice(tensor, tower)
               for tower in range(len(self._devices))]
    else:
      self._copy_behind([tensor], ())
      parts = [copy.outputs[tensor.value_index]
               for copy in self._copies[tensor.op]]
    self._parts[tensor.ref()] = parts
    return parts

  def _copy(self, op: tf.Operation, tower: int) -> tf.Operation:
    """Makes `op` in a tower."""
    plan = self._analysis.plans[op]
    inputs = []
    for tensor, mode in zip(plan.inputs, plan.modes):
      if mode == row_analysis.PART:
        tensor = self._parts_of(tensor)[tower]
      elif mode == row_analysis.SLICE:
        tensor = self._slice(tensor, tower)
      elif mode == row_analysis.FREE:
        tensor = self._shape(op, tower, tensor.dtype)
      inputs.append(tensor)
    waited = [self._copies[control][tower] if control in self._copies else
              control for control in op.control_inputs]
    stays = _tf_internals.is_beside_variable(op)
    device = op.device if stays or op.device != self._first_device else (
        self._devices[tower])
    with self._building(None, device), tf.control_dependencies(waited):
      return _tf_internals.copy_op(
          self._graph, op, inputs, f'{self._prefixes[tower]}/{op.name}', stays)

  def _shape(self, op: tf.Operation, tower: int, dtype: tf.DType) -> tf.Tensor:
    """Returns the static shape that `op` makes, with the rows of a tower."""
    axis, factor = self._analysis.place_of_rows(op)
    sizes = op.outputs[0].shape.as_list()
    with self._building('rows'):
      sizes[axis] = tf.cast(self._held[tower], dtype) * factor
      return tf.stack([tf.cast(size, dtype) for size in sizes])

  def _slice(self, tensor: tf.Tensor, tower: int) -> tf.Tensor:
    """Returns the rows of a tower, a slice of the first dimension."""
    key = tensor.ref(), tower
    if key not in self._slices:
      with self._building('rows'), tf.control_dependencies(self._checks):
        begin, size = (value[tower] * self._factor(tensor)
                       for value in (self._begins, self._held))
        if self._analysis.may_be_rows(tensor):
          begin, size = batch_parts.bounds_if_rows(
              tensor, self._rows, begin, size)
        self._slices[key] = tensor[begin:begin + size]
    return self._slices[key]

  def _factor(self, tensor: tf.Tensor) -> Any:
    """Returns the number of entries of a row in the first dimension."""
    if not self._has_unknown_sizes or tensor.shape.rank and (
        tf.compat.dimension_value(tensor.shape[0])):
      return self._analysis.factor(tensor)
    if tensor.ref() not in self._factors:
      total = tf.add_n([tf.cast(rows, tf.int64) for rows in self._rows])
      self._factors[tensor.ref()] = tf.shape(
          tensor, out_type=tf.int64)[0] // tf.maximum(total, 1)
    return self._factors[tensor.ref()]

  def _filled(self, batch: tf.Tensor, part: tf.Tensor,
              tower: int) -> tf.Tensor:
    """Returns the rows of a tower; if there are none, the last of the batch."""
    begin, held = self._begins[tower], self._held[tower]
    if held is self._rows[tower]:
      return part
    with self._building('rows'):
      return batch_parts.filled(part, batch, begin, held - self._rows[tower])

  @contextlib.contextmanager
  def _building(self, scope: str | None, device: str | None = None,
                ) -> Iterator[None]:
    """Makes ops outside the model, in any current context."""
    scope = f'{self._prefixes[0]}/{scope}/' if scope else ''
    with self._ours_noted(), self._graph.as_default(), (
        tf.control_dependencies(None)), tf.name_scope(scope), (
            contextlib.ExitStack()) as stack:
      for function in (None, *self._outer_devices, *([device] * bool(device))):
        stack.enter_context(tf1.device(function))
      yield

  @contextlib.contextmanager
  def _ours_noted(self) -> Iterator[None]:
    """Notes that the ops made inside do not belong to the model."""
    before = None if self._depth else len(self._graph.get_operations())
    self._depth += 1
    try:
      yield
    finally:
      self._depth -= 1
    if before is not None:
      self._ours.update(self._graph.get_operations()[before:])
