# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Copies of single ops with other inputs, in the same graph or another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin._tf_internals import branches
from tfplugin._tf_internals import op_types

# Attributes of one op only: its colocation, and the shapes of its outputs.
_PLACE = '_class'
_OWN = ('_output_shapes', '_XlaCompile')
# Ops that join the branches and iterations of control flow v1.
_CONTROL_FLOW = ('Enter', 'Exit', 'Merge', 'NextIteration', 'Switch')


def copy_op(graph: tf.Graph, op: tf.Operation, inputs: Sequence[tf.Tensor],
            name: str, keeps_place: bool = False) -> tf.Operation:
  """Makes an op like `op` with other inputs; its name is made unique.

  `keeps_place` keeps the colocation of `op`. Raises ValueError if the inputs do
  not fit.
  """
  attrs = op.node_def.attr
  return graph.create_op(
      op.type, list(inputs), [output.dtype for output in op.outputs], name=name,
      attrs={key: attrs[key] for key in attrs if key not in _OWN and (
          keeps_place or key != _PLACE)},
      op_def=op.op_def)


def is_beside_variable(op: tf.Operation) -> bool:
  """Returns whether `op` is placed with a variable of its graph."""
  names = [group[5:].decode() for group in op.colocation_groups()]
  return any(t.dtype == tf.resource for t in op.inputs) or any(
      op_types.makes_variable(op.graph.get_operation_by_name(name))
      for name in names if name != op.name)


def can_be_copied(op: tf.Operation) -> bool:
  """Returns whether `op` can be copied alone: no branch, loop or function."""
  return (op.type not in _CONTROL_FLOW and
          op._get_control_flow_context() is None and _is_plain(op))


def reads_of(variable: Any) -> list[tf.Operation]:
  """Returns the reads of a resource variable that wait for nothing."""
  handle = getattr(variable, 'handle', None)
  if not tf.is_symbolic_tensor(handle):
    return []
  return [op for op in handle.consumers() if op.type in op_types.VALUE_READS and
          can_be_copied(op) and not op.control_inputs]


def _is_plain(op: tf.Operation) -> bool:
  """Returns whether `op` is public, calls no function and takes no ref."""
  return hasattr(tf.raw_ops, op.type) and not any(
      value.HasField('func') or value.list.func
      for value in op.node_def.attr.values()) and not any(
          tensor.dtype._is_ref_dtype for tensor in (*op.inputs, *op.outputs))


def is_part_of_branch(op: tf.Operation) -> bool:
  """Returns whether `op` is in a `tf.cond` of control flow v1, or joins one.

  A copy of such an op must read copies of the other ops in the branch, also of
  constants: these run only if the branch is taken.
  """
  contexts = list(branches.outer_contexts(op._get_control_flow_context()))
  return (bool(contexts) or op.type in ('Merge', 'Switch')) and all(
      context.IsCondContext() for context in contexts) and _is_plain(op)


def start_of_branch(op: tf.Operation) -> tf.Tensor | None:
  """Returns the tensor that is there if the branch around `op` is taken.

  None outside of branches of control flow v1, and for the tensor's own op.
  """
  context = op._get_control_flow_context()
  if context is None or context.pivot.op is op:
    return None
  return context.pivot


def can_be_called_again(op: tf.Operation) -> bool:
  """Returns whether `op` runs functions without state, and no loop."""
  return op_types.calls_functions(op) and 'While' not in op.type and not any(
      'While' in inner.type or inner.op_def.is_stateful and not (
          inner.type.startswith('ReadVariable') or
          op_types.calls_functions(inner))
      for inner in op_types.ops_of_bodies(op))


def replace_control_inputs(op: tf.Operation,
                           inputs: Sequence[tf.Operation]) -> None:
  """Makes `op` wait for `inputs` only; the graph must not have run."""
  op._remove_all_control_inputs()
  op._add_control_inputs(list(inputs))
