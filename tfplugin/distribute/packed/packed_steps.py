# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps that send small tensors to and from servers in one message.

A lookup in a table sends its ids to the server of the table, and the server
sends the rows: two messages for each table of a model. Here all tables of a
server share them. No bit changes on the way.

  worker                               parameter server
  ids of all lookups    -- one -->     lookups
  the model's work      <-- one --     rows
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packing
from tfplugin.distribute.updates import intercepted_updates

tf1 = tf.compat.v1

# Collections of ops, and arguments of a Scaffold, that run before training.
_BEFORE_TRAINING = ('init_op', 'local_init_op', 'ready_op',
                    'ready_for_local_init_op')


class PackedSteps(intercepted_updates.InterceptedUpdates):
  """Mixin before the extended class of a v1 parameter-server strategy.

  The small variables that a step reads, and the small gradients that it sends,
  are packed; see `tfplugin.distribute.packed.packing`. No value changes.
  """

  @property
  def own_device(self) -> str:
    """The device of the variables and ops that a worker has once."""
    devices = self._compute_devices
    return devices[0] if len(devices) == 1 else self._worker_device

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    pairs = list(value_destination_pairs)
    if tf.executing_eagerly() or not all(
        isinstance(variable, tf.Variable) for _, variable in pairs):
      return super()._batch_reduce_to(reduce_op, pairs, options)
    # Sums on the worker. TensorFlow would send each gradient to be reduced.
    reduced = super()._batch_reduce_to(reduce_op, [
        (value, self.own_device if placement.is_remote(
            self.own_device, variable.device) else variable)
        for value, variable in pairs], options)
    sent = packing.send_gradients(
        [(self._only_value(value), variable)
         for value, (_, variable) in zip(reduced, pairs)], self.own_device)
    return [gradient for gradient, _ in sent]

  def _only_value(self, value):
    """Unwraps a value of one device."""
    values = self._container_strategy().experimental_local_results(value)
    return values[0] if len(values) == 1 else value

  def _step_is_built(self, result):
    super()._step_is_built(result)
    # Estimator's step. Another program may differentiate the result of a call.
    if getattr(result, 'train_op', None) is not None:
      strategy = self._container_strategy()
      pack_reads(result, [
          part for leaf in tf.nest.flatten(result.train_op)
          for part in strategy.experimental_local_results(leaf)])


def pack_reads(spec: Any, outputs: Iterable[Any] = ()) -> None:
  """Packs the reads of a whole train step from variables on other tasks.

  It packs small variables, and the rows of lookups.

  `spec` is an EstimatorSpec; `outputs` are the values of its `train_op`, by
  default itself. Nothing may be differentiated afterwards: a gradient would
  connect all variables of a pack. The graph must not have run yet.

  A read keeps its place and its control inputs: one that waits for the begin of
  the step still does. Only reads with the same control inputs share a message,
  so that none waits for more than before. Several such reads of a variable
  become one. Left alone are reads in branches, loops and functions, and all
  that variables are initialised with: it runs while others have no value.
  """
  targets = [op for op in graph_order.operations_of(
      outputs or tf.nest.flatten(spec.train_op))
             if not op.graph.building_function]
  packs = {}
  needed = graph_order.upstream(targets) - _before_training(spec)
  in_order = _in_order(needed)
  _pack_lookups(in_order)
  for op in in_order:
    if not _is_whole_read(op):
      continue
    source = _server_of(op)
    for consumer in dict.fromkeys(op.outputs[0].consumers()):
      if consumer in needed and consumer.device and placement.is_remote(
          source, consumer.device):
        key = (op.outputs[0].dtype, placement.task_of(source),
               placement.task_of(consumer.device), frozenset(op.control_inputs))
        packs.setdefault(key, []).append((op, consumer))
  for uses in packs.values():
    _pack_uses(uses)


def _before_training(spec: Any) -> set[tf.Operation]:
  """Returns the ops that may run before all variables have a value."""
  graph = tf1.get_default_graph()
  runs = [getattr(variable, 'initializer', None)
          for key in (tf1.GraphKeys.GLOBAL_VARIABLES,
                      tf1.GraphKeys.LOCAL_VARIABLES)
          for variable in graph.get_collection(key)]
  for key in _BEFORE_TRAINING:
    runs += graph.get_collection(getattr(tf1.GraphKeys, key.upper()))
    runs.append(getattr(getattr(spec, 'scaffold', None), key, None))
  runs += graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
  runs += [resource.create for key in (tf1.GraphKeys.RESOURCES,
                                       tf1.GraphKeys.LOCAL_RESOURCES)
           for resource in graph.get_collection(key)]
  return graph_order.upstream(graph_order.operations_of(tf.nest.flatten(runs)))


def _in_order(operations: set[tf.Operation]) -> list[tf.Operation]:
  """Returns `operations` of one graph in the order in which they were made."""
  graph = next(iter(operations)).graph if operations else tf.Graph()
  return [op for op in graph.get_operations() if op in operations]


def _is_whole_read(op: tf.Operation) -> bool:
  """Returns whether `op` reads a small variable, once in each step."""
  return (_tf_internals.reads_whole_variable(op) and
          packing.is_packable(op.outputs[0]) and
          # A reference variable may be cached in another task.
          (op.inputs[0].dtype == tf.resource or
           not placement.is_remote(_server_of(op), op.device)) and
          not _tf_internals.is_in_branch_or_loop(op))


def _server_of(read: tf.Operation) -> str:
  """Returns the device of a read's variable."""
  return read.inputs[0].op.device


def _pack_uses(uses: Sequence[tuple[tf.Operation, tf.Operation]]) -> None:
  """Replaces the read of each (read, consumer) pair by a part of a pack."""
  reads = {}
  for read, _ in uses:
    reads.setdefault(read.inputs[0].op, read)
  if len(reads) < 2:
    return
  for read, _ in uses:
    first = reads[read.inputs[0].op]
    if read is not first:
      # A write that waits for this read waits for the first one, too.
      _tf_internals.add_control_inputs(read, [first])
  first_read, first_consumer = uses[0]
  with tf.init_scope():
    parts = dict(zip(reads, packing.packed(
        [read.outputs[0] for read in reads.values()],
        _server_of(first_read), first_consumer.device)))
  for read, consumer in uses:
    _tf_internals.redirect(
        [consumer], read.outputs[0], parts[read.inputs[0].op])


class _Lookup(NamedTuple):
  """A lookup, its table's device, and its consumers in other tasks."""

  op: tf.Operation
  server: str
  users: Sequence[tf.Operation]

  @property
  def ids(self) -> tf.Tensor:
    return self.op.inputs[1]

  @property
  def rows(self) -> tf.Tensor:
    return self.op.outputs[0]

  @property
  def row_shape(self) -> tf.TensorShape:
    return self.rows.shape[self.ids.shape.rank:]


def _pack_lookups(operations: Sequence[tf.Operation]) -> None:
  """Packs the lookups among `operations`, which are in the order of the step.

  Lookups share messages if none waits for another one, if they have the same
  control inputs, and if a fetch of one takes the same values from iterators,
  placeholders and random ops as a fetch of the other.
  """
  lookups = [_with_users(op, frozenset(operations))
             for op in operations if _is_small_lookup(op)]
  lookups = [each for each in lookups if each.users]
  if len(lookups) < 2:
    return
  depths = _depths(operations, {each.op for each in lookups})
  packs = {}
  for each in lookups:
    ways = {(placement.task_of(each.server), placement.task_of(
        each.ids.device), placement.task_of(user.device))
            for user in each.users}
    if len(ways) == 1:
      key = (*ways, each.ids.dtype, each.rows.dtype,
             depths[each.op], frozenset(each.op.control_inputs),
             _sources_of(each.ids))
      packs.setdefault(key, []).append(each)
  for each in packs.values():
    if len(each) > 1:
      _send_together(each)


def _with_users(op: tf.Operation, known: frozenset[tf.Operation]) -> _Lookup:
  server = _tf_internals.table_of_lookup(op).device
  return _Lookup(op, server, [
      user for user in dict.fromkeys(op.outputs[0].consumers())
      if user in known and user.device and placement.is_remote(
          server, user.device)])


def _is_small_lookup(op: tf.Operation) -> bool:
  """Returns whether `op` looks up small rows of a variable in another task."""
  table = _tf_internals.table_of_lookup(op)
  if table is None or _tf_internals.is_in_branch_or_loop(op):
    return False
  lookup = _Lookup(op, table.device, ())
  return bool(
      lookup.ids.device and lookup.ids.dtype in packing.INDEX_TYPES and
      placement.is_remote(lookup.server, lookup.ids.device) and
      # A lookup of a reference variable may be elsewhere.
      (op.inputs[0].dtype == tf.resource or
       not placement.is_remote(lookup.server, op.device)) and
      lookup.ids.shape.rank is not None and
      packing.are_small_rows(lookup.ids.shape.num_elements(),
                             lookup.row_shape, lookup.rows.dtype))


def _depths(operations: Sequence[tf.Operation], lookups: set[tf.Operation],
            ) -> dict[tf.Operation, int]:
  """Returns how many of `lookups` each operation waits for, one after another.

  Those of the same depth do not wait for each other. A lookup is in no loop:
  so this ends.
  """
  depths, is_changed = dict.fromkeys(operations, 0), True
  while is_changed:
    is_changed = False
    for op in operations:
      depth = max((depths.get(source, 0) + (source in lookups)
                   for source in graph_order.sources(op)), default=0)
      if depth > depths[op]:
        depths[op], is_changed = depth, True
  return depths


def _sources_of(ids: tf.Tensor) -> frozenset[tf.Operation]:
  """Returns the ops that `ids` take new values from in each step."""
  takes = _tf_internals.takes_new_values
  return frozenset(filter(takes, graph_order.upstream([ids.op], stop=takes)))


def _send_together(lookups: Sequence[_Lookup]) -> None:
  """Sends the ids of lookups in one message, and their rows in others.

  The lookups stay: whatever waits for one still does.
  """
  first = lookups[0]
  worker, server = first.users[0].device, first.server
  ids_of_all = [each.ids for each in lookups]
  widths = [each.row_shape.num_elements() for each in lookups]
  sizes = [packing.rows_bytes(each.ids.shape.num_elements(), each.row_shape,
                              each.rows.dtype) for each in lookups]
  if not packing.saves_messages(ids_of_all, widths, sizes):
    return
  with tf.init_scope():
    arrived = packing.indices_sent_together(
        ids_of_all, first.ids.device, server)
    with placement.device_override(worker):
      shapes = [tf.shape(each.ids) for each in lookups]
      counts = [tf.size(each.ids) for each in lookups]
    for each, (ids, _) in zip(lookups, arrived):
      _tf_internals.redirect_input(each.op, 1, ids)
    with placement.device_override(server):
      found = [tf.reshape(each.rows, [-1, width])
               for each, width in zip(lookups, widths)]
    parts = packing.rows_sent_together(
        found, counts, sizes, server, worker)
    with placement.device_override(worker):
      for each, part, shape in zip(lookups, parts, shapes):
        rows = tf.reshape(part, tf.concat([shape, each.row_shape], 0))
        _tf_internals.redirect(
            each.users, each.rows, tf.ensure_shape(rows, each.rows.shape))
