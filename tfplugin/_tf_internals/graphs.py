# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inputs, collections, devices and contexts of graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

# A `tf.cond` branch of control flow v2 is built in one.
from tensorflow.python.framework import func_graph

# `tf.compat.v1.colocate_with` warns and takes no distributed variable.
from tensorflow.python.framework import ops

# Whether ops are compiled; see `is_compiled`.
from tensorflow.python.ops import control_flow_util

from tfplugin._tf_internals import op_types

tf1 = tf.compat.v1


def redirect_input(op: tf.Operation, index: int, tensor: tf.Tensor) -> None:
  """Makes input `index` of `op` read `tensor`.

  Public TensorFlow graphs are append-only.

  Args:
    op: An operation of a graph that has not run yet.
    index: The number of the input.
    tensor: The new input; same dtype and a compatible shape.
  """
  op._update_input(index, tensor)


def add_control_inputs(op: tf.Operation, inputs: Sequence[tf.Operation],
                       ) -> None:
  """Makes `op` wait for `inputs`; public TensorFlow graphs are append-only."""
  op._add_control_inputs(inputs)


def order_before_variable_reads(operation: tf.Operation,
                                targets: Sequence[tf.Tensor],
                                exclude: Sequence[tf.Operation] = ()) -> None:
  """Makes every read of a variable that `targets` need wait for `operation`.

  Every op upstream of `targets` that consumes the handle (or the ref) of a
  variable gets a control dependency on `operation`. The public
  `control_dependencies` acts on new ops only; the model is already built.

  Args:
    operation: An op without inputs from the model.
    targets: Tensors of the same graph; other graphs' tensors are skipped.
    exclude: Variables' own ops whose consumers are left alone.
  """
  excluded = {*exclude, operation}
  pending = [t.op for t in targets if t.graph is operation.graph]
  seen = set(pending)
  while pending:
    consumer = pending.pop()
    sources = [i.op for i in consumer.inputs]
    if consumer not in excluded and any(
        op_types.is_variable(s) and s not in excluded for s in sources):
      consumer._add_control_input(operation)
    for source in (*sources, *consumer.control_inputs):
      if source not in seen and source is not operation:
        seen.add(source)
        pending.append(source)


def branch_or_loop() -> Optional[object]:
  """Returns the `tf.cond` or `tf.while_loop` of control flow v1 around here.

  No public API tells.
  """
  return _innermost(tf1.get_default_graph()._get_control_flow_context())


def graphs_between(graph: tf.Graph, outer: tf.Graph) -> list:
  """Returns `graph` and the graphs around it, up to `outer`, which is left out.

  The graphs of branches and functions have no public class.

  Args:
    graph: A graph, or that of a branch or function.
    outer: A graph around it, or itself.
  """
  found = []
  while isinstance(graph, func_graph.FuncGraph) and graph is not outer:
    found.append(graph)
    graph = graph.outer_graph
  return found


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


def colocate_with(variable: tf.Variable):
  """Places ops on the device of `variable`, in a graph and in eager execution.

  The public `tf.compat.v1.colocate_with` logs a deprecation warning that the
  user could do nothing about, and `tf.device(variable.device)` would count as a
  placement in `replica_device_setter`'s round robin.

  Args:
    variable: The variable to sit next to.
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
