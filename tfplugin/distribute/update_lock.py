# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock that the workers of a cluster share for the time of an update.

A worker may be stopped, or slow, at any moment, and nobody else may wait for
it. So it has no part in what is done under the lock:

  worker                     parameter servers
  gradients are computed
  ... and sent         ->    they have arrived
                             the lock is taken
                             decisions and updates, where the variables are
                             the lock is released
  told of the end      <-
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import graph_order

tf1 = tf.compat.v1

# Takes the gradients that have arrived, and their variables.
UpdateFn = Callable[[types.GradsAndVars], tf.Operation]


def is_possible() -> bool:
  """Whether an update that is built here can be locked.

  In a plain graph, also in the branches of its `tf.cond`. In eager execution,
  functions and strategies one thread applies, and no lock is needed.
  """
  return not (tf.executing_eagerly() or tf.distribute.has_strategy() or
              _tf_internals.is_in_function())


def run_locked(anchor: tf.Variable,
               grads_and_vars: types.GradsAndVars,
               update_fn: UpdateFn, name: str) -> tf.Operation:
  """Runs the ops of `update_fn` while holding a mutex beside `anchor`.

  The mutex is taken when every gradient has arrived at its variable, and it is
  released when the update is done or its step fails. Reads that belong to the
  update must be built by `update_fn`, too. What it builds sits beside `anchor`
  where nothing else places it. The worker's own variables are read and written
  before the lock or after it.

  Args:
    anchor: The variable whose device keeps the mutex, such as global_step.
    grads_and_vars: Gradients, which may be None, and their variables.
    update_fn: Takes `grads_and_vars` with the gradients that have arrived, and
      builds the update; called once, under the lock.
    name: Of the mutex. Workers that use the same name exclude each other.

  Returns:
    An op that is done when the lock is released. Plain graphs only.
  """
  def arrived(gradient, variable):
    with _tf_internals.colocate_with(_tf_internals.own_variable(variable)):
      return tf.nest.map_structure(
          tf.identity, gradient, expand_composites=True)

  grads_and_vars = [
      (gradient if gradient is None else arrived(gradient, variable), variable)
      for gradient, variable in grads_and_vars]
  with _tf_internals.colocate_with(anchor):
    mutex = tf.raw_ops.MutexV2(shared_name=name)
    with tf.control_dependencies(tf.nest.flatten(
        [gradient for gradient, _ in grads_and_vars if gradient is not None],
        expand_composites=True)):
      lock = tf.raw_ops.MutexLock(mutex=mutex)
  built_before = len(lock.graph.get_operations())
  with tf.control_dependencies([lock]), tf1.device(
      lambda op: op.device or _device_beside(anchor, op)):
    update = update_fn(grads_and_vars)
  _bring_inputs(lock.op, lock.graph.get_operations()[built_before:])
  with tf.control_dependencies([update]), _tf_internals.colocate_with(anchor):
    return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)


def _device_beside(anchor: tf.Variable, op: tf.Operation) -> str:
  """The device of `anchor`, but for variables, which the program places."""
  return '' if _tf_internals.makes_variable(op) else anchor.device


def _bring_inputs(lock: tf.Operation, built: Sequence[tf.Operation]) -> None:
  """Makes `lock` wait for all that the update takes from elsewhere.

  That is what the worker has computed, such as a learning rate that decays. It
  is taken over on the device where it is used.

  Args:
    lock: Takes the lock.
    built: The operations that `update_fn` has built, in their order.
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
    beside = lock if _tf_internals.is_switch(operation) else operation
    key = tensor.ref(), beside.device
    if key not in brought:
      with _tf_internals.colocate_with(beside):
        brought[key] = tf.identity(tensor)
    _tf_internals.redirect_input(operation, index, brought[key])
    if beside is lock:  # A switch sits where its value comes from.
      _tf_internals.move_beside(operation, brought[key].op)
  _tf_internals.add_control_inputs(
      lock, [tensor.op for tensor in brought.values()])


def _is_value(tensor: tf.Tensor) -> bool:
  """Whether `tensor` is no variable or table, which stay where they are."""
  return (tensor.dtype not in (tf.resource, tf.variant) and
          tensor.dtype == tensor.dtype.base_dtype)
