# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The types of the ops that TensorFlow's public functions make.

A function is documented by its result; the ops that it adds to a graph are
private. A graph that is built can be read by their types only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

# Which inputs a function or a branch of control flow v2 does not write.
from tensorflow.python.framework import auto_control_deps_utils

# The data of a captured handle; see `is_variable`.
from tensorflow.python.ops import handle_data_util

tf1 = tf.compat.v1

# The op of a reference variable.
REFERENCE = 'VariableV2'

_CALLS = (
    'Case', 'If', 'PartitionedCall', 'StatefulPartitionedCall', 'StatelessCase',
    'StatelessIf', 'StatelessWhile', 'While')
_READS = ('DisableCopyOnRead', 'ReadVariableOp', 'ResourceGather',
          'ResourceGatherNd', 'VariableShape', 'VarIsInitializedOp')
# The same for a variable that is no resource.
_READS_OF_REF = ('Identity', 'DeepCopy', 'IsVariableInitialized')
# What branches and loops of control flow v1 put between a variable and its use.
_HANDS_ON = ('Switch', 'RefSwitch', 'Enter', 'RefEnter', 'Identity',
             'RefIdentity')
# The name of the division in every mean of `tf.compat.v1.losses`.
_DIVISION = re.compile(r'(^|/)value(_\d+)?$')
# Attribute of a loss whose name does not tell.
_IS_MEAN = 'tfplugin_is_mean'


def is_variable(op: tf.Operation) -> bool:
  """Whether `op` yields a variable's handle or ref, captured ones included.

  A tensor does not tell publicly whether it is the handle of a variable.

  Args:
    op: An operation of a graph.
  """
  if makes_variable(op):
    return True
  if op.type != 'Placeholder' or op.outputs[0].dtype != tf.resource:
    return False
  # A variable's handle knows the shape of the value; a table's does not.
  data = handle_data_util.get_resource_handle_data(op.outputs[0])
  return data.is_set and bool(data.shape_and_type)


def makes_variable(op: tf.Operation) -> bool:
  """Whether `op` makes a variable's handle, or is a reference variable.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('VarHandleOp', 'VariableV2', 'Variable')


def may_vary(op: tf.Operation) -> bool:
  """Whether `op` may have another value than the one in the graph.

  Args:
    op: An operation of a graph.
  """
  return op.type != 'Const'


def calls_functions(op: tf.Operation) -> bool:
  """Whether `op` runs functions: a branch or a loop of v2, or a call.

  Args:
    op: An operation of a graph.
  """
  return op.type in _CALLS


def functions_of(op: tf.Operation) -> list[tf.Graph]:
  """Returns the graphs of the functions that `op` may run.

  Those of a loop are its condition and its body. No public API gives them.

  Args:
    op: An operation of a graph.
  """
  if not calls_functions(op):
    return []
  names = [function.name for value in op.node_def.attr.values()
           for function in (value.func, *value.list.func) if function.name]
  return [op.graph._get_function(name).graph for name in names]


def ops_of_bodies(op: tf.Operation) -> Iterator[tf.Operation]:
  """Yields the ops of all functions that `op` may run, deeply.

  No public API gives the graph of a function that an op calls.

  Args:
    op: An operation of a graph.
  """
  for graph in functions_of(op):
    for inner in graph.get_operations():
      yield inner
      yield from ops_of_bodies(inner)


def begins_work(op: tf.Operation) -> bool:
  """Whether `op` may find another value in each step, whatever its inputs.

  It reads a variable, takes from an iterator or a queue, draws at random, calls
  Python, or calls a function that may do so; or it enters a loop, whose body
  may. What only makes the handle of such a thing does not.

  Args:
    op: An operation of a graph.
  """
  if enters_loop(op) or any(is_variable(origin_of(t)) for t in op.inputs):
    return not _hands_on(op)
  return op.op_def.is_stateful and not any(
      _is_handle(tensor) for tensor in op.outputs)


def writes_variable(op: tf.Operation, variable: tf.Operation) -> bool:
  """Whether `op` may write `variable`, itself or in a function that it calls.

  Args:
    op: An operation of a graph.
    variable: The op of a variable, or of its captured handle.
  """
  if _hands_on(op) or op.type in (*_READS, *_READS_OF_REF):
    return False
  uses = {index for index, tensor in enumerate(op.inputs)
          if _is_handle(tensor) and origin_of(tensor) is variable}
  if not uses:
    return False
  try:
    return not uses.issubset(op.get_attr(
        auto_control_deps_utils.READ_ONLY_RESOURCE_INPUTS_ATTR))
  except ValueError:  # No function.
    return True


def origin_of(tensor: tf.Tensor) -> tf.Operation:
  """Returns the op that made a handle or ref; of others, the tensor's own.

  Branches and loops of control flow v1 hand it on.

  Args:
    tensor: A tensor of a graph.
  """
  op = tensor.op
  while _hands_on(op) and _is_handle(op.inputs[0]):
    op = op.inputs[0].op
  return op


def enters_loop(op: tf.Operation) -> bool:
  """Whether `op` brings a value into a loop of control flow v1.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('Enter', 'RefEnter')


def repeats_loop(op: tf.Operation) -> bool:
  """Whether `op` brings a value to the next iteration, in control flow v1.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('NextIteration', 'RefNextIteration')


def takes_lock(op: tf.Operation) -> bool:
  """Whether `op` waits for a mutex.

  Args:
    op: An operation of a graph.
  """
  return op.type == 'MutexLock'


def _hands_on(op: tf.Operation) -> bool:
  """Whether the first output of `op` is the handle or ref that it got."""
  return op.type in _HANDS_ON and _is_handle(op.outputs[0])


def _is_handle(tensor: tf.Tensor) -> bool:
  """Whether `tensor` is the handle of a resource, or a ref."""
  return (tensor.dtype == tf.resource or
          tensor.dtype != tensor.dtype.base_dtype)


def is_same_computation(a: tf.Operation, b: tf.Operation) -> bool:
  """Whether two ops compute the same from the same inputs.

  Random numbers and what is fed never do; neither do calls of functions, whose
  names differ.

  Args:
    a: An operation of a graph.
    b: Another one, perhaps of another graph.
  """
  if a.type != b.type or len(a.inputs) != len(b.inputs):
    return False
  # A copy is stateful only in order that nobody shares its buffer.
  if a.op_def.is_stateful and a.type != 'DeepCopy' and (
      a.type not in _READS):
    return False
  if a.type.startswith('Placeholder') or not a.inputs and a.type != 'Const':
    return False
  return _attributes(a) == _attributes(b)


def _attributes(op: tf.Operation) -> dict[str, bytes]:
  """Returns what `op` was made with, but for notes such as known shapes."""
  return {key: value.SerializeToString(deterministic=True)
          for key, value in op.node_def.attr.items()
          if not key.startswith('_')}


def mean_loss_denominator(op: tf.Operation) -> Optional[tf.Tensor]:
  """Returns the count, if `op` divides a sum of losses by it, or None.

  The reductions of `tf.compat.v1.losses` and of Keras do not return the count.

  Args:
    op: An operation of a graph.
  """
  if (op.type == 'DivNoNan' and (
      _DIVISION.search(op.name) or hasattr(op.outputs[0], _IS_MEAN))
      # Not a count for each row, as `mean_pairwise_squared_error` has.
      and op.inputs[1].shape.rank == 0
      # Not the value of a metric: a metric divides the values of variables.
      and op.inputs[0].op.type == 'Sum'):
    return op.inputs[1]
  return None


def note_mean(loss: tf.Tensor) -> None:
  """Lets `mean_loss_denominator` know the op of a mean loss.

  Args:
    loss: A loss that Keras 3 has reduced; no name tells its division.
  """
  setattr(loss, _IS_MEAN, True)


def names_tensor(op: tf.Operation) -> bool:
  """Whether `op` hands one tensor on under another name, and does no more.

  That of a branch or a loop hands on what others wait for.

  Args:
    op: An operation of a graph.
  """
  return op.type == 'Identity' and not op.control_inputs and not (
      calls_functions(op.inputs[0].op) or
      op.inputs[0].op.type in ('Merge', 'Exit'))


def accumulates_gradients(op: tf.Operation) -> bool:
  """Whether `op` makes the queue of a `tf.compat.v1.ConditionalAccumulator`.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('ConditionalAccumulator', 'SparseConditionalAccumulator',
                     'ResourceConditionalAccumulator')


def fills_table_or_queue(op: tf.Operation) -> bool:
  """Whether `op` changes a mutable table, or puts something into a queue.

  Args:
    op: An operation of a graph.
  """
  return op.type in (
      'LookupTableInsertV2', 'LookupTableRemoveV2', 'QueueEnqueueV2',
      'QueueEnqueueManyV2')


def is_tpu_sum(op: tf.Operation) -> bool:
  """Whether `op` is a `tf.compat.v1.tpu.cross_replica_sum`.

  Args:
    op: An operation of a graph.
  """
  return op.type == 'CrossReplicaSum'


def identity_gradient(name: str):
  """Gives the identities of a `with` block the gradient registered as `name`.

  `gradient_override_map` asks for the types of ops; `tf.identity` and
  `tf.identity_n` do not promise any.

  Args:
    name: The name that `tf.RegisterGradient` was given.
  """
  return tf1.get_default_graph().gradient_override_map(
      {'Identity': name, 'IdentityN': name})
