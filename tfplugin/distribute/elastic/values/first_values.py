# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values that a program writes before the first step, e.g. pretrained ones.

A Scaffold's `init_fn` and hooks write a variable before the session's first
step. An assignment reaches the chief's copy; a Saver writes the centre. Both
get the value, so training starts from it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic.values import unaveraged_values

tf1 = tf.compat.v1

_POLL_SECS = 0.05


class FirstValues(tf1.train.SessionRunHook):
  """Hook of the chief that copies values written before the first step.

  A copy that has changed since its initialisation overwrites the centre;
  otherwise the centre overwrites the copy. Other workers start from the centre
  after the chief has copied. Values that their hooks write stay in their
  copies.

  A session that ends before its first exchange leaves the centre as it was. The
  hook warns of that.
  """

  def __init__(self, pairs: Sequence[elastic_pairs.Pair], device: str,
               signal: tf.Variable | None = None):
    """Adds the ops on the worker; all variables must exist."""
    self._pairs = list(pairs)
    self._signal = signal
    self._is_due = False
    self._last = None
    if not self._pairs:
      return
    with tf1.control_dependencies(None), tf1.name_scope('first_values'):
      self._before = placement.worker_variable(
          functools.partial(unaveraged_values.prints_of, [
              pair.first_value for pair in self._pairs]),
          'elastic_average/first_values', device, is_listed=False)
      # A user's own local_init_op may leave it uninitialised.
      self._has_before = self._before.is_initialized()
      self._read_before = self._before.read_value()
      with placement.device_override(device):
        self._prints_of_copies = unaveraged_values.prints_of(
            [copy.read_value() for pair in self._pairs for copy in pair.copies])
        self._prints_of_centers = unaveraged_values.prints_of(
            [pair.center.read_value() for pair in self._pairs])
      self._to_center = [
          _assign([pair.center, *pair.copies[1:]], pair.local, pair)
          for pair in self._pairs]
      self._to_copies = [_assign(pair.copies, pair.center, pair)
                         for pair in self._pairs]
      counts = per_graph.current().counts
      steps = [(v.read_value(), counts[v.op.name].every)
               for v in tf1.local_variables() if v.op.name in counts]
      self._steps = [number for number, _ in steps]
      self._exchanges = [number // period for number, period in steps]

  def begin(self) -> None:
    """Leaves the initialiser of the signal to `after_create_session`."""
    initializers = tf1.get_collection_ref(tf1.GraphKeys.TABLE_INITIALIZERS)
    if self._signal is not None and self._signal.initializer in initializers:
      initializers.remove(self._signal.initializer)

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Copies the values written so far, then releases the other workers."""
    del coord
    if self._pairs:
      self._last = (session.run(self._read_before)
                    if session.run(self._has_before) else None)
      self.settle(session)
      self._num_steps = session.run(self._steps)
    self._is_due = bool(self._pairs)
    if self._signal is not None:
      session.run(self._signal.initializer)

  def before_run(self, run_context) -> None:
    """Copies, before the first step, the values that later hooks wrote."""
    if self._is_due:
      self._is_due = False
      # A hook may train before the first step; the exchange averages that.
      if run_context.session.run(self._steps) == self._num_steps:
        self.settle(run_context.session)

  def hand_on(self, init_fn: Callable[[tf1.Session], None] | None,
              session: tf1.Session, init_op: Any) -> None:
    """Runs `init_fn`; copies the values that it, or `init_op`, wrote.

    They write copies that are then initialised from the centre. A copy that
    `init_op` does not write gets its first value before `init_fn`.
    """
    run = graph_order.operations_of(tf.nest.flatten(init_op))
    is_written = [graph_order.updates(run, pair.local) for pair in self._pairs]
    session.run([copy.initializer for pair, was_written
                 in zip(self._pairs, is_written) if not was_written
                 for copy in pair.copies])
    if init_fn is not None:
      self.note(session)
      before = self._last
      init_fn(session)
      self.note(session)
      is_written = [was_written or not np.array_equal(own, other)
                    for was_written, own, other
                    in zip(is_written, before, self._last)]
    session.run([op for op, was_written in zip(self._to_center, is_written)
                 if was_written])

  def end(self, session: tf1.Session) -> None:
    """Warns if no step has reached the centre."""
    if not self._pairs:
      return
    steps = exchanges = []
    with contextlib.suppress(tf.errors.OpError):  # A lost parameter server.
      steps, exchanges = session.run([self._steps, self._exchanges])
    if any(steps) and not any(exchanges):
      tf1.logging.warning(
          'The training ended after %d local steps, before the first exchange '
          'of elastic averaging. So the centre, which is saved, has not '
          'changed. Make at least `communication_period` steps in each call of '
          '`train`, or lower it.', max(steps))

  def settle(self, session: tf1.Session) -> None:
    """Sets centres and copies to the value that was written last."""
    copies, centers = session.run(
        [self._prints_of_copies, self._prints_of_centers])
    todo = []
    for i, (own, center) in enumerate(zip(self._by_pair(copies), centers)):
      if not (own == center).all():
        is_written = self._last is not None and not np.array_equal(
            own[0], self._last[i])
        todo.append((self._to_center if is_written else self._to_copies)[i])
    session.run(todo)
    self.note(session)

  def note(self, session: tf1.Session) -> None:
    """Stores fingerprints of the copies, to detect later writes."""
    self._last = [own[0] for own in self._by_pair(
        session.run(self._prints_of_copies))]

  def _by_pair(self, prints: np.ndarray) -> list[np.ndarray]:
    """Returns the fingerprints of the copies of each pair."""
    ends = np.cumsum([len(pair.copies) for pair in self._pairs])
    return np.split(prints, ends[:-1])


class _BeforeFirstStep(tf1.train.SessionRunHook):
  """Hook before the program's hooks, which may train in their `before_run`."""

  def __init__(self, first: tf1.train.SessionRunHook):
    self._first = first

  def before_run(self, run_context) -> None:
    """Copies what hooks have written until now."""
    self._first.before_run(run_context)


class FollowFirstValues(tf1.train.SessionRunHook):
  """Hook that starts a worker from the centre after the chief's hooks wrote.

  For workers that start together: the chief gets a session once all workers
  have arrived.
  """

  def __init__(self, pairs: Sequence[elastic_pairs.Pair], signal: tf.Variable,
               chief: str, who: str = 'This worker',
               time_limit_secs: float | None = None):
    """Adds the ops; all variables must exist."""
    self._chief, self._who = chief, who
    self._time_limit_secs = time_limit_secs or time_limit.start_limit_secs()
    with tf1.control_dependencies(None), tf1.name_scope('first_values'):
      self._is_signalled = signal.is_initialized()
      self._to_copies = copy_from_centers(pairs)

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Waits for the chief; at the time limit warns and continues."""
    del coord
    patience = time_limit.Patience(self._who, self._time_limit_secs)
    try:
      while not session.run(self._is_signalled):
        patience.check(f'{self._chief} to write the first values', '')
        time.sleep(_POLL_SECS)
    except TimeoutError as error:
      tf1.logging.warning('%s It starts from the values of the centre.', error)
    session.run(self._to_copies)


def hooks_of(pairs: Sequence[elastic_pairs.Pair], device: str,
             signal: tf.Variable | None, is_chief: bool,
             chief: str | None) -> list:
  """Returns the hooks of a worker on `device` that may wait for `chief`."""
  if is_chief:
    return [FirstValues(pairs, device, signal)]
  return [FollowFirstValues(pairs, signal, chief)] if chief else []


def around(hooks: Sequence, first: Sequence) -> tuple:
  """Returns the hooks of a program and of `hooks_of`, in their order."""
  return (*map(_BeforeFirstStep, first), *hooks, *first)


def create_signal(server: str, is_chief: bool,
                  is_awaited: bool = True) -> tf.Variable:
  """Makes the variable that gets a value once the chief's hooks have written.

  A chief without a `FirstValues` hook initialises it together with its local
  variables. If `is_awaited`, workers wait for it before they initialise their
  variables. `server` is a device that all workers share.
  """
  with tf.init_scope(), tf1.name_scope(None), placement.device_override(server):
    signal = _tf_internals.ResourceVariable(
        initial_value=True, trainable=False, collections=[],
        name='elastic_average/has_first_values')
  if is_chief:
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, signal.initializer)
  elif is_awaited:
    per_graph.current().awaited.append(signal)
  return signal


def _assign(variables: Sequence[tf.Variable], value: tf.Variable,
            pair: elastic_pairs.Pair) -> tf.Operation:
  read = value.read_value()
  views = [pair.local_center] if pair.local_center is not None else []
  return tf.group(*[elastic_pairs.write(variable, 'update', read)
                    for variable in (*variables, *views)])


def copy_from_centers(pairs: Sequence[elastic_pairs.Pair]) -> tf.Operation:
  """Returns an op that gives all local variables their centres' values."""
  return tf.group(*[_assign(pair.copies, pair.center, pair) for pair in pairs])
