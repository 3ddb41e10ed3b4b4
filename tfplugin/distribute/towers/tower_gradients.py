# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of all towers become one where they leave the model.

Each tower reads a variable through an identity of its handle. The gradient of
that identity stops the tower until the others have got there, and gives every
tower the same sum:

  gradient = sum{towers} weight[tower] * gradient[tower]

So `tf.gradients` in a tower returns the gradient of one device with the whole
batch, and the code after it (clipping by the global norm, say) needs no more
knowledge of towers.

A sum over towers on the way, x = sum{towers} x[tower], has the gradient

  d loss / d x[tower] = sum{towers} weight[tower] * d loss[tower] / d x

for each of them. A tower gets it divided by its own weight, because the
gradients of the variables behind x[tower] are multiplied by that weight later.
So no tower goes back through the ops of another one.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

_SUM_OVER_TOWERS = 'TfpluginSumOverTowers'
_TOTAL_OF_TOWERS = 'TfpluginTotalOfTowers'


@tf.RegisterGradient(_SUM_OVER_TOWERS)
def _sum_over_towers(op: tf.Operation, gradient):
  return _summed(op.outputs[0], gradient)


def _summed(handle: tf.Tensor, gradient):
  context = tf.distribute.get_replica_context()
  reduce = getattr(context, 'reduce_gradient', None)
  return gradient if reduce is None else reduce(handle, gradient)


@tf.RegisterGradient(_TOTAL_OF_TOWERS)
def _total_of_towers(op: tf.Operation, unused_own, gradient):
  context = tf.distribute.get_replica_context()
  reduce = getattr(context, 'gradient_of_part', None)
  if reduce is None:
    # Not in a tower: back through all of them.
    return None, gradient
  return reduce(gradient), None


def total_of_towers(own: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
  """Returns `total`, with `own` as the part that this tower added to it."""
  with _tf_internals.identity_gradient(_TOTAL_OF_TOWERS):
    result = tf.raw_ops.IdentityN(input=[own, total])[1]
  same_values.stand_for(result, total)
  return result


def summing_view(variable: tf.Variable) -> tf.Variable:
  """Returns `variable` as a tower reads it: gradients are summed over towers.

  Args:
    variable: A resource variable of the default graph.
  """
  with tf.init_scope(), _tf_internals.colocate_with(variable):
    with _tf_internals.identity_gradient(_SUM_OVER_TOWERS):
      handle = tf.identity(variable.handle, name='handle')
  return _tf_internals.variable_view(variable, handle)


def record(variable: tf.Variable, view: tf.Variable) -> None:
  """Lets a gradient tape sum over towers as `tf.gradients` does.

  Args:
    variable: The variable that a tower is about to read.
    view: The result of `summing_view` for it.
  """
  _tf_internals.record_view(
      variable, view, lambda gradient: _summed(view.handle, gradient))


class NotedGradients:
  """Tells what is made from some gradients, sums over towers, say."""

  def __init__(self):
    self._noted = set()
    self._without = set()

  def add(self, gradient) -> None:
    """Notes `gradient`."""
    self._noted.add(_values(gradient).op)

  def made(self, value) -> bool:
    """Whether `value` was computed from one that is noted."""
    if not isinstance(value, (tf.Tensor, tf.IndexedSlices)):
      return False
    pending = [_values(value).op]
    visited = set()
    while pending:
      op = pending.pop()
      if op in self._noted:
        return True
      if op not in visited and op not in self._without:
        visited.add(op)
        pending.extend(tensor.op for tensor in op.inputs)
    self._without |= visited
    return False


def _values(gradient) -> tf.Tensor:
  return (gradient.values if isinstance(gradient, tf.IndexedSlices)
          else gradient)
