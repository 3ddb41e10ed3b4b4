# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records of each shard: the ops that it made, the gradients that it took.

Shards are built in turns, and the record notes the ops of each turn. Op names
do not tell: a model_fn may choose any name, also an absolute one.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import same_values


class OpRecord:
  """The ops of the shards of one graph."""

  def __init__(self, graph: tf.Graph, num_shards: int):
    """Starts before the first shard."""
    self.graph = graph
    self.num_shards = num_shards
    self._start = self._now()
    self._turns = [[] for _ in range(num_shards)]
    self._known = [(0, frozenset())] * num_shards
    self._in_branches = set()

  def begin(self, shard: int) -> None:
    """Notes that `shard` continues: the ops that follow belong to it."""
    self._turns[shard].append(slice(self._now(), None))

  def end(self, shard: int) -> None:
    """Notes that the turn of `shard` is over."""
    self._turns[shard][-1] = slice(self._turns[shard][-1].start, self._now())

  @contextlib.contextmanager
  def pausing(self, shard: int) -> Iterator[None]:
    """Notes that the ops made inside do not belong to `shard` alone."""
    self.end(shard)
    yield
    self.begin(shard)

  @contextlib.contextmanager
  def for_all_shards(self, graph: tf.Graph) -> Iterator[None]:
    """Notes that ops made inside, in a branch's graph, are for all shards."""
    before = len(graph.get_operations())
    yield
    if graph is not self.graph:
      self._in_branches.update(graph.get_operations()[before:])

  def is_for_all_shards(self, op: tf.Operation) -> bool:
    """Returns whether `op`, in a branch or deeper, was made for all shards."""
    while op is not None and op not in self._in_branches:
      op = _tf_internals.call_of(op.graph)
    return op is not None

  def built_in(self, shard: int) -> list[tf.Operation]:
    """Returns the ops that were built in `shard` itself."""
    ops = self.graph.get_operations()
    return [op for turn in self._turns[shard] for op in ops[turn]]

  def twins(self, tensor: tf.Tensor) -> list[tf.Tensor]:
    """Returns the tensor of each shard for `tensor` of the first one.

    A RuntimeError is raised unless the shards were built by the same calls, in
    the same order.
    """
    own = [self.built_in(shard) for shard in range(self.num_shards)]
    index = own[0].index(tensor.op)
    for ops in itertools.zip_longest(*(ops[:index + 1] for ops in own)):
      if len({op and op.type for op in ops}) > 1:
        raise RuntimeError(
            'Shards must build the same ops in the same order. Received: '
            f'{[op and op.name for op in ops]}. Make the same graph whatever '
            'the shard.')
    return [ops[index].outputs[tensor.value_index] for ops in own]

  def is_own(self, shard: int, op: tf.Operation) -> bool:
    """Returns whether `op` was built in `shard` itself."""
    if op.graph is not self.graph:
      return False
    now = self._now()
    if self._known[shard][0] != now:
      self._known[shard] = now, set(self.built_in(shard))
    return op in self._known[shard][1]

  def ops_of(self, shard: int) -> list[tf.Operation]:
    """Returns the ops of `shard`; ops for all shards belong to the first."""
    if shard:
      return self.built_in(shard)
    others = {op for other in range(1, len(self._turns))
              for op in self.built_in(other)}
    return [op for op in self.graph.get_operations()[self._start:]
            if op not in others]

  def check_no_accumulators(self) -> None:
    """Raises if an op of a shard makes an accumulator of gradients."""
    for op in (op for shard in range(self.num_shards)
               for op in self.built_in(shard)):
      if _tf_internals.accumulates_gradients(op):
        raise RuntimeError(
            'Shards must not make accumulators of gradients: each would fill '
            f'its own. Received: {op.name}, made by '
            '`tf.compat.v1.train.SyncReplicasOptimizer` or '
            '`tf.compat.v1.ConditionalAccumulator`. Leave it out: the '
            'gradients of shards are summed within the step. To accumulate '
            'over steps use variables and `assign_add`.')

  def check_no_stores(self) -> None:
    """Raises if an op of a shard fills a table or a queue."""
    for op in (op for shard in range(self.num_shards)
               for outer in self.built_in(shard)
               for op in (outer, *_tf_internals.ops_of_bodies(outer))):
      if _tf_internals.fills_table_or_queue(op):
        raise RuntimeError(
            'Shards must not fill tables or queues: each would '
            f'fill its own, with its own rows. Received: {op.name} '
            f'({op.type}). Keep the rows in a variable, with '
            '`variable.scatter_add`, say, or fill it in the input_fn.')

  def _now(self) -> int:
    return len(self.graph.get_operations())


class NotedGradients:
  """Finds the values that are computed from noted gradients.

  A variable to which they are added holds them, too.

  Attributes:
    taken: List to which pairs of a new gradient and its losses are appended.
  """

  def __init__(self):
    """Starts without gradients."""
    self.taken = []
    self._ops = {}
    self._without = set()
    # Handles of variables that hold sums over shards; or other gradients, with
    # their losses.
    self._totals, self._others = set(), {}

  @property
  def _noted(self) -> dict[tf.Operation, Sequence]:
    """The ops of the gradients, with their losses."""
    self._ops.update((_values(gradient).op, losses)
                     for gradient, losses in self.taken)
    self.taken.clear()
    return self._ops

  def accumulate(self, value, variable: tf.Variable) -> None:
    """Notes that gradients of `value` are added to `variable`."""
    handles = [copy.handle.ref() for copy in variable.values]
    if self.are_in_total(value):
      self._totals.update(handles)
    else:
      losses = self.losses_of(value)
      for handle in handles:
        self._others[handle] = [*self._others.get(handle, ()), *losses]

  def made(self, value) -> bool:
    """Returns whether `value` was computed from a noted gradient."""
    if not isinstance(value, (tf.Tensor, tf.IndexedSlices)):
      return False
    pending = [_values(value).op]
    visited = set()
    while pending:
      op = pending.pop()
      if op in self._noted:
        return True
      if op not in visited and op not in self._without:
        visited.add(op)
        pending.extend(tensor.op for tensor in _inputs_of(op))
    self._without |= visited
    return False

  def changed_by(self, value) -> tf.Operation | None:
    """Returns an op that computes more than sums and multiples of gradients.

    Such a value of one shard, summed over shards, is not the value of the
    batch. None: there is no such op. Sums over shards are left out.
    """
    pending, seen = [_values(value)], set()
    while pending:
      tensor = _outside(pending.pop())
      if tensor.ref() in seen or not self._is_of_one_shard(tensor) or (
          tensor.op in self._noted or any(
              x.ref() in self._others for x in _inputs_of(tensor.op))):
        continue
      seen.add(tensor.ref())
      terms = _tf_internals.terms_of_linear(tensor)
      number, by, divides = _tf_internals.factors(tensor) or (None,) * 3
      if number is not None and sum(map(self._is_of_one_shard, (
          number, by))) == 1 and not (divides and self._is_of_one_shard(by)):
        terms = [number, by]
      if not terms:
        return tensor.op
      pending += terms
    return None

  def other_term(self, value) -> tf.Tensor | None:
    """Returns a term, other than 0, without gradients of one shard, or None.

    `changed_by(value)` must be None.
    """
    pending, seen = [_values(value)], set()
    while pending:
      tensor = _outside(pending.pop())
      if tensor.ref() in seen:
        continue
      seen.add(tensor.ref())
      if not self._is_of_one_shard(tensor):
        constant = tf.get_static_value(tensor)
        if constant is None or np.any(constant):
          return tensor
      elif tensor.op not in self._noted:
        pending += [term for term, _ in _tf_internals.addends(tensor)] or [
            operand for operand in tensor.op.inputs
            if self._is_of_one_shard(operand)]
    return None

  def losses_of(self, value) -> list:
    """Returns the losses of the gradients of one shard behind `value`."""
    return [loss for losses in self._sources(_values(value))
            for loss in losses]

  def _is_of_one_shard(self, tensor: tf.Tensor) -> bool:
    """Returns whether `tensor` has noted gradients not summed over shards."""
    return any(True for _ in self._sources(tensor))

  def _sources(self, tensor: tf.Tensor) -> Iterator[Sequence]:
    """Yields the losses of each gradient of one shard behind `tensor`."""
    pending, seen = [tensor], set()
    while pending:
      last = pending.pop()
      if last.ref() in seen:
        continue
      seen.add(last.ref())
      if last.ref() in self._others:
        yield self._others[last.ref()]
      elif same_values.is_declared(last):
        continue
      elif last.op in self._noted:
        yield self._noted[last.op]
      else:
        pending += _inputs_of(last.op)

  def are_in_total(self, value) -> bool:
    """Returns whether `value` has noted gradients in sums over shards only."""
    pending, seen, found = [_values(value)], set(), False
    while pending:
      tensor = pending.pop()
      if tensor.ref() in seen:
        continue
      seen.add(tensor.ref())
      if same_values.is_declared(tensor) and tensor.op.inputs:
        found = found or self.made(tensor.op.inputs[0])
      elif tensor.ref() in self._totals:
        found = True
      elif tensor.op in self._noted:
        return False
      else:
        pending += _inputs_of(tensor.op)
    return found


def _inputs_of(op: tf.Operation) -> Sequence[tf.Tensor]:
  """Returns the inputs of `op`, or the tensor that it has captured."""
  if op.inputs or not op.outputs:
    return op.inputs
  outside = _outside(op.outputs[0])
  return [] if outside is op.outputs[0] else [outside]


def _outside(tensor: tf.Tensor) -> tf.Tensor:
  """Returns the tensor that a branch of control flow v2 has captured."""
  outside = _tf_internals.outside_of_functions(tensor)
  return outside if tf.is_symbolic_tensor(outside) else tensor


def _values(gradient) -> tf.Tensor:
  return (gradient.values if isinstance(gradient, tf.IndexedSlices)
          else gradient)
