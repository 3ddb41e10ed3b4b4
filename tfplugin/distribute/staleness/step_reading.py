# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readings of the global step at exact points of a training step.

A reading is a separate op on the step's device. It is never an alias of the
variable's buffer, since a ref variable is updated in place. It is never a
candidate for constant folding.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.staleness import step_order


def read_step(global_step: tf.Variable) -> tf.Tensor:
  """Returns the value of `global_step` after the current dependencies.

  The scalar has the step's dtype. In a graph it is the output of the reading
  op.
  """
  if tf.executing_eagerly():
    return tf.identity(global_step.read_value())
  if global_step.dtype != global_step.dtype.base_dtype:
    with _tf_internals.colocate_with(global_step):
      # An identity of a ref is an alias: the value would change with the step.
      return tf.raw_ops.DeepCopy(x=global_step.read_value())
  # `read_value()` ends in an identity on the caller's device. Waiting for that
  # on a parameter server costs a round trip.
  with _tf_internals.colocate_with(global_step):
    return tf.raw_ops.ReadVariableOp(
        resource=global_step.handle, dtype=global_step.dtype)


def read_step_before_forward(
    global_step: tf.Variable,
    gradients: Sequence[types.Gradient]) -> tf.Tensor:
  """Returns the step before the model began its work, in a graph.

  All work that the gradients need waits for the reading, see `step_order`. The
  reading waits for no work, so gradients that were made under control
  dependencies do not form a cycle. It is made outside the branches of
  `tf.cond`: with accumulated gradients, the model that added the last ones is
  outside.
  """
  with _tf_internals.outside_branches():
    reading = read_step(global_step)
  order_before_forward(reading, gradients)
  return reading


def order_before_forward(reading: tf.Tensor,
                         gradients: Sequence[types.Gradient]) -> None:
  """Makes the work that `gradients` need wait for `reading`.

  The reading is the result of `read_step_before_forward` for other gradients of
  the same step.
  """
  step_order.order_after(reading, [t.op for t in tensors_of(gradients)])


def read_step_after(global_step: tf.Variable,
                    gradients: Sequence[types.Gradient]) -> tf.Tensor:
  """Returns the step after all of `gradients` are computed."""
  with tf.control_dependencies(tensors_of(gradients)):
    # One edge to the step's device instead of one per gradient.
    computed = tf.no_op(name='gradients_computed')
  with tf.control_dependencies([computed] if computed else []):
    return read_step(global_step)


def tensors_of(gradients: Sequence[types.Gradient]) -> list[tf.Tensor]:
  """Returns the tensors of `gradients`: of a sparse one, values and indices."""
  tensors = []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      tensors += [gradient.values, gradient.indices]
    elif gradient is not None:
      tensors.append(tf.convert_to_tensor(gradient))
  return tensors

