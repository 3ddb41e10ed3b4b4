# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables that share a message.

A lookup sends its ids to the server of the table, and its rows come back: two
messages for each table of a model. Here all tables of a server share them. No
bit changes on the way.

  worker                               parameter server
  ids of all lookups    -- one -->     lookups
  the model's work      <-- one --     rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packing


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


def pack(operations: Sequence[tf.Operation]) -> None:
  """Packs the lookups among `operations`: those of a step, in their order.

  Lookups share messages if none waits for another one, if they have the same
  control inputs, and if a fetch of one takes the same values from iterators,
  placeholders and random ops as a fetch of the other.
  """
  lookups = [_with_users(op, frozenset(operations))
             for op in operations if _is_packable(op)]
  lookups = [each for each in lookups if each.users]
  if len(lookups) < 2:
    return
  depths = _depths(operations, {each.op for each in lookups})
  packs = {}
  for each in lookups:
    ways = {(packing.task_of(each.server), packing.task_of(
        each.ids.device), packing.task_of(user.device))
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
      if user in known and user.device and packing.is_remote(
          server, user.device)])


def _is_packable(op: tf.Operation) -> bool:
  """Returns whether `op` looks up small rows of a variable in another task."""
  table = _tf_internals.table_of_lookup(op)
  if table is None or _tf_internals.is_in_branch_or_loop(op):
    return False
  lookup = _Lookup(op, table.device, ())
  return bool(
      lookup.ids.device and lookup.ids.dtype in packing.INDEX_TYPES and
      packing.is_remote(lookup.server, lookup.ids.device) and
      # A lookup of a reference variable may be elsewhere.
      (op.inputs[0].dtype == tf.resource or
       not packing.is_remote(lookup.server, op.device)) and
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
    with placement.only_on(worker):
      shapes = [tf.shape(each.ids) for each in lookups]
      counts = [tf.size(each.ids) for each in lookups]
    for each, (ids, _) in zip(lookups, arrived):
      _tf_internals.redirect_input(each.op, 1, ids)
    with placement.only_on(server):
      found = [tf.reshape(each.rows, [-1, width])
               for each, width in zip(lookups, widths)]
    parts = packing.rows_sent_together(
        found, counts, sizes, server, worker)
    with placement.only_on(worker):
      for each, part, shape in zip(lookups, parts, shapes):
        rows = tf.reshape(part, tf.concat([shape, each.row_shape], 0))
        _tf_internals.redirect(
            each.users, each.rows, tf.ensure_shape(rows, each.rows.shape))
