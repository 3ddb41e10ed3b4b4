# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conditions whose branches may update variables, of any kind and strategy.

Control flow v2 hands a branch the value of a reference variable, and an update
refuses a value. Control flow v1 hands it the variable. Both can be used in one
graph: v1 is taken where a variable needs it.

In a branch of v2 TensorFlow's replicas cannot meet for a `merge_call`. One
replica alone needs nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

import tensorflow as tf

tf1 = tf.compat.v1


def cond(should: tf.Tensor, true_fn: Callable[[], tf.Tensor],
         false_fn: Callable[[], tf.Tensor],
         updated: Iterable[tf.Variable]) -> tf.Tensor:
  """Returns `true_fn()` where `should` is true, else `false_fn()`.

  Args:
    should: A bool scalar.
    true_fn: Makes the ops of one branch; returns a tensor.
    false_fn: Makes the ops of the other branch.
    updated: The variables that a branch updates: resource or reference
      variables, also of a strategy.
  """
  if not (tf1.control_flow_v2_enabled() and any(map(is_reference, updated))):
    return tf.cond(should, true_fn, false_fn)
  tf1.disable_control_flow_v2()
  try:
    return tf.cond(should, true_fn, false_fn)
  finally:
    tf1.enable_control_flow_v2()


def with_merges_in_branches(strategy: tf.distribute.Strategy,
                            fn: Callable) -> Callable:
  """Returns `fn`, able to apply an optimizer in a branch of control flow v2.

  Args:
    strategy: If it has several replicas here, nothing is changed.
    fn: The function that a replica runs, in a graph.
  """
  if strategy.num_replicas_in_sync > 1:
    return fn

  def run(*args, **kwargs):
    outer = tf.distribute.get_replica_context()
    graph = tf1.get_default_graph()
    alone = tf.distribute.ReplicaContext(strategy, 0)
    merge_alone = alone.merge_call

    def merge_call(merge_fn, args=(), kwargs=None):
      if tf1.get_default_graph() is not graph:
        return merge_alone(merge_fn, args, kwargs)
      with outer:
        return outer.merge_call(merge_fn, args, kwargs)

    alone.merge_call = merge_call
    with alone:
      return fn(*args, **kwargs)

  return run


def is_reference(variable: tf.Variable) -> bool:
  """Whether `variable` is a reference variable, `use_resource=False`.

  Args:
    variable: Any variable.
  """
  return variable.dtype != variable.dtype.base_dtype
