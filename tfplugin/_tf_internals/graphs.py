# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs, collections, devices and contexts of graphs."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

# `tf.compat.v1.colocate_with` warns and takes no distributed variable.
from tensorflow.python.framework import ops

# Whether ops are compiled; see `is_compiled`.
from tensorflow.python.ops import control_flow_util

from tfplugin._tf_internals import branches
from tfplugin._tf_internals import op_types

tf1 = tf.compat.v1

_UNPLACED = re.compile(
    r'Cannot colocate nodes .*/(cond|then|else)/.*incompatible jobs', re.S)


def redirect_input(op: tf.Operation, index: int, tensor: tf.Tensor) -> None:
  """Makes input `index` of `op` read `tensor`; the graph must not have run."""
  op._update_input(index, tensor)


def redirect(ops: Iterable[tf.Operation], old: tf.Tensor,
             new: tf.Tensor) -> None:
  """Makes each input of `ops` that is `old` read `new`, likewise."""
  for op in ops:
    for index, tensor in enumerate(op.inputs):
      if tensor is old:
        redirect_input(op, index, new)


def move_beside(op: tf.Operation, other: tf.Operation) -> None:
  """Puts `op` beside `other`; the graph must not have run."""
  place = tf1.AttrValue()
  place.list.s.append(f'loc:@{other.name}'.encode())
  op._set_attr('_class', place)
  op._set_device(other.device)


def add_control_inputs(op: tf.Operation, inputs: Sequence[tf.Operation],
                       ) -> None:
  """Makes `op` wait for `inputs`; public TensorFlow graphs are append-only.

  TensorFlow counts a branch or loop of v2 as run before its body has run. For
  one of these, `op` waits for its results. The graph must not have run yet.
  """
  op._add_control_inputs([
      waited for each in inputs for waited in _results_of(each) or [each]])


def result_to_await(tensor: tf.Tensor) -> tf.Tensor:
  """Returns `tensor`, or an identity if an op that waits for it might not.

  A control edge from a function's call waits for the function's writes, and not
  for its results: TensorFlow replaces the call by the ops of the function.
  """
  if tf.executing_eagerly() or not op_types.calls_functions(tensor.op):
    return tensor
  with tf1.device(tensor.device):
    return tf.identity(tensor)


def _results_of(op: tf.Operation) -> list[tf.Operation]:
  """Returns the identities of the results of a branch or loop."""
  if not op_types.calls_functions(op):
    return []
  return [consumer for output in op.outputs for consumer in output.consumers()
          if consumer.type == 'Identity']


def watch_new_ops(graph: tf.Graph, around: Callable[..., None]) -> None:
  """Calls `around` for each op that is made in `graph` from now on.

  `around(create, op, *args, **kwargs)` calls `create` with the other arguments.
  It makes no ops, but may add control inputs.
  """
  graph._create_op_helper = functools.partial(around, graph._create_op_helper)


@contextlib.contextmanager
def outside_branches() -> Iterator[None]:
  """Leaves control dependencies and the branches of `tf.cond`.

  The bodies of loops and functions are not left: their ops belong to each
  iteration or call. `tf.control_dependencies(None)` leaves loops of control
  flow v1 too, and no branch of v2.
  """
  graph = _graph_outside_branches()
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
  """Returns whether new ops are in a function, and not only in branches.

  `tf.inside_function()` counts a branch of control flow v2 as a function.
  """
  return isinstance(_graph_outside_branches(), branches.FuncGraph)


def _graph_outside_branches() -> tf.Graph:
  """Returns the current graph, or the one around branches of v2."""
  graph = tf1.get_default_graph()
  while isinstance(graph, branches.CondBranchFuncGraph):
    graph = graph.outer_graph
  return graph


def is_usable_here(tensor: tf.Tensor) -> bool:
  """Returns whether new ops can read `tensor` in the current branch."""
  graph = tf1.get_default_graph()
  while graph is not tensor.graph and isinstance(
      graph, branches.CondBranchFuncGraph):
    graph = graph.outer_graph
  return graph is tensor.graph and _context_of(tensor.op) in _with_outer(
      graph._get_control_flow_context())


def branch_of(op: tf.Operation) -> tuple:
  """Returns the graph of `op`, and its branch or loop of control flow v1."""
  return op.graph, _context_of(op)


def can_precede(first: tf.Operation, second: tf.Operation) -> bool:
  """Returns whether branches and loops let `second` wait for `first`.

  An op that waits for an op in a branch does not run if the branch is not
  taken. Control flow v1 has no edge between two loops.
  """
  contexts = _with_outer(_context_of(second))
  return (_context_of(first) in contexts and
          _innermost_loop(_context_of(first)) is
          _innermost_loop(_context_of(second)))


def repeats_loop_of(op: tf.Operation, other: tf.Operation) -> bool:
  """Returns whether `op` begins another iteration of a loop around `other`."""
  return (op_types.repeats_loop(op) and
          _context_of(op) in _with_outer(_context_of(other)))


def _context_of(op: tf.Operation) -> object | None:
  """Returns the branch or loop of control flow v1 in which `op` runs."""
  context = op._get_control_flow_context()
  # An op that enters a loop waits for ops outside of it.
  return context.outer_context if context and op_types.enters_loop(
      op) else context


def _with_outer(context: object | None) -> list:
  """Returns a branch or loop and the outer ones; None is the last."""
  return [*branches.outer_contexts(context), None]


def _innermost_loop(context: object | None) -> object | None:
  """Returns the innermost loop at or around a branch or loop, or None."""
  return next((c for c in branches.outer_contexts(context)
               if c.IsWhileContext()), None)


def branch_or_loop() -> object | None:
  """Returns the current branch or loop of control flow v1, or None."""
  return _innermost(tf1.get_default_graph()._get_control_flow_context())


def is_in_branch_or_loop(op: tf.Operation) -> bool:
  """Returns whether `op` is in a branch or loop of control flow v1."""
  return _innermost(op._get_control_flow_context()) is not None


def _innermost(context: object | None) -> object | None:
  """Returns the innermost branch or loop of a control flow context."""
  return next((c for c in branches.outer_contexts(context)
               if c.IsCondContext() or c.IsWhileContext()), None)


@contextlib.contextmanager
def private_train_ops() -> Iterator[None]:
  """Keeps the train ops of a `tf.cond` branch inside the branch.

  `Optimizer.apply_gradients` adds its op to the collection of train ops. The
  graph of a branch of v2 shares its collections with the outer graph, where
  `import_meta_graph` of an export fails on that op. With control flow v1 the op
  belongs to the graph itself, and this function does nothing.
  """
  graph = tf1.get_default_graph()
  if isinstance(graph, branches.FuncGraph):
    key = tf1.GraphKeys.TRAIN_OP
    graph._collections = {
        **graph._collections, key: list(graph._collections.get(key, ()))}
  yield


@contextlib.contextmanager
def summaries_moved(moved: list[tf.Tensor]) -> Iterator[None]:
  """Moves the summaries that are made in a branch from its graph to a list.

  Outside of it, a collection lacks summaries of a branch of v2. It has those of
  v1, and they fail where the branch is not taken. No public API removes one.
  """
  graph = tf1.get_default_graph()
  made = graph._collections.setdefault(tf1.GraphKeys.SUMMARIES, [])
  known = len(made)
  yield
  moved += filter(is_usable_here, made[known:])
  made[known:] = [summary for summary in made[known:]
                  if not is_usable_here(summary)]


@contextlib.contextmanager
def private_variables() -> Iterator[None]:
  """Keeps variables that are made inside out of the graph's collections.

  `tf.Variable` adds each to the global and the trainable ones, and unlike
  `get_variable` has no argument against it. A copy of a variable on another
  device must not be saved or trained separately.
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


def colocate_with(variable: tf.Variable | tf.Operation | None,
                  ignore_existing: bool = False):
  """Places ops on the device of `variable`, in a graph and in eager execution.

  `variable` may be an operation in a graph. The public
  `tf.compat.v1.colocate_with` logs a deprecation warning that the user cannot
  act on. `tf.device(variable.device)` would count in the round robin of
  `replica_device_setter`.
  """
  return ops.colocate_with(variable, ignore_existing)


def behind(value: Any, operations: Sequence[tf.Operation], scope: str) -> Any:
  """Returns `value`, where it is, available once `operations` have run."""
  if value is None or not operations:
    return value

  def identity(tensor):
    with colocate_with(tensor.op, True):
      return tf.identity(tensor)

  with tf1.control_dependencies(operations), tf1.name_scope(scope):
    return tf.nest.map_structure(identity, value, expand_composites=True)


def device_functions() -> list:
  """Returns the current device functions, the outermost first.

  Under v2 behaviour, a thread that builds into the same graph starts without
  them. No public API lists them.
  """
  return tf1.get_default_graph()._device_functions_outer_to_inner


def is_compiled() -> bool:
  """Returns whether XLA compiles new ops: a TPU, or `jit_compile=True`."""
  return bool(control_flow_util.GraphOrParentsInXlaContext(
      tf1.get_default_graph()))


def is_unplaced_condition(error: tf.errors.OpError) -> bool:
  """Returns whether a condition could not be placed beside its variable."""
  return bool(_UNPLACED.search(error.message))
