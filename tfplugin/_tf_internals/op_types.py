# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Types of the ops that TensorFlow's public functions make.

The documentation of a function covers its result; the ops that it adds to a
graph are private. A complete graph can be read only by the types of its ops.
"""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

# The attribute with the read-only inputs of a function or branch of v2.
from tensorflow.python.framework import auto_control_deps_utils

# The data of a captured handle; see `is_variable`.
from tensorflow.python.ops import handle_data_util

tf1 = tf.compat.v1

# The op of a reference variable.
REFERENCE = 'VariableV2'

_CALLS = (
    'Case', 'If', 'PartitionedCall', 'StatefulPartitionedCall', 'StatelessCase',
    'StatelessIf', 'StatelessWhile', 'While')
# Ops that read the value of a resource variable.
VALUE_READS = frozenset(('ReadVariableOp', 'ResourceGather',
                         'ResourceGatherNd'))
# Ops that take a variable and do not write it.
# TensorFlow calls them stateful, but they take no new value.
_TAKE_NOTHING = frozenset('Assert LookupTableFind LookupTableFindV2 '
                          'LookupTableSize LookupTableSizeV2'.split())
READS = VALUE_READS | {
    'DisableCopyOnRead', 'IsVariableInitialized', 'VarIsInitializedOp',
    'VariableShape'}
# The same, where the variable may be a ref.
_READS_OF_REF = READS | {'DeepCopy', 'Identity'}
# Ops whose output is the handle or ref of their first input. Branches and loops
# of control flow v1 have them between a variable and its use.
_HANDS_ON = frozenset((
    'Enter', 'Identity', 'RefEnter', 'RefIdentity', 'RefSwitch', 'Switch'))
# Ops with an output that is a handle or ref among their inputs. The added ones
# have several inputs, or lead around a loop, so `origin_of` stops there.
PASSES_ON = _HANDS_ON | {
    'Exit', 'IdentityN', 'Merge', 'NextIteration', 'RefExit', 'RefMerge',
    'RefNextIteration'}
# From a variable to the op that uses its value.
_HOPS = 4


def is_variable(op: tf.Operation) -> bool:
  """Returns whether `op` yields a variable's handle or ref, maybe captured."""
  if makes_variable(op):
    return True
  if op.type != 'Placeholder' or op.outputs[0].dtype != tf.resource:
    return False
  # A variable's handle knows the shape of the value; a table's does not.
  data = handle_data_util.get_resource_handle_data(op.outputs[0])
  return data.is_set and bool(data.shape_and_type)


def makes_variable(op: tf.Operation) -> bool:
  """Returns whether `op` makes a variable's handle, or a reference variable."""
  return op.type in ('VarHandleOp', 'VariableV2', 'Variable')


def may_vary(op: tf.Operation) -> bool:
  """Returns whether `op` may have another value in another run."""
  return op.type != 'Const'


def calls_functions(op: tf.Operation) -> bool:
  """Returns whether `op` runs functions: a branch or loop of v2, or a call."""
  return op.type in _CALLS


def functions_of(op: tf.Operation) -> list[tf.Graph]:
  """Returns the graphs of the functions that `op` may run: two for a loop."""
  if not calls_functions(op):
    return []
  names = [function.name for value in op.node_def.attr.values()
           for function in (value.func, *value.list.func) if function.name]
  return [op.graph._get_function(name).graph for name in names]


def ops_of_bodies(op: tf.Operation) -> Iterator[tf.Operation]:
  """Yields the ops of all functions that `op` may run, deeply."""
  for graph in functions_of(op):
    for inner in graph.get_operations():
      yield inner
      yield from ops_of_bodies(inner)


def reads_whole_variable(op: tf.Operation) -> bool:
  """Returns whether `op` yields the value of a variable of its own graph."""
  return (op.type in ('ReadVariableOp', 'Identity') and
          makes_variable(op.inputs[0].op) and not _is_handle(op.outputs[0]))


def is_value_of_variable(tensor: tf.Tensor) -> bool:
  """Returns whether `tensor` is the value of a variable, perhaps reshaped."""
  op = tensor.op
  for _ in range(_HOPS):
    if makes_variable(op):
      return True
    if not op.inputs:
      return False
    op = op.inputs[0].op
  return False


def table_of_lookup(op: tf.Operation) -> tf.Operation | None:
  """Returns the variable's op if `op` looks up rows of a variable, else None.

  Input 1 has the ids. The variable is of the op's own graph.
  """
  if op.type not in ('ResourceGather', 'GatherV2') or (
      op.get_attr('batch_dims')):
    return None
  read = op.inputs[0].op
  if op.type == 'ResourceGather':
    return read if makes_variable(read) else None
  # A reference variable; input 2 is the axis.
  return read.inputs[0].op if reads_whole_variable(read) and (
      tf.get_static_value(op.inputs[2]) == 0) else None


def takes_new_values(op: tf.Operation) -> bool:
  """Returns whether `op` takes its values from outside of the graph.

  It begins work, or must be fed, and does not only read a variable, or a
  vocabulary, or check something.
  """
  return op.type == 'Placeholder' or begins_work(op) and not (
      op.type in VALUE_READS or op.type in _TAKE_NOTHING or
      reads_whole_variable(op))


def begins_work(op: tf.Operation) -> bool:
  """Returns whether `op` may yield a new value in each step for equal inputs.

  Such an op reads a variable, an iterator or a queue, draws at random, calls
  Python, or calls a function that may do so. Or it enters a loop, whose body
  may do so. An op that only makes the handle of such an object is not one.
  """
  if enters_loop(op) or any(is_variable(origin_of(t)) for t in op.inputs):
    return not _forwards_handle(op)
  return op.op_def.is_stateful and not any(
      _is_handle(tensor) for tensor in op.outputs)


def writes_variable(op: tf.Operation, variable: tf.Operation) -> bool:
  """Returns whether `op` may write `variable`, also in a function it calls.

  `variable` is the op of a variable, or of its captured handle.
  """
  if _forwards_handle(op) or op.type in _READS_OF_REF:
    return False
  uses = {index for index, tensor in enumerate(op.inputs)
          if _is_handle(tensor) and origin_of(tensor) is variable}
  if not uses:
    return False
  try:
    return not uses.issubset(op.get_attr(
        auto_control_deps_utils.READ_ONLY_RESOURCE_INPUTS_ATTR))
  except ValueError:  # `op` is no function.
    return True


def origin_of(tensor: tf.Tensor) -> tf.Operation:
  """Returns the op that made a handle or ref; otherwise the tensor's op."""
  op = tensor.op
  while _forwards_handle(op) and _is_handle(op.inputs[0]):
    op = op.inputs[0].op
  return op


def enters_loop(op: tf.Operation) -> bool:
  """Returns whether `op` passes a value into a loop of control flow v1."""
  return op.type in ('Enter', 'RefEnter')


def repeats_loop(op: tf.Operation) -> bool:
  """Returns whether `op` passes a value to the next iteration of a v1 loop."""
  return op.type in ('NextIteration', 'RefNextIteration')


def takes_lock(op: tf.Operation) -> bool:
  """Returns whether `op` waits for a mutex."""
  return op.type == 'MutexLock'


def _forwards_handle(op: tf.Operation) -> bool:
  """Returns whether the first output of `op` is its input handle or ref."""
  return op.type in _HANDS_ON and _is_handle(op.outputs[0])


def _is_handle(tensor: tf.Tensor) -> bool:
  """Returns whether `tensor` is the handle of a resource, or a ref."""
  return (tensor.dtype == tf.resource or
          tensor.dtype != tensor.dtype.base_dtype)


def is_same_computation(a: tf.Operation, b: tf.Operation) -> bool:
  """Returns whether two ops compute the same from the same inputs.

  They may be in different graphs. False for random numbers, for fed values, and
  for calls of functions, whose names differ.
  """
  if a.type != b.type or len(a.inputs) != len(b.inputs):
    return False
  # A copy is stateful only to keep its buffer unshared.
  if a.op_def.is_stateful and a.type != 'DeepCopy' and a.type not in READS:
    return False
  if a.type.startswith('Placeholder') or not a.inputs and a.type != 'Const':
    return False
  return _attributes(a) == _attributes(b)


def _attributes(op: tf.Operation) -> dict[str, bytes]:
  """Returns the attributes of `op`, without notes such as known shapes."""
  return {key: value.SerializeToString(deterministic=True)
          for key, value in op.node_def.attr.items()
          if not key.startswith('_')}


def names_tensor(op: tf.Operation) -> bool:
  """Returns whether `op` only passes one tensor on under another name.

  An identity behind a branch or a loop is excluded, since other ops wait for
  it.
  """
  return op.type == 'Identity' and not op.control_inputs and not (
      calls_functions(op.inputs[0].op) or
      op.inputs[0].op.type in ('Merge', 'Exit'))


def accumulates_gradients(op: tf.Operation) -> bool:
  """Returns whether `op` makes a `tf.compat.v1.ConditionalAccumulator`."""
  return op.type in ('ConditionalAccumulator', 'SparseConditionalAccumulator',
                     'ResourceConditionalAccumulator')


def fills_table_or_queue(op: tf.Operation) -> bool:
  """Returns whether `op` changes a mutable table, or adds to a queue."""
  return op.type in (
      'LookupTableInsertV2', 'LookupTableRemoveV2', 'QueueEnqueueV2',
      'QueueEnqueueManyV2')


def is_tpu_sum(op: tf.Operation) -> bool:
  """Returns whether `op` is a `tf.compat.v1.tpu.cross_replica_sum`."""
  return op.type == 'CrossReplicaSum'


def identity_gradient(name: str):
  """Sets the gradient of the identities in a `with` to the one named `name`."""
  return tf1.get_default_graph().gradient_override_map(
      {'Identity': name, 'IdentityN': name})
