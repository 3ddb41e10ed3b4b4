# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches of a `tf.cond`, of control flow v1 and v2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

# The graph of a function, with its captures.
from tensorflow.python.framework.func_graph import FuncGraph as FuncGraph

# The graphs of branches and loops of control flow v2.
from tensorflow.python.ops.control_flow_v2_func_graphs import (
  CondBranchFuncGraph as CondBranchFuncGraph,
)
from tensorflow.python.ops.control_flow_v2_func_graphs import (
  WhileBodyFuncGraph as WhileBodyFuncGraph,
)

from tfplugin._tf_internals import op_types

tf1 = tf.compat.v1


def outer_contexts(context: object | None) -> Iterator:
  """Yields a branch or loop of control flow v1, if any, and those around it."""
  while context is not None:
    yield context
    context = context.outer_context


def _outer_functions(graph: tf.Graph) -> Iterator[FuncGraph]:
  """Yields the graph of a function, branch or loop, and those around it."""
  while isinstance(graph, FuncGraph):
    yield graph
    graph = graph.outer_graph


def outside_of_functions(tensor: tf.Tensor) -> tf.Tensor:
  """Returns the tensor that a function captured as `tensor`, else `tensor`."""
  while isinstance(getattr(tensor, 'graph', None), FuncGraph):
    outer = next((outside for outside, inside in tensor.graph.captures
                  if inside is tensor), None)
    if outer is None:
      break
    tensor = outer
  return tensor


def conditions_of(op: tf.Operation) -> list[tf.Tensor]:
  """Returns the conditions of branches and loops around `op`, once complete."""
  return _conditions(op.graph, op._get_control_flow_context())


def is_in_loop(op: tf.Operation) -> bool:
  """Returns whether `op` is in a `tf.while_loop`; no public API exists."""
  return any(
      context.IsWhileContext()
      for context in outer_contexts(op._get_control_flow_context())) or any(
          isinstance(graph, WhileBodyFuncGraph)
          for graph in _outer_functions(op.graph))


def call_of(graph: tf.Graph) -> tf.Operation | None:
  """Returns the op that calls a graph's function, branch or loop, or None."""
  if not isinstance(graph, FuncGraph):
    return None
  return next((op for op in graph.outer_graph.get_operations()
               if graph in op_types.functions_of(op)), None)


def sources_of(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors that `tensor` is made from.

  An input of a function, branch or loop comes from the inputs of the calling
  op, and from the values that a loop's body returns. A constant in a branch or
  loop of control flow v1 is there on a condition. No public API finds them.
  """
  graph = tensor.graph
  inputs = graph.inputs if isinstance(graph, FuncGraph) else []
  index = next((i for i, t in enumerate(inputs) if t is tensor), None)
  if index is None:
    return list(tensor.op.inputs) or [
        context.pivot for context in outer_contexts(
            tensor.op._get_control_flow_context())
        if context.pivot is not None and context.pivot.op is not tensor.op]
  call = call_of(graph)
  is_loop = call is not None and call.type in ('While', 'StatelessWhile')
  # A branch has a condition before the inputs. A loop whose gradient is being
  # built has more inputs in its body than its op, which TensorFlow makes again.
  place = index if call is None or is_loop else (
      len(call.inputs) - len(inputs) + index)
  if call is None or place >= len(call.inputs):
    return [outside for outside, inside in graph.captures
            if inside is tensor and tf.is_symbolic_tensor(outside)]
  repeated = [other.outputs[index] for other in op_types.functions_of(call)
              if is_loop and len(other.outputs) == len(inputs)]
  return [call.inputs[place], *repeated]


def _conditions(graph: tf.Graph, context: object | None) -> list[tf.Tensor]:
  """Returns the conditions around a place; contexts hold them privately."""
  found = []
  for outer in outer_contexts(context):
    if outer.IsCondContext():
      found.append(outer.pred)
    elif outer.IsWhileContext():
      found.append(outer.pivot)
  for function in _outer_functions(graph):
    call = call_of(function)
    if isinstance(function, CondBranchFuncGraph) and call is not None:
      found.append(call.inputs[0])
    elif isinstance(function, WhileBodyFuncGraph) and call is not None:
      found += [tensor for other in op_types.functions_of(call)
                if other is not function for tensor in other.outputs]
  return found


class Place:
  """The place where ops are made: the graph, or a branch of a `tf.cond` in it.

  With control flow v1 a branch is a private context of the graph, shared by all
  threads. With v2 it is a separate graph. `before` has control dependencies,
  `scope` is for `tf.name_scope`.
  """

  def __init__(self):
    """Stores the current place."""
    self.graph = tf1.get_default_graph()
    self.context = self.graph._get_control_flow_context()
    self.before = self.graph._current_control_dependencies()
    self.scope = (self.graph.get_name_scope() + '/').removeprefix('/')

  def is_branch_of(self, outer: Place) -> bool:
    """Returns whether this is in a branch of a `tf.cond` in `outer`."""
    graph, context = self.graph, self.context
    while graph is not outer.graph:
      if not isinstance(graph, CondBranchFuncGraph) or context is not None:
        return False
      graph = graph.outer_graph
      # Between two branches of control flow v2 is no context of v1.
      context = outer.context if graph is outer.graph else None
    while context is not outer.context:
      if context is None or not context.IsCondContext():
        return False
      context = context.outer_context
    return self != outer

  def conditions(self) -> list[tf.Tensor]:
    """Returns the conditions around the place; the graph must be complete."""
    return _conditions(self.graph, self.context)

  def __eq__(self, other: object) -> bool:
    return (isinstance(other, Place) and self.graph is other.graph and
            self.context is other.context)

  __hash__ = None

  @contextlib.contextmanager
  def entered(self) -> Iterator[None]:
    """Makes ops in this place, with only its own control dependencies."""
    # This also leaves the current branch.
    with self.graph.as_default(), tf1.control_dependencies(None):
      self.graph._set_control_flow_context(self.context)
      with tf1.control_dependencies(self.before):
        yield


def is_switch(op: tf.Operation) -> bool:
  """Returns whether `op` passes a value into a branch of control flow v1."""
  return op.type == 'Switch'
