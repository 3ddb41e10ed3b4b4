# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Copies of single ops with other inputs, in the same graph or another."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin._tf_internals import op_types

# Of the op that they are on: its place, and the shapes of its outputs.
_PLACE = '_class'
_OWN = ('_output_shapes', '_XlaCompile')
# What joins the branches and the iterations of control flow v1.
_CONTROL_FLOW = ('Enter', 'Exit', 'Merge', 'NextIteration', 'Switch')


def copy_op(graph: tf.Graph, op: tf.Operation, inputs: Sequence[tf.Tensor],
            name: str, keeps_place: bool = False) -> tf.Operation:
  """Makes an op like `op` with other inputs.

  The public function that copies ops, `import_graph_def`, copies a graph, and
  does not tell which of its ops do not fit.

  Args:
    graph: The graph that it is made in.
    op: The op.
    inputs: Its inputs.
    name: Its name; another op's is made unique.
    keeps_place: Whether it is colocated with what `op` is colocated with.

  Raises:
    ValueError: The inputs do not fit.
  """
  attrs = op.node_def.attr
  return graph.create_op(
      op.type, list(inputs), [output.dtype for output in op.outputs], name=name,
      attrs={key: attrs[key] for key in attrs if key not in _OWN and (
          keeps_place or key != _PLACE)},
      op_def=op.op_def)


def is_beside_variable(op: tf.Operation) -> bool:
  """Returns whether `op` is placed where a variable of its graph is."""
  names = [group[5:].decode() for group in op.colocation_groups()]
  return any(t.dtype == tf.resource for t in op.inputs) or any(
      op_types.makes_variable(op.graph.get_operation_by_name(name))
      for name in names if name != op.name)


def can_be_copied(op: tf.Operation) -> bool:
  """Returns whether `op` stands for itself: no branch, loop or function."""
  return (hasattr(tf.raw_ops, op.type) and op.type not in _CONTROL_FLOW and
          op._get_control_flow_context() is None and
          not any(value.HasField('func') or value.list.func
                  for value in op.node_def.attr.values()) and
          not any(tensor.dtype._is_ref_dtype
                  for tensor in (*op.inputs, *op.outputs)))


def can_be_called_again(op: tf.Operation) -> bool:
  """Returns whether `op` runs functions without state, and no loop.

  What is in a function may know the number of rows, where that is static.
  """
  return op_types.calls_functions(op) and 'While' not in op.type and not any(
      inner.op_def.is_stateful and not inner.type.startswith('ReadVariable') or
      'While' in inner.type for inner in op_types.ops_of_bodies(op))


def replace_control_inputs(op: tf.Operation,
                           inputs: Sequence[tf.Operation]) -> None:
  """Makes `op` wait for `inputs` and for nothing else.

  Public TensorFlow graphs are append-only.

  Args:
    op: An operation of a graph that has not run yet.
    inputs: Operations of the same graph.
  """
  op._remove_all_control_inputs()
  op._add_control_inputs(list(inputs))
