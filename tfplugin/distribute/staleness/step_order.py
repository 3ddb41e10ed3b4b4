# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readings of the step, and the order of a graph's ops around them.

  own writes first -> reading -> the model's work -> decision -> own writes

A worker's own write of the step, such as `global_step.assign(step + 1)` beside
an update, is not staleness. Nothing orders such a write. Control edges keep it
out of the time between the reading at the step's begin and the decision. They
connect ops that exist already, and ops that are built later.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph

_Operations = set[tf.Operation]


class _Update(NamedTuple):
  """An update that advances `step` by 1 where `accepted` is true."""

  done: tf.Operation
  step: tf.Variable
  accepted: tf.Tensor


_updates = per_graph.PerGraph()  # Of a list.


def order_after(reading: tf.Tensor, targets: Iterable[tf.Operation]) -> None:
  """Makes all work that `targets` need wait for a reading of the step.

  Work begins where a variable is read, and where data or random numbers are
  drawn. A target that needs no such work waits itself. A write of the step that
  precedes all of the work comes before the reading instead. `reading` is the
  output of an op that needs nothing but the step. Targets of other graphs are
  left alone.
  """
  step = step_of(reading)
  targets = {op for op in targets if op.graph is reading.graph}
  needed = _upstream(targets, reading.op)
  ahead = _upstream([reading.op], reading.op)
  writes = {op for op in needed - ahead
            if _tf_internals.writes_variable(op, step)}
  if writes:
    writes = _outside_branches(reading, needed, writes)
    first = _writes_before_work(reading, targets, writes)
    _tf_internals.add_control_inputs(reading.op, list(first))
    ahead |= _upstream(first, reading.op)
  able = {op for op in needed - ahead
          if _tf_internals.can_precede(reading.op, op)}
  work = {op for op in able if _begins_work(op, step)}
  for op in work | (targets & able - _downstream(work, needed, reading.op)):
    _tf_internals.add_control_inputs(op, [reading.op])


def keep_own_writes_out(reading: tf.Tensor, second: tf.Tensor) -> None:
  """Makes writes of the step wait for its second reading, if they run with it.

  A write runs with it if some op, such as a group of update and write, needs
  both. The writes may be built at any time. `reading` is at the begin of the
  step, `second` for the decision, perhaps in a branch.
  """
  _watch_for_writes(second, second.op, second.op)
  outside = _tf_internals.branch_of(reading.op)
  if _tf_internals.branch_of(second.op) == outside:
    return

  # An op in a branch does not run in each step. So writes outside of the branch
  # wait for the whole branch.
  if reading.graph is second.graph:
    _watch_for_writes(reading, second.op, None)
    return

  def is_after_branch(op):
    """Returns False for the op that calls the branch, True for later ops."""
    if called:
      return True
    called.append(op)
    order_after(reading, called)
    return False

  called = []
  _watch_for_writes(reading, reading.op, None, is_barrier=is_after_branch)


def note_own_update(update: tf.Operation, step: tf.Variable,
                    accepted: tf.Tensor) -> None:
  """Notes an update that advances `step` by 1 where `accepted` is true."""
  if per_graph.of(update.graph).step_counts_exchanges:
    return  # Another wrapper decides which updates advance the step.
  _updates[update.graph] = [
      *_updates.get(update.graph, ()), _Update(update, step, accepted)]


def own_updates_between(step: tf.Variable, reading: tf.Tensor,
                        second: tf.Tensor) -> list[tf.Tensor]:
  """Returns whether each of the noted updates between two readings advances.

  Two updates in one train op may share a batch. The second one's reading
  precedes the batch, so the first one is between its readings in any order.
  The updates wait for `reading`. An update in a branch that `second` is not in
  is left out, and so is one outside of the v2 branch of `second`.
  """
  updates = [update for update in _updates.get(second.graph, ())
             if update.step is step]
  if not updates:
    return []
  before = _upstream([reading.op], reading.op)
  after_begin = _upstream([second.op], second.op, known=before)
  return [update.accepted for update in updates
          if update.done in after_begin and _follow(
              update.accepted, reading, before)]


def _follow(accepted: tf.Tensor, reading: tf.Tensor,
            before: set[tf.Operation]) -> bool:
  """Returns whether `accepted` is usable; makes it wait for `reading`."""
  if not _tf_internals.is_usable_here(accepted):
    return False
  # The op that calls a branch of v2 waits for the reading already.
  if accepted.graph is reading.graph:
    if accepted.op in before or not _tf_internals.can_precede(
        reading.op, accepted.op):
      return False
    _tf_internals.add_control_inputs(accepted.op, [reading.op])
  return True


def step_of(reading: tf.Tensor) -> tf.Operation:
  """Returns the op of the variable that `reading` reads."""
  op = reading.op
  while op.inputs:
    op = op.inputs[0].op
  return op


def _outside_branches(reading: tf.Tensor, needed: _Operations,
                      writes: _Operations) -> _Operations:
  """Returns `writes`, with a branch's output op for a write inside it."""
  inside = {op for op in needed
            if not _tf_internals.can_precede(op, reading.op)}
  exits = {op for op in needed - inside
           if not inside.isdisjoint(graph_order.sources(op)) and
           not _upstream([op], reading.op).isdisjoint(writes & inside)}
  return writes - inside | exits


def _writes_before_work(reading: tf.Tensor, targets: _Operations,
                        writes: _Operations) -> _Operations:
  """Returns the ops of `writes` that no work of `targets` precedes."""
  # A function that computes a gradient, and also counts, is work.
  writes = writes - _upstream(targets, reading.op, of_values=True)
  needed = _upstream(targets, reading.op, known=writes)
  step = step_of(reading)
  work = {op for op in needed if op in targets or _begins_work(op, step)}
  # Another optimizer's update with the same reading cannot precede it.
  work.add(reading.op)
  return {op for op in writes
          if _upstream([op], reading.op).isdisjoint(work)}


def _begins_work(op: tf.Operation, step: tf.Operation) -> bool:
  """Returns whether `op` begins work; reading only the step does not."""
  origins = [_tf_internals.origin_of(tensor) for tensor in op.inputs]
  if step in origins and not any(
      _tf_internals.is_variable(o) for o in origins if o is not step):
    return False
  return _tf_internals.begins_work(op)


def _watch_for_writes(
    reading: tf.Tensor, source: tf.Operation, barrier: tf.Operation | None,
    is_barrier: Callable[[tf.Operation], bool] = lambda op: True) -> None:
  """Makes writes of the step that run with `source` wait for `barrier`.

  `reading` is of the step, in the watched graph. With a barrier of None, it is
  the first op outside the branch of `source` that waits for `source` and that
  `is_barrier` accepts.
  """
  step = step_of(reading)
  outside = _tf_internals.branch_of(reading.op)
  after, seen = {source}, set()

  def watch(create, op, *args, **kwargs):
    nonlocal barrier
    create(op, *args, **kwargs)
    sources = set(graph_order.sources(op))
    if after.isdisjoint(sources):
      return
    after.add(op)
    if barrier is None and (
        _tf_internals.branch_of(op) == outside and is_barrier(op)):
      barrier = op
    if barrier is None:
      return
    found = _upstream(sources, barrier, known=seen | after)
    seen.update(found)
    for other in found:
      if _tf_internals.writes_variable(other, step):
        _order(barrier, other)

  _tf_internals.watch_new_ops(source.graph, watch)


def _order(barrier: tf.Operation, write: tf.Operation) -> None:
  """Makes `write` wait for `barrier`, unless that closes a cycle."""
  needed = _upstream([barrier], barrier)
  if write in needed or not _tf_internals.can_precede(barrier, write):
    return
  if _waits_for_lock(needed) and _waits_for_lock(
      _upstream([write], barrier)):
    return  # The holder of the lock would wait for a worker that waits for it.
  _tf_internals.add_control_inputs(write, [barrier])


def _waits_for_lock(operations: _Operations) -> bool:
  return any(map(_tf_internals.takes_lock, operations))


def _upstream(operations: Iterable[tf.Operation], at: tf.Operation,
              **arguments: Any) -> _Operations:
  """Returns `operations` and their ancestors, in the iteration of `at`."""
  return graph_order.upstream(operations, stop=functools.partial(
      _tf_internals.repeats_loop_of, other=at), **arguments)


def _downstream(operations: _Operations, among: _Operations,
                at: tf.Operation) -> _Operations:
  """Returns `operations` and the ops of `among` that wait for one of them."""
  users = collections.defaultdict(list)
  for op in among:
    if not _tf_internals.repeats_loop_of(op, at):
      for source in graph_order.sources(op):
        users[source].append(op)
  found = set(operations)
  pending = list(found)
  while pending:
    new = set(users[pending.pop()]) - found
    found |= new
    pending.extend(new)
  return found


def read_step(global_step: tf.Variable) -> tf.Tensor:
  """Returns the value of `global_step` after the current dependencies."""
  if tf.executing_eagerly():
    return tf.identity(global_step.read_value())
  if global_step.dtype != global_step.dtype.base_dtype:
    with _tf_internals.colocate_with(global_step):
      # An identity of a ref is an alias: the value would change with the step.
      return tf.raw_ops.DeepCopy(x=global_step.read_value())
  # `read_value()` ends in an identity on the caller's device. Waiting for that
  # on a parameter server costs a round trip.
  with _tf_internals.colocate_with(global_step):
    return tf.raw_ops.ReadVariableOp(
        resource=global_step.handle, dtype=global_step.dtype)


def read_step_before_forward(
    global_step: tf.Variable,
    gradients: Sequence[types.Gradient]) -> tf.Tensor:
  """Returns the step before the model began its work, in a graph.

  The reading waits for no work, so gradients that were made under control
  dependencies do not form a cycle. It is made outside the branches of
  `tf.cond`: with accumulated gradients, the model that added the last ones is
  outside.
  """
  with _tf_internals.outside_branches():
    reading = read_step(global_step)
  order_before_forward(reading, gradients)
  return reading


def order_before_forward(reading: tf.Tensor,
                         gradients: Sequence[types.Gradient]) -> None:
  """Makes the work that `gradients` need wait for an earlier `reading`."""
  order_after(reading, [t.op for t in tensors_of(gradients)])


def read_step_after(global_step: tf.Variable,
                    gradients: Sequence[types.Gradient]) -> tf.Tensor:
  """Returns the step after all of `gradients` are computed."""
  with tf.control_dependencies(
      list(map(_tf_internals.result_to_await, tensors_of(gradients)))):
    # One edge to the step's device instead of one per gradient.
    computed = tf.no_op(name='gradients_computed')
  with tf.control_dependencies([computed] if computed else []):
    return read_step(global_step)


def tensors_of(gradients: Sequence[types.Gradient]) -> list[tf.Tensor]:
  """Returns the tensors of `gradients`: of a sparse one, values and indices."""
  tensors = []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      tensors += [gradient.values, gradient.indices]
    elif gradient is not None:
      tensors.append(tf.convert_to_tensor(gradient))
  return tensors
