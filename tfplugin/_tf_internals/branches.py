# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The branches of a `tf.cond`, of control flow v1 and v2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

# A function has a graph of its own, and knows what it captured.
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


def outside_of_functions(tensor: tf.Tensor) -> tf.Tensor:
  """Returns the tensor that a function, or a branch, captured as `tensor`.

  Its graph has a placeholder for it, and tells the two apart in a class that is
  not public.

  Args:
    tensor: A tensor; returned as it is, if it is no such placeholder.
  """
  while isinstance(getattr(tensor, 'graph', None), FuncGraph):
    outer = next((outside for outside, inside in tensor.graph.captures
                  if inside is tensor), None)
    if outer is None:
      break
    tensor = outer
  return tensor


def conditions_of(op: tf.Operation) -> list[tf.Tensor]:
  """Returns the conditions of the branches and loops that `op` is in.

  No public API does.

  Args:
    op: An operation of a graph, a branch or a function, after it is built.
  """
  return _conditions(op.graph, op._get_control_flow_context())


def is_in_loop(op: tf.Operation) -> bool:
  """Whether `op` is in a `tf.while_loop`; no public API tells.

  Args:
    op: An operation of a graph, of a branch, a loop or a function.
  """
  context, graph = op._get_control_flow_context(), op.graph
  while context is not None:
    if context.IsWhileContext():
      return True
    context = context.outer_context
  while isinstance(graph, FuncGraph):
    if isinstance(graph, WhileBodyFuncGraph):
      return True
    graph = graph.outer_graph
  return False


def call_of(graph: tf.Graph) -> Optional[tf.Operation]:
  """Returns the op that runs a function, branch or loop; None: there is none.

  No public API finds it.

  Args:
    graph: Of the function; another graph is run by no op.
  """
  if not isinstance(graph, FuncGraph):
    return None
  return next((op for op in graph.outer_graph.get_operations()
               if graph in op_types.functions_of(op)), None)


def sources_of(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors that `tensor` is made from.

  An input of a function, branch or loop is made from what the op is given that
  runs it, and from what a loop returns. No public API finds them.

  Args:
    tensor: A tensor of a graph, or of a function in it.
  """
  graph = tensor.graph
  inputs = graph.inputs if isinstance(graph, FuncGraph) else []
  index = next((i for i, t in enumerate(inputs) if t is tensor), None)
  if index is None:
    return list(tensor.op.inputs)
  call = call_of(graph)
  if call is None:  # It is being built.
    return [outside for outside, inside in graph.captures
            if inside is tensor and tf.is_symbolic_tensor(outside)]
  repeated = [other.outputs[index] for other in op_types.functions_of(call)
              if call.type in ('While', 'StatelessWhile') and
              len(other.outputs) == len(inputs)]
  return [call.inputs[len(call.inputs) - len(inputs) + index], *repeated]


def _conditions(graph: tf.Graph, context: Optional[object]) -> list[tf.Tensor]:
  """The conditions around a place; contexts keep them in private classes."""
  found = []
  while context is not None:
    if context.IsCondContext():
      found.append(context.pred)
    elif context.IsWhileContext():
      found.append(context.pivot)
    context = context.outer_context
  while isinstance(graph, FuncGraph):
    call = call_of(graph)
    if isinstance(graph, CondBranchFuncGraph) and call is not None:
      found.append(call.inputs[0])
    elif isinstance(graph, WhileBodyFuncGraph) and call is not None:
      found += [tensor for other in op_types.functions_of(call)
                if other is not graph for tensor in other.outputs]
    graph = graph.outer_graph
  return found


class Place:
  """Where ops are being made: the graph, or a branch of a `tf.cond` in it.

  With control flow v1 a branch is a private context of the graph, the same for
  all threads; with v2 it is a graph of its own.

  Attributes:
    graph: The graph.
    context: The context of control flow v1 in it, or None.
    before: What ops wait for there.
  """

  def __init__(self):
    """Takes the place of the caller."""
    self.graph = tf1.get_default_graph()
    self.context = self.graph._get_control_flow_context()
    self.before = self.graph._current_control_dependencies()

  def is_branch_of(self, outer: Place) -> bool:
    """Whether `outer` holds the `tf.cond`, in a branch of which this is."""
    graph, context = self.graph, self.context
    while graph is not outer.graph:
      if not isinstance(graph, CondBranchFuncGraph) or context is not None:
        return False
      graph, context = graph.outer_graph, outer.context
    while context is not outer.context:
      if context is None or not context.IsCondContext():
        return False
      context = context.outer_context
    return self != outer

  def conditions(self) -> list[tf.Tensor]:
    """Returns the conditions of what is around, after it is built."""
    return _conditions(self.graph, self.context)

  def __eq__(self, other: object) -> bool:
    return (isinstance(other, Place) and self.graph is other.graph and
            self.context is other.context)

  __hash__ = None

  @contextlib.contextmanager
  def entered(self) -> Iterator[None]:
    """Lets ops be made there, after what ops wait for there, and that alone."""
    # Leaves the branch that is around, too.
    with self.graph.as_default(), tf1.control_dependencies(None):
      self.graph._set_control_flow_context(self.context)
      with tf1.control_dependencies(self.before):
        yield


def is_switch(op: tf.Operation) -> bool:
  """Whether `op` hands a value into a branch of control flow v1.

  Args:
    op: An operation of a graph.
  """
  return op.type == 'Switch'
