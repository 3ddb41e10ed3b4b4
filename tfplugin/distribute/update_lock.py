# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock that the workers of a cluster share for the time of an update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types


def run_locked(anchor: tf.Variable, gradients: Sequence[types.Gradient],
               update_fn: Callable[[], tf.Operation],
               name: str) -> tf.Operation:
  """Runs the ops of `update_fn` while holding a mutex beside `anchor`.

  The mutex is taken when every gradient is there, so that nobody waits for the
  holder's model, and it is released when the update is done or its step fails.
  Reads that belong to the update must be built by `update_fn`, too.

  Args:
    anchor: The variable whose device keeps the mutex, such as global_step.
    gradients: Computed before the mutex is taken.
    update_fn: Builds the update; called once, under the lock.
    name: Of the mutex. Workers that use the same name exclude each other.

  Returns:
    An op that is done when the lock is released. Plain graphs only.
  """
  computed = [tf.convert_to_tensor(part) for part in tf.nest.flatten(
      [g for g in gradients if g is not None], expand_composites=True)]
  with _tf_internals.colocate_with(anchor):
    mutex = tf.raw_ops.MutexV2(shared_name=name)
    with tf.control_dependencies(computed):
      lock = tf.raw_ops.MutexLock(mutex=mutex)
  with tf.control_dependencies([lock]):
    update = update_fn()
  with tf.control_dependencies([update]), _tf_internals.colocate_with(anchor):
    return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)
