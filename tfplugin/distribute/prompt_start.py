# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets a worker start when the chief is ready, not up to 30 seconds later."""

from __future__ import annotations

import time

import tensorflow as tf

tf1 = tf.compat.v1

_POLL_SECONDS = 0.1
# A session that is not ready by then falls back to TensorFlow's own waiting.
_LIMIT_SECONDS = 600.0


def add_ready_op() -> None:
  """Adds a readiness check that waits for the chief's initialisation.

  A session that is not the chief's runs `ready_for_local_init_op` and, where
  the answer is no, sleeps for 30 seconds before it asks again. The op added
  here asks the parameter servers ten times a second before it answers. It goes
  where a `tf.compat.v1.train.Scaffold` looks for one, so that a model that
  brings its own keeps it. Call it when every variable of the graph exists.
  """
  key = tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP
  if tf1.get_collection(key):
    return
  variables = tf1.global_variables()
  if variables:
    with tf1.control_dependencies(None), tf1.name_scope('wait_for_chief'):
      tf1.add_to_collection(key, _uninitialized_after_waiting(variables))


def _uninitialized_after_waiting(variables) -> tf.Tensor:
  """The names of `variables` not initialised when the waiting ends."""
  deadline = tf.timestamp() + _LIMIT_SECONDS

  def keep_waiting(missing):
    return tf.logical_and(tf.size(missing) > 0, tf.timestamp() < deadline)

  def wait(_):
    with tf.control_dependencies([tf.numpy_function(_sleep, [], tf.bool)]):
      missing = tf1.report_uninitialized_variables(variables)
    return [tf.ensure_shape(missing, [None])]

  first = tf1.report_uninitialized_variables(variables)
  return tf1.while_loop(
      keep_waiting,
      wait, [first],
      shape_invariants=[tf.TensorShape([None])],
      parallel_iterations=1)


def _sleep() -> bool:
  time.sleep(_POLL_SECONDS)
  return True
