# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ops of a graph that write a variable, in the bodies of functions too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

# The graphs of functions and branches know what they capture.
from tensorflow.python.framework import func_graph

from tfplugin._tf_internals import op_types

_READS = frozenset((
    'DisableCopyOnRead', 'IsVariableInitialized', 'ReadVariableOp',
    'ResourceGather', 'ResourceGatherNd', 'VarIsInitializedOp',
    'VariableShape'))
_PASSES_ON = frozenset((
    'Enter', 'Exit', 'Identity', 'IdentityN', 'Merge', 'NextIteration',
    'RefEnter', 'RefExit', 'RefIdentity', 'RefMerge', 'RefNextIteration',
    'RefSwitch', 'Switch'))
_METHODS = {
    'Assign': 'assign', 'AssignVariableOp': 'assign',
    'AssignAdd': 'assign_add', 'AssignAddVariableOp': 'assign_add',
    'AssignSub': 'assign_sub', 'AssignSubVariableOp': 'assign_sub',
    'ResourceScatterAdd': 'scatter_add', 'ScatterAdd': 'scatter_add',
    'ResourceScatterSub': 'scatter_sub', 'ScatterSub': 'scatter_sub',
    'ResourceScatterUpdate': 'scatter_update',
    'ScatterUpdate': 'scatter_update'}


class Write(NamedTuple):
  """An op that writes a variable.

  Attributes:
    op: The op, maybe in the body of a function.
    root: The op itself, or the one of the graph that calls the function.
  """

  op: tf.Operation
  root: tf.Operation


def writes_of(variable: tf.Variable, graph: tf.Graph) -> list[Write]:
  """Returns all ops that write `variable` in `graph`.

  No public API tells what an op does to a variable. An op that is not known to
  read only counts as one that writes.

  Args:
    variable: A resource variable, or a reference variable.
    graph: The graph of the variable, or that of a branch or a function.
  """
  # A variable of several devices has a copy on each.
  entries = [_entry(copy, graph)
             for copy in getattr(variable, 'values', [variable])]
  return [Write(op, root or op) for entry in entries if entry is not None
          for op, root in _writes(entry, None, set())]


def writes_through(handle: tf.Tensor) -> list[Write]:
  """Returns all ops that write what `handle` refers to; see `writes_of`.

  Args:
    handle: The handle of a variable, or the output of a reference variable.
  """
  return [Write(op, root or op) for op, root in _writes(handle, None, set())]


def method_of_write(op: tf.Operation) -> Optional[str]:
  """Returns the method of a variable that `op` is; None: another write.

  Input 1 is the value that it is given; of a scatter it is the indices, and
  input 2 the slices. No public API tells.

  Args:
    op: An op that writes a variable.
  """
  return _METHODS.get(op.type)


def initializes(op: tf.Operation, handle: tf.Tensor) -> bool:
  """Whether `op` gives a variable its first value, maybe of a checkpoint.

  A variable knows its initialiser, and a handle does not; the name tells.

  Args:
    op: An op that writes the variable.
    handle: As for `writes_through`.
  """
  pending, seen = [tensor.op for tensor in list(op.inputs)[1:]], set()
  is_first = op.name == f'{handle.op.name}/Assign'
  while pending and not is_first:
    source = pending.pop()
    is_first = source.type == 'RestoreV2'
    if source not in seen:
      seen.add(source)
      pending += [tensor.op for tensor in source.inputs]
  return is_first


def _entry(variable: tf.Variable, graph: tf.Graph) -> Optional[tf.Tensor]:
  """Returns the tensor that stands for `variable` in `graph`, or None."""
  handle = (variable.handle if hasattr(variable, 'handle')
            else variable.op.outputs[0])
  if not isinstance(graph, func_graph.FuncGraph):
    return handle if tf.is_symbolic_tensor(handle) else None
  outside = _entry(variable, graph.outer_graph)
  return next((inside for captured, inside in graph.captures
               if captured is handle or captured is outside), None)


def _writes(tensor: tf.Tensor, root: Optional[tf.Operation], seen: set,
            ) -> Iterator[tuple[tf.Operation, Optional[tf.Operation]]]:
  """Yields the ops that write what `tensor` refers to, each with its root."""
  if tensor.ref() in seen:
    return
  seen.add(tensor.ref())
  for op in tensor.consumers():
    following = _following(op, tensor)
    for other in following:
      inside = other.graph is not op.graph
      yield from _writes(other, root or op if inside else root, seen)
    if not following and op.type not in _READS and _takes_variable(op, tensor):
      yield op, root


def _following(op: tf.Operation, tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors that stand for what `tensor` does, made by `op`."""
  if op_types.calls_functions(op):
    # A branch does not get the condition.
    return [inner for graph in op_types.functions_of(op)
            for outer, inner in zip(
                op.inputs[len(op.inputs) - len(graph.inputs):], graph.inputs)
            if outer is tensor]
  return [output for output in op.outputs
          if op.type in _PASSES_ON and output.dtype == tensor.dtype]


def _takes_variable(op: tf.Operation, tensor: tf.Tensor) -> bool:
  """Whether `op` gets the variable, not the value of a reference variable."""
  return tensor.dtype == tf.resource or any(
      argument.is_ref for argument in op.op_def.input_arg)
