# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What an op does to numbers that are sums or means over rows.

TensorFlow tells the type of an op and no more. What a type means is written
down here, once; nothing else in the project knows types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

from tfplugin._tf_internals import op_types

_ROLES = {
    # Of the first input, whatever the others say of its form.
    'pass': 'Identity IdentityN Cast Reshape Squeeze StopGradient '
            'CheckNumerics PreventGradient Snapshot Print Enter '
            'NextIteration Switch RefSwitch RefIdentity EnsureShape '
            'DeepCopy',
    'slice': 'StridedSlice',
    # Likewise, and the rows may not be the first dimension any more.
    'move': 'Transpose ExpandDims ReverseV2 Exit TensorArrayGatherV3 '
            'TensorListStack',
    'add': 'Add AddV2 AddN Sub Neg Pack Concat ConcatV2',
    'multiply': 'Mul MulNoNan',
    'divide': 'RealDiv Div DivNoNan TruncateDiv FloorDiv Xdivy',
    'sum': 'Sum',
    'mean': 'Mean',
    'squares': 'L2Loss',
    'fill': 'Fill',
    'sizes': 'Shape ShapeN Size',
    'join': 'Merge RefMerge Select SelectV2',
    'product': 'MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3',
    'call': 'PartitionedCall StatefulPartitionedCall If StatelessIf Case '
            'StatelessCase',
    'source': 'IteratorGetNext Placeholder PlaceholderWithDefault '
              'QueueDequeueV2 QueueDequeueManyV2 QueueDequeueUpToV2',
}
# Not by row: they take some rows, or one number of all.
_MIX_ROWS = frozenset(
    'Where Unique UniqueV2 DynamicPartition DynamicStitch Cumsum Cumprod '
    'SegmentSum SegmentMean SegmentMax SegmentMin UnsortedSegmentSum '
    'UnsortedSegmentMax UnsortedSegmentMin SparseSegmentSum SparseSegmentMean '
    'SparseSegmentSqrtN Roll RandomShuffle ScatterNd TensorScatterUpdate '
    'TensorScatterAdd Reverse ReverseV2 ListDiff Bincount Einsum'.split())
_REDUCE = frozenset('Max Min Prod All Any ArgMax ArgMin EuclideanNorm'.split())
# The constants that `tf.shape` and `tf.size` of a static shape are.
_STATIC_SIZE = re.compile(r'(^|/)(Shape|Size)(_\d+)?$')
_STATIC_ONES = re.compile(r'(^|/)ones_like(_\d+)?$')
_ROLE_OF = {op: role for role, ops in _ROLES.items() for op in ops.split()}


def role(op: tf.Operation) -> str:
  """Returns what `op` does to sums and means, '' for anything else.

  Args:
    op: An operation of a graph.
  """
  return _ROLE_OF.get(op.type, '')


def operands(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the inputs that the value of `tensor` is made of.

  The others are shapes, dimensions and conditions.

  Args:
    tensor: A tensor of a graph.
  """
  op = tensor.op
  inputs = list(op.inputs)
  if op.type == 'IdentityN':
    return [inputs[tensor.value_index]]
  if op.type in ('Select', 'SelectV2', 'Concat'):
    return inputs[1:]
  if op.type == 'ConcatV2':
    return inputs[:-1]
  if role(op) in ('pass', 'move', 'slice', 'sum', 'mean'):
    return inputs[:1]
  return inputs


def signs(op: tf.Operation) -> list[float]:
  """Returns 1 or -1 for each operand of a sum.

  Args:
    op: Of the role 'add'.
  """
  if op.type == 'Neg':
    return [-1.0]
  return [1.0, -1.0] if op.type == 'Sub' else [1.0] * len(op.inputs)


def static_size(op: tf.Operation) -> list[int]:
  """Returns the sizes that `op` holds; none if it is no static size.

  The size of a static shape is a constant like any other, but for its name.

  Args:
    op: An operation of a graph.
  """
  if op.type != 'Const' or not _STATIC_SIZE.search(op.name):
    return []
  return [int(size) for size in tf.get_static_value(op.outputs[0]).ravel()]


def static_ones(op: tf.Operation) -> int | None:
  """Returns how many rows of ones `op` holds for those of another tensor.

  Args:
    op: An operation of a graph.
  """
  found = op.type == 'Const' and _STATIC_ONES.search(op.name)
  return op.outputs[0].shape[0] if found and op.outputs[0].shape.rank else None


def index_of_slice(op: tf.Operation) -> int | None:
  """Returns the index in the first dimension of `x[index]`, None if unknown.

  Args:
    op: Of the role 'slice'.
  """
  begin = tf.get_static_value(op.inputs[1])
  return int(begin[0]) if begin is not None and begin.size == 1 and (
      op.get_attr('shrink_axis_mask') == 1) else None


def reduced_axes(op: tf.Operation) -> list[int] | None:
  """Returns the dimensions that a sum or mean goes over, None if unknown.

  Args:
    op: Of the role 'sum' or 'mean'.
  """
  axes = tf.get_static_value(op.inputs[1])
  rank = op.inputs[0].shape.rank
  if axes is None or rank is None:
    return None
  return [int(axis) % rank for axis in axes.ravel()] if rank else []


def mixes_rows(op: tf.Operation) -> bool:
  """Whether a row of the result is made of others than its own, or may be.

  Args:
    op: Of no role, with values for each row among its inputs.
  """
  if op.type in _REDUCE:
    axes = reduced_axes(op)
    return axes is None or 0 in axes or op.outputs[0].shape.rank == 0
  return op.type in _MIX_ROWS


def takes_from_first_input(op: tf.Operation) -> bool:
  """Whether `op` takes slices of its first input, as others of them say.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('Gather', 'GatherNd') or (
      op.type == 'GatherV2' and not op.get_attr('batch_dims'))


def cuts_off(op: tf.Operation) -> bool:
  """Whether `op` makes integers of what need not be some.

  Args:
    op: That casts, divides or takes a mean.
  """
  if op.outputs[0].dtype.is_floating or op.outputs[0].dtype.is_complex:
    return False
  return op.type != 'Cast' or not op.inputs[0].dtype.is_integer


def keeps_first_dimension(op: tf.Operation) -> bool:
  """Whether a slice has all of the first dimension.

  Args:
    op: Of the role 'slice'.
  """
  masks = [op.get_attr(name) for name in ('begin_mask', 'end_mask')]
  begin = tf.get_static_value(op.inputs[3])
  forward = begin is not None and begin.size and begin[0] == 1
  return bool(op.get_attr('ellipsis_mask') & 1 or forward and all(
      mask & 1 for mask in masks))


def multiplies_rows(op: tf.Operation) -> bool:
  """Whether a matrix product is a sum over the rows of its first factor.

  Args:
    op: Of the role 'product'.
  """
  return op.type == 'MatMul' and op.get_attr('transpose_a')


def bodies(op: tf.Operation,
           ) -> list[tuple[Sequence[tf.Tensor], Sequence[tf.Tensor]]]:
  """Returns `(inputs, outputs)` of each function that `op` may call.

  The inputs are those of the last ones of `op`. No public API gives the graph
  of a function that an op calls.

  Args:
    op: Of the role 'call'.
  """
  return [(graph.inputs, graph.outputs) for graph in op_types.functions_of(op)]


def repeated_by(op: tf.Operation | None,
                ) -> list[tuple[Sequence[tf.Tensor], Sequence[tf.Tensor]]]:
  """Returns the `bodies` that `op` runs again with what they return.

  Args:
    op: An operation of a graph, or None.
  """
  if op is None or op.type not in ('While', 'StatelessWhile'):
    return []
  return [(inputs, outputs) for inputs, outputs in bodies(op)
          if len(inputs) == len(outputs) == len(op.inputs)
          and list(outputs) and outputs[0].dtype == op.inputs[0].dtype]


def is_constant(op: tf.Operation) -> bool:
  """Whether `op` has no value but the one in the graph.

  Args:
    op: An operation of a graph.
  """
  return op.type == 'Const'
