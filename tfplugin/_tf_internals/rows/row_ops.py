# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that compute each row of a batch from the same row, and sizes as ops.

The lists affect the speed of towers, not their results: an op that is missing
is computed once, on the rows of all towers. Shape inference finds the rows of
inputs and outputs (`towers/row_analysis.py`). It cannot say whether an op
that keeps the number of rows mixes them. This module does. No public API says
it, and the names of ops are not public either.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

# The functions behind `tf.shape`, `tf.size`, `tf.ones_like`, `tf.zeros_like`.
from tensorflow.python.ops import array_ops

from tfplugin._tf_internals import op_types
from tfplugin._tf_internals import replacing

# Ops that compute each element from the elements at the same place. Here and
# below, shape inference must refuse inputs with different numbers of rows.
_ELEMENTWISE = frozenset("""
    Abs AccumulateNV2 Acos Acosh Add AddN AddV2 Angle ApproximateEqual
    AsString Asin Asinh Atan Atan2 Atanh BesselI0 BesselI0e BesselI1
    BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e
    BesselY0 BesselY1 Betainc BitwiseAnd BitwiseOr BitwiseXor
    BroadcastTo Bucketize Cast Ceil Complex ComplexAbs Conj Cos Cosh
    Dawsn Digamma Div DivNoNan Elu EluGrad EnsureShape
    Equal Erf Erfc Erfinv Exp Expint Expm1 FakeQuantWithMinMaxArgs
    FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars Floor
    FloorDiv FloorMod FresnelCos FresnelSin Greater GreaterEqual
    Identity IdentityN Igamma IgammaGradA Igammac Imag Inv
    Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less
    LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum
    Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike
    Polygamma PopulationCount Pow PreventGradient Real RealDiv
    Reciprocal RegexFullMatch RegexReplace Relu Relu6
    Relu6Grad ReluGrad RightShift Rint Round Rsqrt SelectV2
    Selu SeluGrad Sigmoid Sign Sin Sinh Snapshot Softplus
    SoftplusGrad Softsign SoftsignGrad Spence Sqrt Square
    SquaredDifference StaticRegexFullMatch StaticRegexReplace
    StopGradient StringJoin StringLength StringLower StringStrip
    StringToHashBucket StringToHashBucketFast StringToHashBucketStrong
    StringToNumber StringUpper Sub Tan Tanh TruncateDiv
    TruncateMod Xdivy Xlog1py Xlogy ZerosLike Zeta""".split())

# Likewise for two inputs of one shape, of which inference sees the first.
_OF_TWO = frozenset("""
    InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad""".split())

# The rows may have any axis: an output that still has rows keeps them apart.
_ANY_AXIS = frozenset("""
    All Any ArgMax ArgMin BatchMatMul BatchMatMulV2 BatchMatMulV3
    ConcatV2 ConjugateTranspose EuclideanNorm ExpandDims MatMul Max
    Mean Min MirrorPad OneHot Pack Pad PadV2 Prod ResourceGather Slice
    Split SplitV Squeeze Sum Tile Transpose Unpack""".split())
_SEVERAL = frozenset("""
    BatchMatMul BatchMatMulV2 BatchMatMulV3 ConcatV2 Pack""".split())

# Rows are the first dimension of each input that has them.
_FIRST_AXIS = frozenset("""
    AvgPool AvgPool3D BiasAdd Conv Conv2D Conv2DBackpropInput
    Conv2DBackpropInputV2 Conv3D Conv3DBackpropInputV2 DecodeRaw
    DepthToSpace DepthwiseConv2dNative Dilation2D ExtractImagePatches
    ExtractVolumePatches FusedBatchNorm FusedBatchNormV2
    FusedBatchNormV3 InTopK InTopKV2 MaxPool MaxPool3D MaxPoolGrad
    MaxPoolV2 ResizeArea ResizeBicubic
    ResizeBilinear ResizeNearestNeighbor Select
    SoftmaxCrossEntropyWithLogits SpaceToDepth
    SparseSoftmaxCrossEntropyWithLogits""".split())
_SEVERAL_FIRST = frozenset("""
    InTopK InTopKV2 MaxPoolGrad Select
    SoftmaxCrossEntropyWithLogits
    SparseSoftmaxCrossEntropyWithLogits""".split())

# Ops that mix along the last dimensions, with the number of these.
_MIXED_FROM_END = {
    **dict.fromkeys("""
        FFT IFFT LogSoftmax NthElement Softmax TopK TopKV2""".split(), 1),
    **dict.fromkeys("""
        Cholesky FFT2D IFFT2D MatrixBandPart MatrixDeterminant MatrixDiagPart
        MatrixDiagPartV3 MatrixInverse MatrixSolve MatrixTriangularSolve
        """.split(), 2),
    'MatrixDiag': 1, 'MatrixDiagV3': 1}

# Ops that mix along the dimensions that input 1 lists.
_MIXED_ALONG = frozenset("""
    Cumprod Cumsum CumulativeLogsumexp ReverseV2""".split())

# The sources of batches.
_SOURCES = frozenset("""
    IteratorGetNext Placeholder PlaceholderWithDefault QueueDequeueV2
    QueueDequeueManyV2 QueueDequeueUpToV2""".split())

_SIZES = frozenset(('Shape', 'ShapeN', 'Size'))

# Ops whose result is one of their inputs, or tells which one is larger.
_CHOICES = frozenset("""
    Abs ClipByValue Equal Greater GreaterEqual Less LessEqual Max Maximum Min
    Minimum NotEqual Relu Relu6 Select SelectV2 Sign""".split())
_BATCH_NORM = frozenset(
    ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3'))


@dataclasses.dataclass(frozen=True)
class Rows:
  """The place of the rows of a batch in a tensor.

  Attributes:
    axis: The dimension.
    factor: How many adjacent entries a row has in that dimension.
    rank: The rank of the tensor.
    before: The number of elements of the dimensions before it; None: unknown.
    behind: Likewise, of a row behind these dimensions.
  """

  axis: int
  factor: int
  rank: int
  before: int | None
  behind: int | None


def keeps_rows_apart(op: tf.Operation, inputs: Mapping[int, Rows],
                     outputs: Sequence[Rows]) -> bool:
  """Returns whether each row of `outputs` depends on the same row of `inputs`.

  `op` must have outputs with as many rows as its inputs, for every number of
  rows. `inputs` has the rows of each input that has them, by its index.
  """
  places = [*inputs.values(), *outputs]
  if op.type == 'Reshape':
    # No dimension before the rows is merged with them or split from them.
    return not has_own_gradient(op) and list(inputs) == [0] and any(
        None not in sizes and len(sizes) == 1
        for sizes in ({rows.before for rows in places},
                      {rows.behind for rows in places}))
  # A function of the program's own may look at all rows.
  if has_own_gradient(op) or len({rows.factor for rows in places}) > 1:
    return False
  if op.type in _ELEMENTWISE:
    return True
  if op.type in _RULES:
    return _RULES[op.type](op, inputs)
  if op.type in _MIXED_FROM_END:
    last = _MIXED_FROM_END[op.type]
    return len(inputs) == 1 and all(
        rows.axis < rows.rank - last for rows in inputs.values())
  if op.type in _MIXED_ALONG:
    return list(inputs) == [0] and not _is_along(op, inputs[0])
  if op.type in _ANY_AXIS:
    return len(inputs) == 1 or op.type in _SEVERAL
  return op.type in _FIRST_AXIS and not any(rows.axis for rows in places) and (
      len(inputs) == 1 or op.type in _SEVERAL_FIRST)


def aligns_rows(op: tf.Operation) -> bool:
  """Returns whether inputs of one rank have equal first dimensions, or 1."""
  return op.type in _ELEMENTWISE or op.type in ('ConcatV2', 'Pack', 'Select')


def is_size(op: tf.Operation) -> bool:
  """Returns whether `op` only returns the size of its input."""
  return op.type in _SIZES


def gives_rows(op: tf.Operation) -> bool:
  """Returns whether `op` yields a graph's input of each step."""
  return op.type in _SOURCES


def is_choice(op: tf.Operation) -> bool:
  """Returns whether `op` chooses between values, or compares them."""
  return op.type in _CHOICES


def is_reshape(op: tf.Operation) -> bool:
  """Returns whether `op` is a `Reshape`."""
  return op.type == 'Reshape'


def has_moments(op: tf.Operation) -> bool:
  """Returns whether all outputs of `op` except the first are moments."""
  return op.type in _BATCH_NORM


def is_batch_norm(op: tf.Operation) -> bool:
  """Returns whether `op` normalises with the moments of its own rows."""
  return op.type in _BATCH_NORM and op.get_attr('is_training')


def reads_only(op: tf.Operation) -> bool:
  """Returns whether a stateful `op` only reads a variable."""
  return op.type in op_types.VALUE_READS


def has_own_gradient(op: tf.Operation) -> bool:
  """Returns whether the program has registered the gradient of `op`."""
  name = op.node_def.attr['_gradient_op_type'].s if (
      '_gradient_op_type' in op.node_def.attr) else b''
  return bool(name)


def bounds_of_rows(op: tf.Operation, rows: Rows | None,
                   ) -> list[tuple[int, int]]:
  """Returns the bounds that a `StridedSlice` gives for the rows of its input.

  Each is the index of an input of `op` and the index of an element of it. Other
  ops, and a slice that keeps all rows, have none.
  """
  if op.type != 'StridedSlice':
    return []
  begin_mask, end_mask, ellipsis_mask, new_axis_mask = (
      op.get_attr(name) for name in (
          'begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask'))
  axis, count = 0, tf.compat.dimension_value(op.inputs[1].shape[0])
  for i in range(count):
    if ellipsis_mask >> i & 1:
      # It stands for all dimensions that the later elements leave.
      axis = rows.rank - sum(
          not new_axis_mask >> later & 1 for later in range(i + 1, count))
    elif not new_axis_mask >> i & 1:
      if axis == rows.axis:
        return [(index, i)
                for index, mask in ((1, begin_mask), (2, end_mask))
                if not mask >> i & 1]
      axis += 1
  return []


def _is_along(op: tf.Operation, rows: Rows) -> bool:
  """Returns whether `op` may mix along the dimension of the rows."""
  axes = tf.get_static_value(op.inputs[1])
  return axes is None or rows.axis in [
      int(axis) % rows.rank for axis in axes.reshape(-1)]


def _is_plain_slice(op: tf.Operation, inputs: Mapping[int, Rows]) -> bool:
  """Returns whether a `StridedSlice` goes forward along each dimension."""
  strides = tf.get_static_value(op.inputs[3])
  return list(inputs) == [0] and strides is not None and min(
      strides, default=1) > 0


def _is_gather_by_row(op: tf.Operation, inputs: Mapping[int, Rows]) -> bool:
  """Returns whether a `GatherV2` reads each row from the same row or table."""
  axis, batch_dims = (
      tf.get_static_value(op.inputs[2]), op.get_attr('batch_dims'))
  if axis is None or batch_dims < 0:
    return list(inputs) == [1] and not batch_dims
  if list(inputs) == [0, 1]:
    return inputs[0].axis == inputs[1].axis < batch_dims
  # In the first dimensions, rows of one input would be those of the other one.
  return all(rows.axis >= batch_dims for rows in inputs.values()) and (
      1 in inputs or int(axis) % inputs[0].rank != inputs[0].axis)


def _is_einsum_by_row(op: tf.Operation, inputs: Mapping[int, Rows]) -> bool:
  """Returns whether rows have one label in all operands and in the result."""
  equation = op.get_attr('equation').decode()
  if '.' in equation:
    return False
  terms, result = equation.split('->')
  labels = {terms.split(',')[i][rows.axis] for i, rows in inputs.items()}
  return len(labels) == 1 and labels.pop() in result


def _is_reversed_by_row(op: tf.Operation, inputs: Mapping[int, Rows]) -> bool:
  """Returns whether a `ReverseSequence` reverses within rows."""
  return all(rows.axis == (0 if i else op.get_attr('batch_dim'))
             for i, rows in inputs.items())


_RULES = {
    'StridedSlice': _is_plain_slice,
    'GatherV2': _is_gather_by_row,
    'GatherNd': lambda op, inputs: list(inputs) == [1],
    'Einsum': _is_einsum_by_row,
    'ReverseSequence': _is_reversed_by_row,
    # Without dimensions it would drop each one that is 1 in a tower.
    'Squeeze': lambda op, inputs: bool(op.get_attr('squeeze_dims')),
    **dict.fromkeys(_OF_TWO, lambda op, inputs: len(inputs) == 2 and (
        inputs[0].axis == inputs[1].axis)),
}


def sizes_as_ops(applies: Callable[[Any], bool]) -> AbstractContextManager:
  """Makes functions that count the rows of a tensor read that tensor.

  By default the size of a static shape is a constant: it does not tell what it
  counts. `applies` returns whether a tensor has rows.
  """
  by_input, by_tensor = (functools.partial(_reading, applies, name)
                         for name in ('input', 'tensor'))
  return replacing.replaced_in_turn(
      array_ops, shape_internal=by_input, size_internal=by_input,
      ones_like_impl=by_tensor, array_like_impl=by_tensor)


def _reading(applies: Callable[[Any], bool], argument: str,
             function: Callable) -> Callable:
  """Returns `function`, with an op as its result where `applies` is True."""
  signature = inspect.signature(function)

  @functools.wraps(function)  # An inner context reads the signature.
  def size(*args, **kwargs):
    bound = signature.bind(*args, **kwargs)
    if applies(bound.arguments[argument]):
      bound.arguments['optimize'] = False
    return function(*bound.args, **bound.kwargs)

  return size
