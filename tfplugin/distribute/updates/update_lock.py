# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lock that the workers of a cluster share for the duration of an update.

A worker may be stopped, or slow, at any moment, and no other worker may wait
for it. So the work under the lock does not involve the worker:

  worker                     parameter servers
  gradients are computed
  ... and sent         ->    they have arrived
                             the lock is taken
                             decisions and updates, where the variables are
                             the lock is released
  is notified          <-
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import graph_order
from tfplugin.distribute.packed import packing

tf1 = tf.compat.v1

# A function of the gradients that have arrived, and their variables.
UpdateFn = Callable[[types.GradsAndVars], tf.Operation]


def is_possible() -> bool:
  """Returns whether an update in the current context can be locked.

  It can in a plain graph, also in the branches of its `tf.cond`. In eager
  execution, functions and strategies a single thread applies, and no lock is
  needed.
  """
  return not (tf.executing_eagerly() or tf.distribute.has_strategy() or
              _tf_internals.is_in_function())


def run_locked(anchor: tf.Variable,
               grads_and_vars: types.GradsAndVars,
               update_fn: UpdateFn, name: str) -> tf.Operation:
  """Runs the ops of `update_fn` while holding a mutex beside `anchor`.

  The mutex is taken when every gradient has arrived at its variable. It is
  released when the update is done or its step fails. `update_fn` is called
  once, with the gradients that have arrived, and must also build the reads that
  belong to the update. Its ops are placed beside `anchor` where nothing else
  places them. The worker's own variables are read and written before the lock
  or after it. Workers that use the same mutex `name` exclude each other.

  Returns an op that is done when the lock is released. It works in plain graphs
  only.
  """
  def arrived(gradient, variable):
    with _tf_internals.colocate_with(_tf_internals.own_variable(variable)):
      return tf.nest.map_structure(
          tf.identity, gradient, expand_composites=True)

  grads_and_vars = [
      (gradient if gradient is None else arrived(gradient, variable), variable)
      for gradient, variable in packing.sent_by_hand(grads_and_vars)]
  gradients = tf.nest.flatten(
      [gradient for gradient, _ in grads_and_vars if gradient is not None],
      expand_composites=True)
  with _tf_internals.colocate_with(anchor):
    mutex = tf.raw_ops.MutexV2(shared_name=name)
    with tf.control_dependencies(gradients):
      lock = tf.raw_ops.MutexLock(mutex=mutex)
  built_before = len(lock.graph.get_operations())
  # Variables are placed by the program.
  with tf.control_dependencies([lock]), tf1.device(
      lambda op: op.device if op.device or _tf_internals.makes_variable(op)
      else anchor.device):
    update = update_fn(grads_and_vars)
  _bring_inputs(lock.op, lock.graph.get_operations()[built_before:], {
      gradient.ref() for gradient in gradients})
  with tf.control_dependencies([update]), _tf_internals.colocate_with(anchor):
    return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)


def _bring_inputs(lock: tf.Operation, built: Sequence[tf.Operation],
                  arrived: Set[Any]) -> None:
  """Makes `lock` wait for all inputs that the update takes from outside.

  These are the worker's results, such as a learning rate that decays. Each is
  copied to the device that uses it. `built` has the operations of the update in
  the order of their creation. `arrived` has references of the gradients, which
  are beside their variables: their switches stay there.
  """
  locked, taken = {lock}, []
  for operation in built:
    if not locked.isdisjoint(graph_order.sources(operation)):
      locked.add(operation)
      taken += [(operation, index, tensor) for index, tensor in enumerate(
          operation.inputs) if _is_value(tensor) and tensor.op not in locked]
  later = locked & graph_order.upstream([t.op for _, _, t in taken])
  brought = {}
  for operation, index, tensor in taken:
    if later and later & graph_order.upstream([tensor.op]):
      continue
    if tensor.ref() in arrived and _tf_internals.is_switch(operation):
      continue
    beside = lock if _tf_internals.is_switch(operation) else operation
    key = tensor.ref(), beside.device
    if key not in brought:
      with _tf_internals.colocate_with(beside):
        brought[key] = tf.identity(tensor)
    _tf_internals.redirect_input(operation, index, brought[key])
    if beside is lock:  # A switch is placed with the source of its value.
      _tf_internals.move_beside(operation, brought[key].op)
  _tf_internals.add_control_inputs(
      lock, [tensor.op for tensor in brought.values()])


def _is_value(tensor: tf.Tensor) -> bool:
  """Returns whether `tensor` is no variable or table; these are not copied."""
  return (tensor.dtype not in (tf.resource, tf.variant) and
          tensor.dtype == tensor.dtype.base_dtype)
