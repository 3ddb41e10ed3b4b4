# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce of a tf.distribute strategy, with its gradient, in any graph.

`ReplicaContext.all_reduce` refuses, in a graph with collections, a value that
depends on a variable: it takes what the other replicas computed from that
variable for an input of its own.
"""

from __future__ import annotations

import itertools
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals

_SUM = tf.distribute.ReduceOp.SUM
_gradient_numbers = itertools.count()


def all_reduce_sum(
    value: Union[tf.Tensor, tf.IndexedSlices],
) -> Union[tf.Tensor, tf.IndexedSlices]:
  """Returns the sum of `value` over all replicas, in every replica.

  The gradient of a sum over the replicas is the sum of their gradients.

  Args:
    value: A tensor of one shape in all replicas, or `tf.IndexedSlices`. Call it
      in a replica context, in every replica.
  """
  context = tf.distribute.get_replica_context()
  in_plain_graph = not (tf.executing_eagerly() or tf.inside_function())
  if not in_plain_graph or isinstance(value, tf.IndexedSlices):
    return context.all_reduce(_SUM, value)
  # The total carries no gradient back; the second input stands for it.
  total = tf.stop_gradient(_reduce(context, value))
  name = f'TfpluginAllReduceSum{next(_gradient_numbers)}'
  tf.RegisterGradient(name)(_sum_of_gradients)
  with _tf_internals.identity_gradient(name):
    _, result = tf.identity_n([value, total])
  return result


def _sum_of_gradients(op: tf.Operation, unused_value_gradient, gradient):
  del op, unused_value_gradient
  return all_reduce_sum(gradient), None


def _reduce(context, value: tf.Tensor) -> tf.Tensor:

  def merge(strategy, value):
    return strategy.extended.batch_reduce_to(_SUM, [(value, value)])[0]

  return context.merge_call(merge, args=(value,))
