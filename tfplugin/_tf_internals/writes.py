# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops of a graph that write a variable, and the origins of their values.

The ops in the bodies of functions are included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from tfplugin._tf_internals import branches
from tfplugin._tf_internals import op_types

_METHODS = {
    'Assign': 'assign', 'AssignVariableOp': 'assign',
    'AssignAdd': 'assign_add', 'AssignAddVariableOp': 'assign_add',
    'AssignSub': 'assign_sub', 'AssignSubVariableOp': 'assign_sub',
    'ResourceScatterAdd': 'scatter_add', 'ScatterAdd': 'scatter_add',
    'ResourceScatterSub': 'scatter_sub', 'ScatterSub': 'scatter_sub',
    'ResourceScatterUpdate': 'scatter_update',
    'ScatterUpdate': 'scatter_update'}

_PYTHON = ('EagerPyFunc', 'PyFunc', 'PyFuncStateless')
_SWITCHES = ('RefSwitch', 'Switch')
_MERGES = ('Merge', 'RefMerge')


class Write(NamedTuple):
  """An op that writes a variable.

  Attributes:
    op: The op, maybe in the body of a function.
    root: The op itself, or the op of the graph that calls the function.
  """

  op: tf.Operation
  root: tf.Operation


def writes_of(variable: tf.Variable, graph: tf.Graph) -> list[Write]:
  """Returns all ops that write `variable` in `graph`, maybe a function's graph.

  An op that is not known as a read counts as a write.
  """
  # A variable of several devices has a copy on each.
  entries = [_entry(copy, graph)
             for copy in getattr(variable, 'values', [variable])]
  return [Write(op, root or op) for entry in entries if entry is not None
          for op, root in _writes(entry, None, set())]


def writes_through(handle: tf.Tensor) -> list[Write]:
  """Returns all ops that write through `handle`, which may be a ref."""
  return [Write(op, root or op) for op, root in _writes(handle, None, set())]


def method_of_write(op: tf.Operation) -> str | None:
  """Returns the variable method that `op` implements; None for another write.

  Input 1 is the value; for a scatter, 1 the indices and 2 the slices.
  """
  return _METHODS.get(op.type)


def initializes(op: tf.Operation, handle: tf.Tensor) -> bool:
  """Returns whether a write sets the first value, maybe from a checkpoint."""
  pending, seen = [tensor.op for tensor in list(op.inputs)[1:]], set()
  is_first = op.name == f'{handle.op.name}/Assign'
  while pending and not is_first:
    source = pending.pop()
    is_first = source.type == 'RestoreV2'
    if source not in seen:
      seen.add(source)
      pending += [tensor.op for tensor in source.inputs]
  return is_first


def ops_of_value(write: Write) -> set[tf.Operation]:
  """Returns the ops that the written value is computed from.

  A condition counts if it selects the value, and not if it only decides whether
  the write runs. Only the types of ops tell the two cases apart. A variable is
  among the ops; its own value is not followed.
  """
  pending, seen = [(write.op, False)], set()
  while pending:
    op, is_selected = pending.pop()
    if (op, is_selected) in seen:
      continue
    seen.add((op, is_selected))
    is_selected = is_selected or op.type in _MERGES
    pending += [(source, is_selected)
                for source in _sources(op, write, is_selected)]
  return {op for op, _ in seen}


def brings_value(op: tf.Operation) -> bool:
  """Returns whether the value of `op` comes from outside the graph.

  Such an op reads an input, a queue or a table, draws at random, or calls
  Python.
  """
  if op_types.makes_variable(op) or op.type == 'Const':
    return False
  if op.type == 'Placeholder':
    return not isinstance(op.graph, branches.FuncGraph)
  return bool(op.outputs) and (
      not op.inputs or op.type in (*_PYTHON, 'PlaceholderWithDefault') or
      _is_random(op))


def _entry(variable: tf.Variable, graph: tf.Graph) -> tf.Tensor | None:
  """Returns the tensor that stands for `variable` in `graph`, or None."""
  handle = (variable.handle if hasattr(variable, 'handle')
            else variable.op.outputs[0])
  if not isinstance(graph, branches.FuncGraph):
    return handle if tf.is_symbolic_tensor(handle) else None
  outside = _entry(variable, graph.outer_graph)
  return next((inside for captured, inside in graph.captures
               if captured is handle or captured is outside), None)


def _writes(tensor: tf.Tensor, root: tf.Operation | None, seen: set,
            ) -> Iterator[tuple[tf.Operation, tf.Operation | None]]:
  """Yields the ops that write the variable behind `tensor`, and their roots."""
  if tensor.ref() in seen:
    return
  seen.add(tensor.ref())
  for op in tensor.consumers():
    following = _following(op, tensor)
    for other in following:
      inside = other.graph is not op.graph
      yield from _writes(other, root or op if inside else root, seen)
    if not following and op.type not in op_types.READS and (
        _takes_variable(op, tensor)):
      yield op, root


def _following(op: tf.Operation, tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors, made by `op`, that stand for the same variable."""
  if op_types.calls_functions(op):
    # A branch does not get the condition.
    return [inner for graph in op_types.functions_of(op)
            for outer, inner in zip(
                op.inputs[len(op.inputs) - len(graph.inputs):], graph.inputs)
            if outer is tensor]
  return [output for output in op.outputs
          if op.type in op_types.PASSES_ON and output.dtype == tensor.dtype]


def _takes_variable(op: tf.Operation, tensor: tf.Tensor) -> bool:
  """Returns whether `op` takes the variable, and not a reference's value."""
  return tensor.dtype == tf.resource or any(
      argument.is_ref for argument in op.op_def.input_arg)


def _is_random(op: tf.Operation) -> bool:
  """Returns whether `op` draws at random. No public API says so."""
  return 'seed' in op.node_def.attr or (
      op.type.startswith('Stateless') and not op_types.calls_functions(op))


def _sources(op: tf.Operation, write: Write, is_selected: bool,
             ) -> Iterator[tf.Operation]:
  """Yields the ops that the value of `op` is directly computed from."""
  inputs = list(op.inputs)
  if op.type in _SWITCHES and not is_selected:
    inputs = inputs[:1]
  elif op.type == 'Placeholder' and op.graph is not write.root.graph:
    inputs = [outer for outer, inner in getattr(op.graph, 'captures', ())
              if inner is op.outputs[0]] or list(write.root.inputs)
  yield from (tensor.op for tensor in inputs)
  if is_selected:  # A constant of a branch waits for the condition.
    yield from op.control_inputs
  for graph in op_types.functions_of(op):
    yield from (tensor.op for tensor in graph.outputs)
