# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values written before the first step, where an optimizer is used by hand.

A copy of a getter starts from its own initial value, and a hook then gives it
the centre's. What a Scaffold's `init_fn` assigns is gone by then: it is handed
on before local variables are initialised.
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
  """The part of the hook of an `ElasticAverageOptimizer`."""

  def __init__(self, task_index: int, is_chief: bool):
    """Takes who this is.

    Args:
      task_index: The worker.
      is_chief: Whether the others start from its values.
    """
    self._task_index = task_index
    self._is_chief = is_chief
    self._values: Optional[first_values.FirstValues] = None
    self._is_signalled = None

  def begin(self, pairs: Sequence[elastic_pairs.Pair], device: str) -> None:
    """Adds the ops, once all variables are there.

    Args:
      pairs: The averaged variables.
      device: The worker's.
    """
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
    """Hands on the chief's values; lets another worker wait until it has.

    Args:
      session: A session whose variables are initialised.
      time_limit_secs: The limit of the wait.
    """
    if self._values is not None:
      self._values.after_create_session(session, None)
    elif self._is_signalled is not None:
      first_values.wait_for_signal(
          session, self._is_signalled, f'Worker {self._task_index}',
          'the chief', time_limit_secs)

  def after_start(self, session: tf1.Session) -> None:
    """Notes the values that the copies start from.

    Args:
      session: The worker's.
    """
    if self._values is not None:
      self._values.note(session)

  def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
    """Hands on, before the first step, what later hooks have written.

    Args:
      run_context: Has the session.
    """
    if self._values is not None:
      self._values.before_run(run_context)


def _hand_on_init_fn(pairs: Sequence[elastic_pairs.Pair], device: str) -> None:
  """Gives centres what an `init_fn` writes to copies.

  It runs between the initialisers of global variables, which note the copies'
  values, and the check before those of local variables, which compares.
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
  """Gives each centre the value of a copy that was written since."""
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
