# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers start as soon as the others are ready, and not before."""

from __future__ import annotations

import time
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import per_graph
from tfplugin.distribute import time_limit
from tfplugin.events import event_log
from tfplugin.events import record

tf1 = tf.compat.v1

_POLL_SECONDS = 0.1
# A session that is not ready by then falls back to TensorFlow's own waiting.
_LIMIT_SECONDS = 600.0

# Variables of a graph, beside its global ones, to which the chief gives a value
# before workers begin.
AWAITED = per_graph.PerGraph()


def add_ready_op(chief: str) -> None:
  """Adds a readiness check that waits for the chief's initialisation.

  A worker's session, unless it is the chief's, runs `ready_for_local_init_op`
  and, if the answer is no, sleeps for 30 seconds before it asks again. The op
  added here asks the parameter servers ten times a second before it answers. It
  goes where a `tf.compat.v1.train.Scaffold` looks for one, so that a model that
  brings its own keeps it. Call this when every variable of the graph exists.

  Args:
    chief: The name of the chief, for the event of the wait.
  """
  key = tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP
  if tf1.get_collection(key):
    return
  variables = [*tf1.global_variables(), *(AWAITED.here() or ())]
  if variables:
    with tf1.control_dependencies(None), tf1.name_scope('wait_for_chief'):
      tf1.add_to_collection(key, poll_while(
          lambda: tf1.report_uninitialized_variables(variables),
          lambda missing: tf.size(missing) > 0, _LIMIT_SECONDS, [None],
          who='This worker', whom=_variables,
          tasks=lambda missing: [chief]))


def poll_while(look: Callable[[], tf.Tensor],
               keep_waiting: Callable[[tf.Tensor], tf.Tensor],
               time_limit_secs: float, shape=None, *, who: str,
               whom: Callable[[Any], str],
               tasks: Callable[[Any], list[str]]) -> tf.Tensor:
  """Looks ten times a second, in the graph, up to a limit.

  It says now and then what it waits for. Where the task that makes the graph
  tells of what it does, the wait is among its events.

  Args:
    look: Makes the ops that look, and returns the tensor that they see.
    keep_waiting: Maps that tensor to a bool scalar: whether to look again.
    time_limit_secs: After so many seconds it looks once more, and ends.
    shape: The tensor's, where it changes from look to look.
    who: Waits, for the log.
    whom: Returns from the tensor's value who or what is waited for.
    tasks: Returns from it which tasks those are.

  Returns:
    The tensor that was seen last.
  """
  deadline = tf.timestamp() + time_limit_secs
  wait_ = _Wait(who, event_log.current())

  def sleep(seen):
    wait_.check(whom(seen), tasks(seen))
    time.sleep(_POLL_SECONDS)
    return True

  def is_waiting(seen):
    return tf.logical_and(keep_waiting(seen), tf.timestamp() < deadline)

  def wait(before):
    with tf.control_dependencies(
        [tf.numpy_function(sleep, [before], tf.bool)]):
      seen = look()
    return [seen if shape is None else tf.ensure_shape(seen, shape)]

  last = tf1.while_loop(
      is_waiting,
      wait, [look()],
      shape_invariants=None if shape is None else [tf.TensorShape(shape)],
      parallel_iterations=1)
  with tf.control_dependencies([tf.numpy_function(wait_.end, [last], tf.bool)]):
    return tf.identity(last)


class _Wait:
  """A wait that a log tells of; it begins with the first look."""

  def __init__(self, who: str, log: Optional[event_log.EventLog]):
    self._who = who
    self._log = log
    self._patience: Optional[time_limit.Patience] = None

  def check(self, whom: str, tasks: list[str]) -> None:
    if self._patience is None:
      self._patience = time_limit.Patience(self._who, None)
      if self._log is not None:
        self._log.write('waiting', record.BEGIN, on=tasks)
    self._patience.check(whom, '')

  def end(self, seen: Any) -> bool:
    del seen
    if self._patience is not None and self._log is not None:
      self._log.write('waiting', record.END)
    self._patience = None
    return True


def _variables(names) -> str:
  return ('the chief to initialise '
          f'{", ".join(sorted(name.decode() for name in names))}')
