# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses that replicas minimise, their terms, and values that they report.

TensorFlow publishes the type of an op, but not its meaning.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable
from collections.abc import Iterator

import tensorflow as tf

# How TensorFlow scales the loss of a replica.
from tensorflow.python.distribute import distribute_utils

# Whether a replica makes summaries; see `summaries_of_all`.
from tensorflow.python.distribute import summary_op_util

# Each mean of `tf.compat.v1.losses` is a `_safe_mean`; see `counts_marked`.
from tensorflow.python.ops.losses import losses_impl

# Each reduced loss of `tf.compat.v1.losses` calls its `add_loss`.
from tensorflow.python.ops.losses import util as losses_util

from tfplugin._tf_internals import keras
from tfplugin._tf_internals import op_types
from tfplugin._tf_internals import replacing

tf1 = tf.compat.v1

# Names of identities that TensorFlow adds.
_GIVEN_BY_TENSORFLOW = re.compile(
    r'(^|/)(Identity|control_dependency|read)(_\d+)?$')
# Attribute of a loss: its reduction.
_REDUCTION = 'tfplugin_reduction'
# Attribute of the count of a mean loss.
_COUNT = 'tfplugin_count_of_mean'
# The mean of Keras 2, in two copies.
_MEANS = ('keras.src.utils.losses_utils', 'tf_keras.src.utils.losses_utils',
          'tensorflow.python.keras.utils.losses_utils')
# The mean of Keras 3.
_KERAS_3 = 'keras.src.losses.loss'
# The reductions of Keras 3 that are means.
_KERAS_MEANS = ('sum_over_batch_size', 'mean', 'mean_with_sample_weight')
# Threads may each build a model: functions are replaced while one does.
_LOCK = threading.RLock()
_scales = []
_replaced = contextlib.ExitStack()
# The reduction of a loss that is divided by the number of replicas already: by
# Keras 3 without being asked, or by `tf.nn.compute_average_loss`.
MEAN_OF_REPLICAS = 'mean_of_replicas'
AVERAGE_OF_REPLICAS = 'average_of_replicas'
# Ops that return their first input, in another form.
_PASS = frozenset("""
    CheckNumerics Cast DeepCopy EnsureShape Enter Exit Identity NextIteration
    PreventGradient Print RefIdentity RefSwitch Reshape Snapshot Squeeze
    StopGradient Sum Switch""".split())
_SIGNS = {'Neg': [-1.0], 'Sub': [1.0, -1.0]}
_ADD = frozenset('Add AddV2 AddN Neg Pack Sub'.split())
# Other ops that are linear in the inputs of a real or complex type.
_LINEAR = frozenset("""
    BatchToSpaceND BroadcastTo Conj ExpandDims GatherNd GatherV2 Imag MatrixDiag
    MatrixDiagPart MatrixDiagPartV3 MatrixDiagV3 Mean MirrorPad Pad Real
    ReverseV2 Roll SegmentMean SegmentSum SegmentSumV2 Slice SpaceToBatchND
    Split SplitV StridedSlice Tile Transpose Unpack
    UnsortedSegmentSum""".split())
_SUMMARIES = frozenset("""
    AudioSummary AudioSummaryV2 HistogramSummary ImageSummary ScalarSummary
    TensorSummary TensorSummaryV2""".split())
_QUOTIENTS = ('RealDiv', 'Div', 'DivNoNan')
# Choices, with the index of the first alternative.
_CHOICES = {'Merge': 0, 'RefMerge': 0, 'Select': 1, 'SelectV2': 1}


@contextlib.contextmanager
def losses_scaled(scale: Callable) -> Iterator[None]:
  """Makes v1 optimizers minimise `scale(scale_loss, loss)` for their loss.

  `scale_loss(loss)` scales the loss as TensorFlow does: by the reduction of the
  last loss that was built, even of a metric. Contexts that overlap have the
  same `scale`. Losses, also of Keras, are marked with their reduction.
  """
  with _LOCK:
    _scales.append(scale)
    if len(_scales) == 1:
      for context in (
          replacing.replaced(losses_util, add_loss=_noted),
          # In spite of its name it sums.
          replacing.replaced(tf1.losses,
                             mean_pairwise_squared_error=_sum_noted),
          # No argument configures it.
          replacing.replaced(tf1.train.Optimizer, _scale_loss=lambda original: (
              staticmethod(functools.partial(scale, original)))),
          *(replacing.replaced(kind, __call__=_keras_noted)
            for kind in {tf.keras.losses.Loss, *keras.loss_classes()}),
          *(replacing.replaced(module, compute_average_loss=_mean_noted,
                               scale_regularization_loss=_mean_noted)
            for module in (tf.nn, tf1.nn))):
        _replaced.enter_context(context)
  try:
    yield
  finally:
    with _LOCK:
      _scales.remove(scale)
      if not _scales:
        _replaced.close()


def reduction_of(loss: tf.Tensor) -> str | None:
  """Returns the reduction of a loss marked by `losses_scaled`, or None."""
  return getattr(loss, _REDUCTION, None)


def last_reduction() -> str | None:
  """Returns the reduction of the last loss in the current graph, or None."""
  return tf1.get_default_graph()._last_loss_reduction


@contextlib.contextmanager
def counts_marked(applies: Callable[[], bool]) -> Iterator[None]:
  """Makes each mean loss divide by a marked copy of its count.

  The reductions of `tf.compat.v1.losses` and of Keras do not return the count,
  and a program may use the same tensor elsewhere. `is_count_of_mean` recognises
  the copy; its input is the count. `applies` is called in the thread that
  builds.
  """
  def dividing(mean):
    def divide(losses, count):
      is_marked = applies() and tf.is_symbolic_tensor(count)
      return mean(losses, _marked_copy(count) if is_marked else count)
    return divide

  def reducing(reduce_values):
    def reduce_by_copy(values, *args, **kwargs):
      mean = reduce_values(values, *args, **kwargs)
      if mean is not values and applies():
        _mark_count(mean)
      return mean
    return reduce_by_copy

  with contextlib.ExitStack() as stack:
    stack.enter_context(replacing.replaced_in_turn(
        losses_impl, _safe_mean=dividing))
    for module in keras.loaded(_MEANS):
      stack.enter_context(replacing.replaced_in_turn(
          module, _safe_mean=dividing))
    for module in keras.loaded([_KERAS_3]):
      stack.enter_context(replacing.replaced_in_turn(
          module, reduce_values=reducing))
    yield


def _marked_copy(count: tf.Tensor) -> tf.Tensor:
  """Returns a copy of `count` that `is_count_of_mean` recognises."""
  copy = tf.identity(count, name='count')
  setattr(copy, _COUNT, True)
  return copy


def _mark_count(mean: tf.Tensor) -> None:
  """Makes a mean, which no op has used, divide by a marked copy."""
  if tf.is_symbolic_tensor(mean) and mean.op.type == 'DivNoNan':
    # Graphs are append-only in public.
    mean.op._update_input(1, _marked_copy(mean.op.inputs[1]))


def is_count_of_mean(op: tf.Operation) -> bool:
  """Returns whether a mean loss divides by `op`; see `counts_marked`."""
  return op.type == 'Identity' and hasattr(op.outputs[0], _COUNT)


def strategy_divides_loss() -> bool:
  """Returns whether `compute_gradients` divides the loss by the replicas.

  v1 optimizers do so in a strategy under an Estimator, unless the last loss
  that was built was a sum. The rule is in a private function.
  """
  return (distribute_utils.get_loss_reduction() ==
          tf.distribute.ReduceOp.MEAN)


def summarized_value(op: tf.Operation) -> tf.Tensor | None:
  """Returns the number in the scalar summary `op`, its input 1, or None."""
  return op.inputs[1] if op.type == 'ScalarSummary' else None


def is_summary(op: tf.Operation) -> bool:
  """Returns whether `op` makes a summary of a tensor, of any kind."""
  return op.type in _SUMMARIES


def reported_value(op: tf.Operation) -> tf.Tensor | None:
  """Returns the number that `op` reports, in a summary or by name, or None."""
  if op.type == 'Identity' and op.outputs[0].shape.rank == 0 and not (
      op.outputs[0].consumers() or _GIVEN_BY_TENSORFLOW.search(op.name) or
      op.inputs[0].op.type in ('Merge', 'Exit', 'ReadVariableOp')):
    return op.inputs[0]
  value = summarized_value(op)
  return value if value is not None and value.shape.rank == 0 else None


def _noted(add_loss: Callable) -> Callable:
  """Returns `add_loss`, which then marks each loss with its reduction."""
  def noted(loss, *args, **kwargs):
    _note(loss)
    add_loss(loss, *args, **kwargs)
  return noted


def _keras_noted(call: Callable) -> Callable:
  """Returns a replacement of a Keras loss's call, which may choose a reduction.

  Keras 3 does not store the reduction in the graph. It divides a mean by the
  number of replicas itself.
  """
  def noted(self, *args, **kwargs):
    loss = call(self, *args, **kwargs)
    if keras.keras_3_module_of(call) is not None:
      num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
      tf1.get_default_graph()._last_loss_reduction = MEAN_OF_REPLICAS if (
          num_replicas > 1 and self.reduction in _KERAS_MEANS) else (
              self.reduction)
    _note(loss)
    return loss
  return noted


def _mean_noted(mean: Callable) -> Callable:
  """Returns `mean`, which divides by the number of replicas, noted as such."""
  @functools.wraps(mean)
  def noted(*args, **kwargs):
    loss = mean(*args, **kwargs)
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
      tf1.get_default_graph()._last_loss_reduction = AVERAGE_OF_REPLICAS
      _note(loss)
    return loss
  return noted


def _sum_noted(total: Callable) -> Callable:
  """Returns a loss that sums over the rows, and is noted as such."""
  @functools.wraps(total)
  def noted(*args, **kwargs):
    loss = total(*args, **kwargs)
    if tf.is_symbolic_tensor(loss):
      setattr(loss, _REDUCTION, tf1.losses.Reduction.SUM)
    return loss
  return noted


def _note(loss: tf.Tensor) -> None:
  """Marks `loss` with the reduction; no public attribute has it."""
  # `mean_pairwise_squared_error` ends in a choice, and has no reduction.
  if tf.is_symbolic_tensor(loss) and loss.op.type not in _CHOICES:
    setattr(loss, _REDUCTION, last_reduction())


def summaries_of_all(applies: Callable[[], bool],
                     ) -> contextlib.AbstractContextManager:
  """Makes `tf.compat.v1.summary` write summaries in all replicas.

  By default only the first replica makes them, and the others' values are lost.
  `applies` is called in the thread that builds.
  """
  return replacing.replaced_in_turn(
      summary_op_util, skip_summary=lambda skip: (
          lambda: not applies() and skip()))


def addends(tensor: tf.Tensor) -> list[tuple[tf.Tensor, float]]:
  """Returns the terms of the sum `tensor` with their signs; [] if unknown."""
  op, inputs = tensor.op, list(tensor.op.inputs)
  if op.type in _PASS:
    return [(inputs[0], 1.0)]
  if op.type == 'IdentityN':
    return [(inputs[tensor.value_index], 1.0)]
  if op.type in _ADD:
    return list(zip(inputs, _SIGNS.get(op.type, [1.0] * len(inputs))))
  if op.type in ('Concat', 'ConcatV2'):
    inputs = inputs[1:] if op.type == 'Concat' else inputs[:-1]
    return [(part, 1.0) for part in inputs]
  return []


def terms_of_linear(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors in which `tensor` is linear; [] if unknown."""
  if tensor.op.type in _LINEAR:
    return list(tensor.op.inputs)
  return [term for term, _ in addends(tensor)]


def factors(tensor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, bool] | None:
  """Returns the operands of a product or quotient, and True for a quotient."""
  divides = tensor.op.type in _QUOTIENTS
  if not divides and tensor.op.type not in ('Mul', 'MulNoNan'):
    return None
  return (*tensor.op.inputs, divides)


def divides_by(op: tf.Operation, tensor: tf.Tensor) -> bool:
  """Returns whether `op` is a quotient with the divisor `tensor`."""
  return op.type in _QUOTIENTS and op.inputs[1] is tensor


def alternatives(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors from which a condition or switch chooses `tensor`."""
  op = tensor.op
  if op_types.calls_functions(op) and 'While' not in op.type:
    return [graph.outputs[tensor.value_index]
            for graph in op_types.functions_of(op)]
  return list(op.inputs)[_CHOICES[op.type]:] if op.type in _CHOICES else []
