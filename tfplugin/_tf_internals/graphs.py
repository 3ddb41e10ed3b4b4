# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inputs, collections, devices and contexts of graphs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Callable
from typing import Optional
from typing import Union

import tensorflow as tf

# A `tf.cond` branch of control flow v2 is built in one.
from tensorflow.python.framework import func_graph

# `tf.compat.v1.colocate_with` warns and takes no distributed variable.
from tensorflow.python.framework import ops

# Whether ops are compiled; see `is_compiled`.
from tensorflow.python.ops import control_flow_util

# The graph of one branch of a `tf.cond` of control flow v2.
from tensorflow.python.ops import control_flow_v2_func_graphs

from tfplugin._tf_internals import op_types

tf1 = tf.compat.v1

_UNPLACED = re.compile(
    r'Cannot colocate nodes .*/(cond|then|else)/.*incompatible jobs', re.S)


def redirect_input(op: tf.Operation, index: int, tensor: tf.Tensor) -> None:
  """Makes input `index` of `op` read `tensor`.

  Public TensorFlow graphs are append-only.

  Args:
    op: An operation of a graph that has not run yet.
    index: The number of the input.
    tensor: The new input; same dtype and a compatible shape.
  """
  op._update_input(index, tensor)


def move_beside(op: tf.Operation, other: tf.Operation) -> None:
  """Puts `op` on the device of `other`; public TensorFlow never moves an op.

  Args:
    op: An operation of a graph that has not run yet; it may sit beside another.
    other: The operation that it sits beside from now on.
  """
  place = tf1.AttrValue()
  place.list.s.append(f'loc:@{other.name}'.encode())
  op._set_attr('_class', place)
  op._set_device(other.device)


def add_control_inputs(op: tf.Operation, inputs: Sequence[tf.Operation],
                       ) -> None:
  """Makes `op` wait for `inputs`; public TensorFlow graphs are append-only.

  A branch or a loop counts as run before all that is in it has run: in its
  place `op` waits for its results.

  Args:
    op: An operation of a graph that has not run yet.
    inputs: Operations of the same graph.
  """
  op._add_control_inputs([
      waited for each in inputs for waited in _results_of(each) or [each]])


def _results_of(op: tf.Operation) -> list[tf.Operation]:
  """Returns the ops that hand on what a branch or a loop has computed."""
  if not op_types.calls_functions(op):
    return []
  return [consumer for output in op.outputs for consumer in output.consumers()
          if consumer.type == 'Identity']


def watch_new_ops(graph: tf.Graph,
                  watch: Callable[[tf.Operation], None]) -> None:
  """Calls `watch` with each op that is made in `graph` from now on.

  Of a step that a model builds piece by piece, nothing public tells when an op
  joins two pieces.

  Args:
    graph: A graph, or the body of a function.
    watch: Makes no ops; it may add control inputs.
  """
  create = graph._create_op_helper

  def create_and_watch(op, *args, **kwargs):
    create(op, *args, **kwargs)
    watch(op)

  graph._create_op_helper = create_and_watch


@contextlib.contextmanager
def outside_branches() -> Iterator[None]:
  """Leaves control dependencies and the branches of `tf.cond`.

  The body of a loop, and that of a function, is not left: what is made inside
  belongs to each iteration and call. `tf.control_dependencies(None)` leaves
  loops of control flow v1, too, and no branch of v2.
  """
  graph = tf1.get_default_graph()
  while isinstance(graph, control_flow_v2_func_graphs.CondBranchFuncGraph):
    graph = graph.outer_graph
  with graph.as_default():
    loop = _innermost_loop(graph._get_control_flow_context())
    with tf.control_dependencies(None):
      if loop is not None:
        loop.Enter()
      try:
        yield
      finally:
        if loop is not None:
          loop.Exit()


def is_in_function() -> bool:
  """Whether ops made now are in a function, and not in mere branches.

  `tf.inside_function()` takes a branch of control flow v2 for a function.
  """
  graph = tf1.get_default_graph()
  while isinstance(graph, control_flow_v2_func_graphs.CondBranchFuncGraph):
    graph = graph.outer_graph
  return isinstance(graph, func_graph.FuncGraph)


def is_usable_here(tensor: tf.Tensor) -> bool:
  """Whether ops made now can take `tensor`, whatever branch is around.

  Args:
    tensor: Made in this graph or another one, perhaps in a branch.
  """
  graph = tf1.get_default_graph()
  while graph is not tensor.graph and isinstance(
      graph, control_flow_v2_func_graphs.CondBranchFuncGraph):
    graph = graph.outer_graph
  return graph is tensor.graph and _context_of(tensor.op) in _with_outer(
      graph._get_control_flow_context())


def branch_of(op: tf.Operation) -> tuple:
  """Returns the graph and the branch or loop of control flow v1 of `op`.

  Args:
    op: An operation of a graph.
  """
  return op.graph, _context_of(op)


def can_precede(first: tf.Operation, second: tf.Operation) -> bool:
  """Whether `second` may wait for `first`, as far as branches and loops go.

  Where a branch is not taken, what waits for an op in it does not run. Control
  flow v1 knows no edge between two loops.

  Args:
    first: An operation of a graph.
    second: Another one, of the same graph.
  """
  contexts = _with_outer(_context_of(second))
  return (_context_of(first) in contexts and
          _innermost_loop(_context_of(first)) is
          _innermost_loop(_context_of(second)))


def repeats_loop_of(op: tf.Operation, other: tf.Operation) -> bool:
  """Whether `op` begins another iteration of a loop that `other` is in.

  Args:
    op: An operation of a graph.
    other: Another one, of the same graph.
  """
  return (op_types.repeats_loop(op) and
          _context_of(op) in _with_outer(_context_of(other)))


def _context_of(op: tf.Operation) -> Optional[object]:
  """Returns the branch or loop of control flow v1 that `op` runs in."""
  context = op._get_control_flow_context()
  # What enters a loop waits for what is outside of it.
  return context.outer_context if context and op_types.enters_loop(
      op) else context


def _with_outer(context: Optional[object]) -> list:
  """Returns a branch or loop and those around it; None is the last."""
  contexts = [context]
  while context is not None:
    context = context.outer_context
    contexts.append(context)
  return contexts


def _innermost_loop(context: Optional[object]) -> Optional[object]:
  """Returns the loop that a branch or loop is in, or is."""
  return next((c for c in _with_outer(context)
               if c is not None and c.IsWhileContext()), None)


def branch_or_loop() -> Optional[object]:
  """Returns the `tf.cond` or `tf.while_loop` of control flow v1 around here.

  No public API tells.
  """
  return _innermost(tf1.get_default_graph()._get_control_flow_context())


def is_in_branch_or_loop(op: tf.Operation) -> bool:
  """Whether `op` is in a `tf.cond` or `tf.while_loop` of control flow v1.

  No public API tells.

  Args:
    op: An operation of a graph.
  """
  return _innermost(op._get_control_flow_context()) is not None


def _innermost(context: Optional[object]) -> Optional[object]:
  """Returns the innermost branch or loop of a control flow context."""
  while context is not None and not (
      context.IsCondContext() or context.IsWhileContext()):
    context = context.outer_context
  return context


@contextlib.contextmanager
def private_train_ops() -> Iterator[None]:
  """Keeps the train ops of a `tf.cond` branch inside the branch.

  `Optimizer.apply_gradients` adds its op to that collection, and the graph of a
  control-flow-v2 branch shares its collections with the graph around it. The op
  of a branch has no meaning there: `import_meta_graph` of an export fails on
  it. No public API gives a branch graph its own list. With control flow v1 the
  op belongs to the graph itself, and nothing is done.
  """
  graph = tf1.get_default_graph()
  if isinstance(graph, func_graph.FuncGraph):
    key = tf1.GraphKeys.TRAIN_OP
    graph._collections = {
        **graph._collections, key: list(graph._collections.get(key, ()))}
  yield


@contextlib.contextmanager
def private_variables() -> Iterator[None]:
  """Keeps variables that are made inside out of the graph's collections.

  `tf.Variable` lists each among the global and the trainable ones, and unlike
  `get_variable` has no argument against it. A copy of a variable on
  another device is neither saved nor trained by itself; no public API makes one
  in a graph. The collections of a user's graph are as before, afterwards.
  """
  with tf.init_scope():
    graph = tf1.get_default_graph()
  collections = graph._collections
  kept = {key: collections.get(key, []) for key in (
      tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES)}
  collections.update((key, list(variables)) for key, variables in kept.items())
  try:
    yield
  finally:
    collections.update(kept)


def colocate_with(variable: Union[tf.Variable, tf.Operation]):
  """Places ops on the device of `variable`, in a graph and in eager execution.

  The public `tf.compat.v1.colocate_with` logs a deprecation warning that the
  user could do nothing about, and `tf.device(variable.device)` would count as a
  placement in `replica_device_setter`'s round robin.

  Args:
    variable: The variable, or in a graph the operation, to sit next to.
  """
  return ops.colocate_with(variable)


def device_functions() -> list:
  """Returns the device functions around here, from the outermost in.

  A thread that builds into the same graph starts without them under v2
  behaviour; no public API lists them.
  """
  return tf1.get_default_graph()._device_functions_outer_to_inner


def is_compiled() -> bool:
  """Whether ops made now are compiled by XLA: a TPU, or `jit_compile=True`.

  No public function tells. XLA has no kernel for some ops on variables.
  """
  return bool(control_flow_util.GraphOrParentsInXlaContext(
      tf1.get_default_graph()))


def is_unplaced_condition(error: tf.errors.OpError) -> bool:
  """Whether TensorFlow could not place a condition with a variable it reads.

  Only the message tells. In control flow v2 a condition is placed where it is
  built, and with it the handles that it gets, which are on the parameter
  servers.

  Args:
    error: What a session raised.
  """
  return bool(_UNPLACED.search(error.message))
