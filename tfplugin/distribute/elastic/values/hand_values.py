# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values written before the first step, under `ElasticAverageOptimizer`.

A copy made by the getter starts from the variable's initial value, and a hook
then overwrites it with the centre's. This would discard the assignments of a
Scaffold's `init_fn`. So they are copied to the centre before local variables
are initialised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic.values import first_values
from tfplugin.distribute.elastic.values import set_values
from tfplugin.distribute.variables import worker_variables

tf1 = tf.compat.v1


class HandValues:
  """Part of the hook of an `ElasticAverageOptimizer`."""

  def __init__(self, task_index: int, is_chief: bool):
    """Stores the worker; the other workers start from the chief's values."""
    self._task_index = task_index
    self._is_chief = is_chief
    self._values: Optional[first_values.FirstValues] = None
    self._is_signalled = None

  def begin(self, pairs: Sequence[elastic_pairs.Pair], device: str) -> None:
    """Adds the ops; all variables must exist. `device` is the worker's."""
    server = pairs[0].center.device
    signal = None
    if server and server != device:
      signal = first_values.create_signal(
          server, self._is_chief, is_awaited=False)
      self._is_signalled = tf1.is_variable_initialized(signal)
    if self._is_chief:
      self._values = first_values.FirstValues(pairs, device, signal)
      self._values.begin()
      _hand_on_init_fn(pairs, device)

  def before_start(self, session: tf1.Session, time_limit_secs: float) -> None:
    """Copies the chief's values; another worker waits until the chief has."""
    if self._values is not None:
      self._values.after_create_session(session, None)
    elif self._is_signalled is not None:
      first_values.wait_for_signal(
          session, self._is_signalled, f'Worker {self._task_index}',
          'the chief', time_limit_secs)

  def after_start(self, session: tf1.Session) -> None:
    """Notes the values that the copies start from."""
    if self._values is not None:
      self._values.note(session)

  def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
    """Copies, before the first step, the values that later hooks wrote."""
    if self._values is not None:
      self._values.before_run(run_context)


def _hand_on_init_fn(pairs: Sequence[elastic_pairs.Pair], device: str) -> None:
  """Adds ops that copy values written by an `init_fn` to the centres.

  The `init_fn` runs between two of them. The initialisers of global variables
  note the copies' fingerprints. The ready check before the initialisation of
  local variables compares, and copies.
  """
  key = tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP
  if tf1.get_collection(key):
    return
  with tf1.control_dependencies(None), tf1.name_scope('hand_on_init_fn'):
    prints = worker_variables.create(
        lambda: tf.stack([_print_if_set(pair.local) for pair in pairs]),
        'elastic_average/before_init_fn', device, is_listed=None)
    _tf_internals.run_with_global_initializers(prints.initializer)
    with tf1.control_dependencies([
        branching.cond(
            tf1.is_variable_initialized(prints),
            lambda: _written(pairs, prints), lambda: tf.constant(False),
            [v for pair in pairs for v in (pair.center, pair.local)])]):
      done = tf.raw_ops.DestroyResourceOp(
          resource=prints.handle, ignore_lookup_error=True)
    with tf1.control_dependencies([done]):
      tf1.add_to_collection(
          key, tf1.report_uninitialized_variables(tf1.global_variables()))


def _print_if_set(variable: tf.Variable) -> tf.Tensor:
  return tf.cond(
      tf1.is_variable_initialized(variable),
      lambda: set_values.print_of(variable.read_value()),
      lambda: tf.zeros([8], tf.uint8))


def _written(pairs: Sequence[elastic_pairs.Pair],
             prints: tf.Variable) -> tf.Tensor:
  """Returns whether a copy changed since `prints`; copies it to its centre."""
  before = prints.read_value()

  def hand_on(pair):
    with tf1.control_dependencies([elastic_pairs.write(
        pair.center, 'update', elastic_pairs.read(pair.local))]):
      return tf.constant(True)

  done = []
  for i, pair in enumerate(pairs):
    with placement.only_on(pair.local.device):
      is_written = tf.reduce_any(
          tf.not_equal(_print_if_set(pair.local), before[i]))
    done.append(branching.cond(
        is_written, lambda pair=pair: hand_on(pair),
        lambda: tf.constant(False), [pair.center, pair.local]))
  return tf.reduce_any(tf.stack(done))
