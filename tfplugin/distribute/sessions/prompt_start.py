# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Start of workers as soon as the others are ready, and not before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import per_graph
from tfplugin.distribute import time_limit
from tfplugin.events import event_log
from tfplugin.events import record

tf1 = tf.compat.v1

_POLL_SECONDS = 0.1
# After this limit a session falls back to TensorFlow's own waiting.
_LIMIT_SECONDS = 600.0


def add_ready_op(chief: str) -> None:
  """Adds a readiness check that waits for the initialisation by `chief`.

  The session of a worker other than the chief runs `ready_for_local_init_op`.
  If the answer is no, it sleeps for 30 seconds before it asks again. The op
  added here queries the parameter servers ten times a second before it answers.
  It is put where a `tf.compat.v1.train.Scaffold` searches for one, so a model
  with its own op keeps that. Call this when every variable of the graph exists.
  """
  key = tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP
  if tf1.get_collection(key):
    return
  variables = [*tf1.global_variables(), *per_graph.current().awaited]
  if variables:
    with tf1.control_dependencies(None), tf1.name_scope('wait_for_chief'):
      tf1.add_to_collection(key, poll_while(
          lambda: _uninitialized(variables),
          lambda missing: tf.size(missing) > 0, _LIMIT_SECONDS, [None],
          who='This worker', whom=_variables,
          tasks=lambda missing: [chief]))


def check_chief_initializes(device: str) -> None:
  """Raises ValueError for a global variable of a worker that is not the chief.

  The worker's session waits until each global variable has a value, but runs no
  initialiser. `device` is the worker's. TensorFlow puts a variable without a
  job there, too.
  """
  worker = tf.DeviceSpec.from_string(device)
  for variable in tf1.global_variables():
    spec = tf.DeviceSpec.from_string(variable.device)
    if worker.job and (spec.job is None or (spec.job, spec.task) == (
        worker.job, worker.task)):
      raise ValueError(
          'Global variables must be on parameter servers: no task initialises '
          f'one on a worker. Received: {variable.op.name}, on '
          f'{variable.device or "no device"}. Create it inside '
          '`tf.train.replica_device_setter`, and outside of `tf.device` with a '
          'worker.')


def _uninitialized(variables: Sequence[tf.Variable]) -> tf.Tensor:
  """Returns the names of the variables that have no value, for a loop, too."""
  have_values = tf.stack([_has_value(variable) for variable in variables])
  names = tf.constant([variable.op.name for variable in variables])
  return tf.boolean_mask(names, tf.logical_not(have_values))


def _has_value(variable: tf.Variable) -> tf.Tensor:
  """Returns whether a variable has a value.

  A reference cannot enter a loop before it has one: the loop gets its own.
  """
  if variable.dtype.base_dtype == variable.dtype:
    return tf1.is_variable_initialized(variable)
  op = variable.op
  with tf1.device(variable.device):
    return tf.raw_ops.IsVariableInitialized(ref=tf.raw_ops.VariableV2(
        shape=variable.shape, dtype=variable.dtype.base_dtype,
        container=op.get_attr('container').decode(),
        shared_name=op.get_attr('shared_name').decode() or op.name))


def poll_while(look: Callable[[], tf.Tensor],
               keep_waiting: Callable[[tf.Tensor], tf.Tensor],
               time_limit_secs: float, shape=None, *, who: str,
               whom: Callable[[Any], str],
               tasks: Callable[[Any], list[str]]) -> tf.Tensor:
  """Polls ten times a second, in the graph, and returns the last tensor.

  `look` makes the ops of one look, and returns their tensor. `keep_waiting`
  maps it to a bool scalar: whether to look again. After `time_limit_secs` there
  is one last look. `shape` is the tensor's, where it changes between looks.
  The host's clock may be set meanwhile.

  The wait of `who` is logged at intervals. If the current task has an event
  log, the wait is an event. `whom` and `tasks` map the tensor's value to the
  awaited thing, for the log, and to its tasks, for the event.
  """
  wait_ = _Wait(who, event_log.current(), time_limit_secs)

  def sleep(seen):
    is_early = wait_.check(whom(seen), tasks(seen))
    time.sleep(_POLL_SECONDS)
    return is_early

  def is_waiting(seen, is_early):
    return tf.logical_and(keep_waiting(seen), is_early)

  def wait(before, _):
    is_early = tf.numpy_function(sleep, [before], tf.bool)
    is_early.set_shape([])
    with tf.control_dependencies([is_early]):
      seen = look()
    return seen if shape is None else tf.ensure_shape(seen, shape), is_early

  first = look()
  last, _ = tf1.while_loop(
      is_waiting,
      wait, [first, tf.constant(True)],
      shape_invariants=[
          first.shape if shape is None else tf.TensorShape(shape),
          tf.TensorShape([])],
      parallel_iterations=1)
  with tf.control_dependencies([tf.numpy_function(wait_.end, [last], tf.bool)]):
    return tf.identity(last)


class _Wait:
  """A wait that is logged; it begins with the first look."""

  def __init__(self, who: str, log: event_log.EventLog | None,
               time_limit_secs: float):
    self._who = who
    self._log = log
    self._limit_secs = time_limit_secs
    self._patience: time_limit.Patience | None = None
    self._end = 0.0

  def check(self, whom: str, tasks: list[str]) -> bool:
    """Returns whether the limit is not reached; logs the wait."""
    if self._patience is None:
      self._patience = time_limit.Patience(self._who, None)
      self._end = time.monotonic() + self._limit_secs
      if self._log is not None:
        self._log.write('waiting', record.BEGIN, on=tasks)
    self._patience.check(whom, '')
    return time.monotonic() < self._end

  def end(self, seen: Any) -> bool:
    del seen
    if self._patience is not None and self._log is not None:
      self._log.write('waiting', record.END)
    self._patience = None
    return True


def _variables(names) -> str:
  return ('the chief to initialise '
          f'{", ".join(sorted(name.decode() for name in names))}')
